"""missing-prefetch: work is done while the step waits, and nothing that ran works ahead."""

from tests.rules.kit import *
from tfdoctor.rules.input.missing_prefetch import check


def example(*stages: StageTime, wait: float = 10.0, cores: Cores | None = Cores(4.0, busy=1.0)) -> Verdict:
    """A map of 10 ms runs right before the training loop, without prefetch."""
    pipeline = InputPipeline.of(*(stages or [stage_time("Root::Map", 10.0)]))
    return check(pipeline, Breakdown.of(input=wait, device=30.0 - wait), cores)


def healthy() -> Verdict:
    """The same map, with a prefetch that tf.data adds by itself."""
    ahead = stage_time("Root::Prefetch", name="inject/prefetch_MapDataset/_3")
    return example(ahead, stage_time("Root::Prefetch::Map", 10.0), wait=0.0, cores=None)


sick = example


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["others may use the free cores"] = example(cores=Cores(4.0, busy=1.0, others=2.0))
    told["cores that were not sampled, and unknown ones"] = example(cores=Cores(4.0, busy=1.0, sampled=False))
    told[...] = example(cores=None)
    written = Dataset(id=1, kind="_MapDataset", at=Location("t.py", 9))
    told["the map's line"] = example(stage_time("Root", 0.05), stage_time("Root::Map", 10.0, dataset=written))
    for kind in ("Prefetch", "ParallelMapV2", "MapAndBatch", "ParallelBatch"):
        ahead = stage_time(f"Root::{kind}")
        told[f"{kind} works ahead"] = example(ahead, stage_time(f"Root::{kind}::Map", 10.0))
    told["prefetch() before a heavy map: the map runs while the trainer waits"] = example(
        stage_time("Root::Map", 10.0), stage_time("Root::Map::Prefetch")
    )
    light = "Root::MaxIntraOpParallelism"
    told["a prefetch below none"] = example(stage_time(light, NEGLIGIBLE_MS), stage_time(f"{light}::Prefetch"))
    told["work that matters, and less"] = example(stage_time("Root::Map", NEGLIGIBLE_MS * 1.0))
    told[...] = example(stage_time("Root::Map", NEGLIGIBLE_MS * 0.9))
    told["a step that waits 5 % of its time, and less"] = example(wait=1.5), example(wait=1.4)
