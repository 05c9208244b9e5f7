"""oversized-decode: images that are decoded larger than the pipeline uses them."""

from tests.rules.kit import *
from tfdoctor.rules.input import oversized_decode

LOAD = Dataset(id=1, kind="_MapDataset", inputs=(0,), function="load", function_at=script(3))
PATHS = Dataset(id=0, kind="_TensorSliceDataset", files=FileList(4, image=(400, 600)))
CROWDED = CpuContention(crowded=True, cores=2.0, compute_ms=9.0, beside=1.0)


def example(  # noqa: PLR0913, PLR0917 - what the verdict depends on
    decoded: tuple[int, int] = (720, 960), used: tuple[int, int] = (96, 96), share: float = 0.9, ratio: int = 1,
    work: float = 60.0, step: Breakdown | None = None, contention: CpuContention = CpuContention(crowded=False),
    cores: Cores | None = None,
) -> Verdict:  # fmt: skip
    """Photos of 960 by 720 pixels are resized to 96 by 96."""
    made = Dataset(id=1, kind="_ParallelMapDataset", function="load", function_at=script(12), at=script(20))
    stage = stage_time("Root::Prefetch::ParallelMapV2", work, 2, dataset=made)
    image = DecodedImage(stage, "DecodeJpeg", decoded, used, share, ratio, script(14))
    pipeline = InputPipeline.of(PREFETCH, stage)
    whole = step or Breakdown.of(input=20.0, device=10.0)
    return oversized_decode.check(DecodedImages((image,)), pipeline, whole, contention, cores)


def check(decoded: tuple[int, int] = (400, 600), wait: float = 8.0, **more: Any) -> Verdict:
    """Images of 100 by 150 pixels are used in steps of 10 ms."""
    step = Breakdown.of(input=wait, device=10.0 - wait)
    cores = more.pop("cores", Cores(2.0, 1.9))
    return example(decoded, (100, 150), work=10.0, step=step, cores=cores, **more)


def measured(*kinds: str, ratio: int = 1, paths: Dataset = PATHS) -> DecodedImages:
    """Measure a function of these operations, each on the result of the one before."""
    attrs, shapes = (
        Attributes(ratio=ratio),
        [(1, 100, 150, 3) if kind.startswith("Resize") else None for kind in kinds],
    )
    rows = tuple(
        RecordedOperation(kind, kind, outputs=(("float32", of),), sources=(at - 1,) if at else (), attrs=attrs)
        for at, (kind, of) in enumerate(zip(kinds, shapes, strict=True))
    )
    times = dict.fromkeys(kinds, 2.0)
    work = InputPipeline.of(stage_time("Root::Map", 10.0, dataset=LOAD, image_ms=9.0, operations=times))
    graphs = FunctionGraphs({1: RecordedGraph(rows)} if rows else {})
    return DecodedImages.measure(work, DatasetProperties((LOAD, paths)), graphs)


sick = example
healthy = described("The same network with stored images of 128 by 128.", example, (128, 128))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["both sides are twice as large as used"] = check((200, 300))
    told["one side is less than twice as large, or both are as used"] = check((199, 600)), check((100, 150))
    told["decoding is a fifth of the work, and less"] = check(share=0.2), check(share=0.19)
    told["it takes a fifth of the compute, and less"] = check(share=0.44, wait=0.1, contention=CROWDED)
    told[...] = check(share=0.4, wait=0.1, contention=CROWDED)
    told["without a wait, where cores are free"] = check(share=0.44, wait=0.1)
    told["a step that hardly waits shows the cores that decoding takes"] = check(wait=0.2, contention=CROWDED)
    told["cores that other programs use"] = check(wait=0.2, contention=CROWDED, cores=Cores(2.0, 1.0, others=0.9))
    told["JPEG is decoded at a fraction that stays large enough"] = check()
    told["JPEG that is decoded at a fraction already"] = check(ratio=2)


@golden_cases
def test_images(told: Cases) -> None:
    def images(name: str, *kinds: str, **more: Any) -> None:
        told[name] = lambda: [
            f"{one.decoded} to {one.used}, {one.share} of the work" for one in measured(*kinds, **more).images
        ]

    images("followed to the resizing", "ReadFile", "DecodeJpeg", "ExpandDims", "ResizeBilinear")
    images("decoded at a quarter", "DecodeJpeg", "ResizeBilinear", ratio=4)
    images("a crop may be as large as what it is resized to", "DecodeJpeg", "StridedSlice", "ResizeBilinear")
    images("sizes that were not recorded", paths=replace(PATHS, files=None))
