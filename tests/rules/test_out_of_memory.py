"""out-of-memory: what died, where, and what fits instead."""

from tests.rules.kit import *
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.run.program import WIDTHS
from tfdoctor.rules.run.out_of_memory import check

GPU_FULL = RunEnding(
    kind=EndKind.OUT_OF_MEMORY, error="ResourceExhaustedError", at=script(52), phase=Phase.STEPS,
    shape=(512, 64, 224, 224), dtype="float32", allocator="GPU_0_bfc", peak_bytes=3.1e9, limit_bytes=64e9,
    device_peak_bytes=15.2e9,
)  # fmt: skip
AT = script(52)
DIED = replace(GPU_FULL, shape=(256, 64, 112, 112))
READ = replace(
    DIED, error="MemoryError", phase=Phase.PREPARING, shape=(1_000_000, 784), dtype="float64", allocator=""
)
KILLED = replace(DIED, at=None, error="", shape=(), killed_by_kernel=True, allocator="")


def example(
    ending: RunEnding = GPU_FULL, *lines: RunLine, calls: RunCalls | None = None,
    memory: MemoryTrends | None = None, tuned: TunedBuffers | None = None,
) -> Verdict:  # fmt: skip
    """The activations of a batch of 512 do not fit on the GPU."""
    phases = divided_run(60e3, {}, *lines) if lines else None
    if ending.shape:  # as its message has it
        ending = replace(ending, wanted_bytes=float(math.prod(ending.shape) * WIDTHS[ending.dtype]))
    return check(ending, phases, calls, memory, None, tuned)


def filling(first: float) -> MemoryTrends:
    trend = Trend(what=Grows.RESIDENT, first=first, last=9e9, slope=1e8, low=9e7, steady=True)
    return MemoryTrends((FillingMemory(trend=trend),))


sick = example
healthy = described(
    "The run ends by itself, with a tenth of the memory.",
    example,
    RunEnding(kind=EndKind.EXIT, peak_bytes=3.1e9, limit_bytes=32e9),
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a batch of 256"] = example(DIED)
    told["the CPU's memory"] = example(replace(DIED, allocator=""))
    for shape in ((1_000_000, 8), (512,), ()):
        told[f"a first dimension that is no batch: {shape}"] = example(replace(DIED, shape=shape))
    told["data that is read as float64"] = example(READ)
    told["data that is read as uint8"] = example(replace(READ, dtype="uint8"))
    for phase in (Phase.PREDICTION, Phase.BUILDING, None):
        told[f"memory ran out while {phase or 'an unknown phase'}"] = example(replace(READ, phase=phase))
    one_hot = "keras.utils.to_categorical"
    for calls, classes in ((one_hot, 10_000), (one_hot, 10), ("numpy.zeros", 10_000)):
        line = RunLine(phase=Phase.PREPARING, at=AT, ms=900.0, samples=9, calls=calls)
        told[f"{classes} columns made by {calls}"] = example(replace(READ, shape=(1_000_000, classes)), line)
    for kind in (EndKind.EXIT, EndKind.EXCEPTION, EndKind.INTERRUPT, EndKind.KILLED, EndKind.RUNNING):
        told[f"a run that ended by {kind}"] = example(replace(DIED, kind=kind))


@golden_cases
def test_causes(told: Cases) -> None:
    told["what grew before comes first"] = example(DIED, memory=filling(1e9))
    fit = MadeCall(call=RunCall.FIT, name="Model.fit", at=None, count=3, ms=9e4, models=3)
    told["several models grew"] = example(DIED, memory=filling(1e9), calls=RunCalls((fit,)))
    for name, first, limit in (
        ("growth filled 30 % of the memory", 6.3e9, 64e9),
        ("growth filled less", 6.4e9, 64e9),
        ("it would never have fitted", 1e9, 0.8e9),
    ):
        told[name] = example(replace(DIED, limit_bytes=limit), memory=filling(first))
    tuned = TunedBuffers((dataset_of("Prefetch", at=script(22)),), 38_535_168)
    told["buffers that tf.data sizes may have filled the host's memory"] = example(KILLED, tuned=tuned)
    told["they did not fill the GPU's"] = example(DIED, tuned=tuned)
    sure = RunLine(phase=Phase.STEPS, at=AT, ms=900.0, samples=9)
    told["a kill names the line of its phase only as the one with most time"] = example(KILLED, sure)
    told["a kill with few samples names none"] = example(KILLED, replace(sure, samples=4))
