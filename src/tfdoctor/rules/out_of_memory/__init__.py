from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.growth.filling_memory import MemoryTrends
from tfdoctor.facts.input.tuned_buffers import TunedBuffers
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.rules.out_of_memory.remedies import Circumstances, remedies
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.verdict import RunFailure

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"

BY_HAND = "a smaller batch or other data change the training"

ENDED = {EndKind.EXIT: "by itself", EndKind.EXCEPTION: "by an exception", EndKind.INTERRUPT: "by an interrupt"}
"""How runs end that had enough memory."""

WIDTHS = {"double": 8, "float64": 8, "int64": 8, "complex64": 8, "float": 4, "float32": 4, "int32": 4, "half": 2,
          "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "bool": 1}  # fmt: skip
"""Bytes of an element, by the names of NumPy and of TensorFlow's messages."""


def check(
    ending: RunEnding,
    phases: RunPhases | None,
    calls: RunCalls | None,
    memory: MemoryTrends | None,
    program: Program | None,
    tuned: TunedBuffers | None,
) -> Verdict:
    """Report the end of the run, if it was for lack of memory."""
    if ending.kind is EndKind.OUT_OF_MEMORY:
        buffers = tuned if ending.killed_by_kernel else None  # the host's memory, and no single tensor
        return Finding(
            summary=_summary(ending),
            evidence=(*_evidence(ending, phases), *(buffers.evidence if buffers else ())),
            remedies=(
                *remedies(ending, _fit(ending, phases, calls, memory, program)),
                *((buffers.remedy,) if buffers else ()),
            ),
            severity=Severity.CRITICAL,
            concern=Concern.RUN,
            failure=RunFailure.HAPPENED,
        )
    if ending.kind is EndKind.RUNNING:
        return NotApplicable(reason="the end of the run was not recorded")
    if ending.kind is EndKind.KILLED:
        return NotApplicable(reason="a signal killed the run, and the kernel counted no kill for lack of memory")
    summary = f"The run ended {ENDED[ending.kind]}, not for lack of memory"
    if ending.peak_bytes:
        of = f" of {quantity(nbytes(ending.limit_bytes))}" if ending.limit_bytes else ""
        summary += f"; its peak was {quantity(nbytes(ending.peak_bytes))}{of}"
    return Healthy(summary=summary, evidence=_peaks(ending), concern=Concern.RUN)


def _fit(
    ending: RunEnding,
    phases: RunPhases | None,
    calls: RunCalls | None,
    memory: MemoryTrends | None,
    program: Program | None,
) -> Circumstances:
    """Gather what decides which change fits.

    Memory was filled by what grew, unless one tensor would never have fitted.
    """
    at, wanted = ending.at, bytes_wanted(ending)
    lines = phases.lines if phases and at else ()
    made = [call.models or 0 for call in calls.calls] if calls else []
    too_large = wanted and ending.limit_bytes and wanted > ending.limit_bytes
    trends = memory.memories if memory and not too_large else ()
    return Circumstances(
        batch=program.batch_size if program else None,
        calls=frozenset(line.calls for line in lines if line.at == at and line.calls),
        models=max(made, default=0),
        grew=any(one.trend.grows and one.grown >= GREW * one.trend.last for one in trends),
    )


GREW = 0.3
"""Share of the last level of memory that grew in the run from which on growth is a reason, beside the tensor."""


def _summary(ending: RunEnding) -> str:
    by_kernel = "The kernel killed the run for lack of memory"
    who = by_kernel if ending.killed_by_kernel else "The run ran out of memory"
    device = f" of {ending.allocator}" if ending.allocator else ""
    phase = f" during {DURING.get(ending.phase, ending.phase)}" if ending.phase else ""
    at = f" at {location(ending.at)}" if ending.at else ""
    wanted = bytes_wanted(ending)
    if not wanted:
        return f"{who}{device}{phase}{at}"
    shape = f" of shape {list(ending.shape)}" if ending.shape else ""
    return f"{who}{device}{phase}{at}, which asked for {quantity(nbytes(wanted))}{shape}"


DURING = {
    Phase.START: "the start",
    Phase.STEPS: "the training steps",
    Phase.BUILDING: "the building of the model",
    Phase.BOUNDARIES: "the boundary of an epoch",
    Phase.END: "the end of the run",
    Phase.UNNAMED: "a part of the run without a name",
}
"""Phases as the object of "during"; the others are called by their names."""


def _evidence(ending: RunEnding, phases: RunPhases | None) -> Iterator[Evidence]:
    """Yield sizes, and where it ended: without a line, the one that ran most in that phase may be it."""
    if wanted := bytes_wanted(ending):
        yield Measure("memory asked for last", nbytes(wanted))
    yield from _peaks(ending)
    if ending.at:
        rows = ((ending.at, str(ending.phase or "unknown"), ending.error or "killed"),)
        yield Table(("line", "phase", "error"), rows)
    elif phases and ending.phase:
        lines = [line for line in phases.at(ending.phase) if line.at and line.sure]
        if lines:
            yield Table.of(
                lines[:1],
                ("line with most time of the phase", lambda line: line.at),
                ("phase", lambda line: str(line.phase)),
                ("error", lambda _: "not known"),
            )


def bytes_wanted(ending: RunEnding) -> float | None:
    """Return what was asked for: as the message says, else by the tensor's shape and type."""
    if ending.wanted_bytes:
        return ending.wanted_bytes
    width = WIDTHS.get(ending.dtype)
    return float(prod(ending.shape) * width) if ending.shape and width else None


def _peaks(ending: RunEnding) -> tuple[Measure, ...]:
    values = {
        "peak of the process (RSS)": ending.peak_bytes,
        "limit of the memory": ending.limit_bytes,
        "peak of the accelerator": ending.device_peak_bytes,
    }
    return tuple(Measure(label, nbytes(value)) for label, value in values.items() if value)
