"""The cases of out-of-memory: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.rules.run.out_of_memory import check

GPU_FULL = RunEnding(
    kind=EndKind.OUT_OF_MEMORY, error="ResourceExhaustedError", at=Location("train.py", 52), phase=Phase.STEPS,
    shape=(512, 64, 224, 224), dtype="float", allocator="GPU_0_bfc", peak_bytes=3.1e9, limit_bytes=64e9,
    device_peak_bytes=15.2e9,
)  # fmt: skip


def example(
    ending: RunEnding = GPU_FULL,
    *lines: RunLine,
    calls: RunCalls | None = None,
    memory: MemoryTrends | None = None,
    tuned: TunedBuffers | None = None,
) -> Verdict:
    """The activations of a batch of 512 do not fit on the GPU."""
    phases = divided_run(60e3, {}, *lines) if lines else None
    return check(ending, phases, calls, memory, None, tuned)


sick = example


def healthy() -> Verdict:
    """The run ends by itself, with a tenth of the memory."""
    return example(RunEnding(kind=EndKind.EXIT, peak_bytes=3.1e9, limit_bytes=32e9))
