"""oversized-decode: images that are decoded larger than the pipeline uses them."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.input.map_functions import DecodedImage
from tfdoctor.recording.program import Attributes
from tfdoctor.rules.input import oversized_decode


def example(  # noqa: PLR0913, PLR0917 - what the verdict depends on
    decoded: tuple[int, int] = (720, 960), used: tuple[int, int] = (96, 96), share: float = 0.9, ratio: int = 1,
    work: float = 60.0, step: Breakdown | None = None, contention: CpuContention = CpuContention(crowded=False),
    cores: Cores | None = None,
) -> Verdict:  # fmt: skip
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
    return oversized_decode.check(
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


LOAD = Dataset(id=1, kind="_MapDataset", inputs=(0,), function="load", function_at=Location("train.py", 3))
PATHS = Dataset(id=0, kind="_TensorSliceDataset", files=FileList(4, image=(400, 600)))
CROWDED = CpuContention(crowded=True, cores=2.0, compute_ms=9.0, beside=1.0)


def check(decoded: tuple[int, int] = (400, 600), wait: float = 8.0, **more: Any) -> Verdict:
    """Images of 100 by 150 pixels are used in steps of 10 ms."""
    step = Breakdown.of(input=wait, device=10.0 - wait)
    cores = more.pop("cores", Cores(2.0, 1.9))
    return example(decoded, (100, 150), work=10.0, step=step, cores=cores, **more)


def test_both_sides_must_be_larger() -> None:
    found = [check(decoded) for decoded in ((200, 300), (199, 600), (100, 150))]
    assert kinds(*found) == [Finding, Healthy, Healthy]


def test_decoding_must_be_a_part_of_the_work() -> None:
    assert kinds(check(share=0.2), check(share=0.19)) == [Finding, Healthy]


def test_without_a_wait_it_must_take_cores_from_the_compute() -> None:
    """15/16 of the pixels are spared: of 4.27 ms on two cores, 2 ms of the step of 10 ms."""
    found = [check(share=share, wait=0.1, contention=CROWDED) for share in (0.44, 0.4)]
    assert kinds(*found, check(share=0.44, wait=0.1)) == [Finding, Healthy, Healthy]


def test_a_step_that_hardly_waits_shows_the_cores_that_decoding_takes() -> None:
    """9 ms per step, 15/16 of them spared: 4.22 ms of two cores, in steps of 10 ms."""
    verdict = as_finding(check(wait=0.2, contention=CROWDED))
    assert "cores that the model's operations need: the run keeps 1.9 of its 2" in verdict.summary
    measure = verdict.evidence[0]
    assert isinstance(measure, Measure)
    assert (measure.value.value, measure.limit and measure.limit.value) == (near(4.22, rel=1e-3), 2.0)
    assert verdict.effects[1].why == "it shares 2 cores with 8.44 ms of this input work per step"


def test_cores_that_other_programs_use_prove_nothing_about_decoding() -> None:
    verdict = as_not_applicable(check(wait=0.2, contention=CROWDED, cores=Cores(2.0, 1.0, others=0.9)))
    assert "other programs used 0.9 of 2 cores" in verdict.reason


def test_jpeg_is_decoded_at_a_fraction_that_stays_large_enough() -> None:
    assert "ratio=4" in first_code(check())
    assert effects(check())[0][2] == near(1.0 - 0.9 * 15 / 16)
    assert not any("ratio" in remedy.code for remedy in as_finding(check(ratio=2)).remedies)


def test_unknown_sizes_are_not_judged() -> None:
    alone, step = CpuContention(crowded=False), Breakdown.of(input=8.0, device=2.0)
    verdict = oversized_decode.check(Unavailable("text"), InputPipeline.of(), step, alone, None)
    assert isinstance(verdict, NotApplicable)


def measured(*kinds: str, ratio: int = 1, paths: Dataset = PATHS) -> DecodedImages:
    """Measure a function of these operations, each on the result of the one before."""
    rows = tuple(
        RecordedOperation(
            kind,
            kind,
            outputs=(("float32", (1, 100, 150, 3) if kind.startswith("Resize") else None),),
            sources=(at - 1,) if at else (),
            attrs=Attributes(ratio=ratio),
        )
        for at, kind in enumerate(kinds)
    )
    times = dict.fromkeys(kinds, 2.0)
    work = InputPipeline.of(StageTime.of("Root::Map", 10.0, dataset=LOAD, image_ms=9.0, operations=times))
    graphs = FunctionGraphs({1: RecordedGraph(rows)} if rows else {})
    return DecodedImages.measure(work, DatasetProperties((LOAD, paths)), graphs)


def test_an_image_is_followed_to_the_operation_that_resizes_it() -> None:
    (image,) = measured("ReadFile", "DecodeJpeg", "ExpandDims", "ResizeBilinear").images
    assert (image.decoded, image.used, image.share) == ((400, 600), (100, 150), 0.5)
    (image,) = measured("DecodeJpeg", "ResizeBilinear", ratio=4).images
    assert image.decoded == (100, 150)


def test_a_crop_before_the_resizing_uses_the_full_size() -> None:
    """The part may be as large as what it is resized to."""
    assert not measured("DecodeJpeg", "StridedSlice", "ResizeBilinear").images


def test_without_recorded_sizes_nothing_is_said() -> None:
    with pytest.raises(Unavailable, match="size of the stored images"):
        measured(paths=replace(PATHS, files=None))
