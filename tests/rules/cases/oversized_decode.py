"""The cases of oversized-decode: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.input.map_functions import DecodedImage
from tfdoctor.rules.input.oversized_decode import check


def example(  # noqa: PLR0913, PLR0917 - what the verdict depends on
    decoded: tuple[int, int] = (720, 960),
    used: tuple[int, int] = (96, 96),
    share: float = 0.9,
    ratio: int = 1,
    work: float = 60.0,
    step: Breakdown | None = None,
    contention: CpuContention = CpuContention(crowded=False),
    cores: Cores | None = None,
) -> Verdict:
    """Photos of 960 by 720 pixels are resized to 96 by 96."""
    made = Dataset(
        id=1,
        kind="_ParallelMapDataset",
        function="load",
        function_at=Location("train.py", 12),
        at=Location("train.py", 20),
    )
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", work, 2, dataset=made)
    image = DecodedImage(stage, "DecodeJpeg", decoded, used, share, ratio, Location("train.py", 14))
    return check(
        DecodedImages((image,)),
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        step or Breakdown.of(input=20.0, device=10.0),
        contention,
        cores,
    )


sick = example


def healthy() -> Verdict:
    """The same network with stored images of 128 by 128."""
    return example((128, 128))
