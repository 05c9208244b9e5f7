from tfdoctor.facts.input.feeding_datasets import TunedBuffers
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# How runs end that had enough memory.
ENDED = {EndKind.EXIT: "by itself", EndKind.EXCEPTION: "by an exception", EndKind.INTERRUPT: "by an interrupt"}

# Phases as the object of "during"; the others are called by their names.
DURING = {
    Phase.START: "the start",
    Phase.PREPARING: "the preparation of data",
    Phase.STEPS: "the training steps",
    Phase.BUILDING: "the building of the model",
    Phase.BOUNDARIES: "the boundary of an epoch",
    Phase.END: "the end of the run",
    Phase.UNNAMED: "a part of the run without a name",
}

# Share of the last level of memory that grew in the run from which on growth is a reason, beside the tensor.
GREW = 0.3
# Functions that make a row of zeros and a one for each class number.
ONE_HOT = frozenset(["to_categorical", "one_hot", "get_dummies", "OneHotEncoder"])
CLASSES = 100  # Classes from which on one-hot rows in float32 take most of the memory of usual examples
MODELS = 3  # Models from which on what the earlier ones left may be the reason
# First dimension of a tensor up to which it may be a batch; larger ones are examples or features.
LARGEST_BATCH = 65_536


def check(
    ending: RunEnding, phases: RunPhases | None, calls: RunCalls | None, memory: MemoryTrends | None,
    program: Program | None, tuned: TunedBuffers | None,
) -> Verdict:  # fmt: skip
    """Report the end of the run, if it was for lack of memory."""
    peaks = {
        "peak of the process (RSS)": ending.peak_bytes,
        "limit of the memory": ending.limit_bytes,
        "peak of the accelerator": ending.device_peak_bytes,
    }
    measures = [Measure(label, nbytes(value)) for label, value in peaks.items() if value]
    if ending.kind is EndKind.RUNNING:
        return NotApplicable(reason="the end of the run was not recorded")
    if ending.kind is EndKind.KILLED:
        return NotApplicable(reason="a signal killed the run, and the kernel counted no kill for lack of memory")
    if ending.kind is not EndKind.OUT_OF_MEMORY:
        summary = f"The run ended {ENDED[ending.kind]}, not for lack of memory"
        if ending.peak_bytes:
            of = f" of {quantity(nbytes(ending.limit_bytes))}" if ending.limit_bytes else ""
            summary += f"; its peak was {quantity(nbytes(ending.peak_bytes))}{of}"
        return Healthy(summary=summary, evidence=tuple(measures), concern=Concern.RUN)
    wanted = ending.wanted_bytes
    who = "The kernel killed the run for lack of memory" if ending.killed_by_kernel else "The run ran out of memory"
    device = f" of {ending.allocator}" if ending.allocator else ""
    phase = f" during {DURING.get(ending.phase, ending.phase)}" if ending.phase else ""
    at = f" at {location(ending.at)}" if ending.at else ""
    shape = f" of shape {list(ending.shape)}" if ending.shape else ""
    asked = f", which asked for {quantity(nbytes(wanted))}{shape}" if wanted else ""
    columns = ("line" if ending.at else "line with most time of the phase", "phase", "error")
    rows = [(ending.at, str(ending.phase or "unknown"), ending.error or "killed")] if ending.at else []
    if phases and ending.phase and not ending.at:  # the line that ran most in that phase may be it
        sure = (line for line in phases.at(ending.phase) if line.at and line.sure)
        rows = [(line.at, str(line.phase), "not known") for line in sure if line.at][:1]
    buffers = tuned if ending.killed_by_kernel else None  # the host's memory, and no single tensor
    return Finding(
        summary=f"{who}{device}{phase}{at}{asked}",
        evidence=(
            *([Measure("memory asked for last", nbytes(wanted))] if wanted else ()),
            *measures,
            *([Table(columns, tuple(rows))] if rows else ()),
            *(buffers.evidence if buffers else ()),
        ),
        remedies=(
            *_remedies(ending, calls, memory, phases, program.batch_size if program else None),
            *((buffers.remedy,) if buffers else ()),
        ),
        severity=Severity.CRITICAL,
        concern=Concern.RUN,
        failure=RunFailure.HAPPENED,
    )


def _remedies(
    ending: RunEnding, calls: RunCalls | None, memory: MemoryTrends | None, phases: RunPhases | None,
    batch: int | None,
) -> Iterator[Remedy]:  # fmt: skip
    """Yield what to change where memory was filled by what grew, unless one tensor would never have fitted.

    Then what to change in the phase that died, the likeliest first.
    """
    too_large = ending.wanted_bytes and ending.limit_bytes and ending.wanted_bytes > ending.limit_bytes
    trends = memory.memories if memory and not too_large else ()
    if max((call.models or 0 for call in (calls.calls if calls else ())), default=0) >= MODELS:
        yield Remedy("Forget each model before the next one is built", CODE["session"])
    elif any(one.trend.grows and one.grown >= GREW * one.trend.last for one in trends):
        yield Remedy("Find what grows from step to step: see growing-memory", CODE["keep"])
    own = [line for line in phases.lines if line.at == ending.at] if phases and ending.at else []
    names = {line.calls.rpartition(".")[2] for line in own}
    if names & ONE_HOT and (not ending.shape or ending.shape[-1] >= CLASSES):
        yield Remedy("Keep class numbers and use a sparse loss", CODE["sparse"], ending.at)
    match ending.phase:
        case Phase.PREDICTION | Phase.EVALUATION:
            yield Remedy(
                "Compute results in smaller batches, and keep only what is needed", CODE["parts"], ending.at
            )
        case Phase.BUILDING:
            yield Remedy("Make the layer smaller that holds most weights", CODE["smaller"], ending.at)
        case Phase.STEPS | Phase.TRACING | Phase.BOUNDARIES:
            first = ending.shape[0] if ending.shape else None
            of = f" from {number(batch)}" if batch and batch == first else ""
            known = batch or (first if first and first <= LARGEST_BATCH and len(ending.shape) > 1 else None)
            smaller = max(1, known // 2) if known else 32  # Keras' own
            code = CODE["batch"].format(smaller)
            yield Remedy(f"Reduce the batch size{of}, to {number(smaller)} at first", code, ending.at)
            yield Remedy(
                "Keep the size of the update: add up the gradients of several small batches", CODE["accumulate"]
            )
            if ending.allocator:
                yield Remedy("Compute in 16 bit, which halves the activations", CODE["policy"])
        case _:
            yield Remedy("Read and convert the data in batches instead of one array", CODE["batches"], ending.at)
            if ending.dtype == "float64":
                yield Remedy("Keep the data as float32, half of the memory of float64", CODE["float32"], ending.at)
