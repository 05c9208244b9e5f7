"""The cases of window-datasets: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.window_datasets import WindowJoin, WindowJoins, check


def example(
    *inner: StageTime,
    work: float = 12.8,
    calls: float = 128.0,
    each: float | None = 164.0,
    step: Breakdown | None = None,
    contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:
    """Each of 128 windows per step takes 0.1 ms and holds 164 bytes."""
    made = Dataset(id=2, kind="_FlatMapDataset", at=Location("train.py", 12))
    join = StageTime.of("Root::Prefetch::FlatMap", work, calls=calls, dataset=made)
    return check(
        WindowJoins((WindowJoin(join, inner, nbytes=each, batch=128),)),
        InputPipeline.of(StageTime.of("Root::Prefetch"), join, *inner),
        step or Breakdown.of(input=9.0, device=4.0),
        contention,
    )


sick = example


def healthy() -> Verdict:
    """The same number of windows, each of 80 kB."""
    return example(each=80_000.0)
