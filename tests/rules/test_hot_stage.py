"""hot-stage: the stages that steps wait for, where no other finding says why."""

from tests.rules.kit import *
from tfdoctor.rules.input.hot_stage import check

MAP = Dataset(id=1, kind="MapDataset", function="decode", function_at=script(4), at=script(9))


def example(
    *stages: StageTime, wait: float = 30.0, left: float | None = None, subjects: frozenset[str] = frozenset()
) -> Verdict:
    """A function takes 40 ms per step, and steps wait 30 ms for it."""
    slow = StageTime.of("Root::Prefetch::Map", 40.0)
    unexplained = wait if left is None else left
    return check(
        Unexplained({Stage.INPUT: unexplained} if unexplained else {}, subjects),
        Breakdown.of(input=wait, device=40.0 - wait),
        InputPipeline.of(PREFETCH, *(stages or [slow])),
    )


sick = example
healthy = described("Steps do not wait.", example, StageTime.of("Root::Prefetch::Map", 0.5), wait=0.1, left=0.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["at most the wait is promised"] = example(StageTime.of("Root::Prefetch::Map", 20.0, dataset=MAP), left=5.0)
    told["a tenth of the step, and less"] = [example(StageTime.of("Root::Prefetch::Map", ms)) for ms in (4.0, 3.99)]
    told["an explained wait or stage"] = (example(left=0.0), example(subjects=frozenset(("Root::Prefetch::Map",))))
    told["a stage of unknown time"] = example(StageTime.of("Root::Prefetch::Map"))
    told["the generator of a user is named as such"] = example(StageTime.of("Root::Prefetch::Generator", 20.0))
    slow = StageTime.of("Root::Prefetch::ParallelMapV2::Filter", 14.0)
    told["a stage beside the slowest segment"] = example(StageTime.of("Root::Prefetch::ParallelMapV2", 8.0), slow)
