"""The cases of per-element-map: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.per_element_map import PRECONDITIONS, check

CSV = Dataset(id=1, kind="_ParallelMapDataset", function="columns", at=Location("train.py", 12))


CHEAP = frozenset(("DecodeCSV", "Pack"))


def example(  # noqa: PLR0913 - what a call costs, and what needs it
    stage: StageTime = StageTime.of("Root::Prefetch::MapAndBatch", 7.7, 1.4, dataset=CSV),
    types: frozenset[str] = CHEAP,
    nbytes: int | None = 300,
    batch: int = 256,
    *,
    fixed: bool = True,
    wait: float = 5.8,
    contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:
    """CSV rows are decoded one by one: 256 calls of 0.03 ms per step."""
    return PRECONDITIONS[1](Breakdown.of(input=wait, host=2.3)) or check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        MapFunctions({CSV.id: MapFunction(types, nbytes, batch, fixed)}),
        contention,
    )


sick = example


def healthy() -> Verdict:
    """The same number of calls, each of which writes 20 kB."""
    return example(nbytes=20_000)
