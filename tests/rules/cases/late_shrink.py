"""The cases of late-shrink: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.late_shrink import Buffer, Buffers, check
from tfdoctor.rules.input.late_shrink.full_size_work import FullSizeOperation, FullSizeWork, LateShrinking


def example(
    elements: int = 10_000,
    each: int = 602_112,
    least: int = 1024,
    *,
    grows: bool = True,
    unknown: tuple[Dataset, ...] = (),
    memory: HostMemory | None = None,
) -> Verdict:
    """A shuffle buffer holds 10,000 images that a map reads and decodes before it."""
    size = DatasetParameters(buffer_size=elements)
    shuffle = dataset_of("Shuffle", id=1, parameters=size, at=Location("train.py", 9))
    decode = dataset_of("ParallelMap", function="decode")
    held = Buffer(dataset=shuffle, elements=elements, each=each, least=least, by=decode, grows=grows)
    return check(Buffers((held,), unknown), FullSizeWork(), memory)


def order(
    large: tuple[int, int] = (224, 224),
    small: tuple[int, int] = (64, 64),
    spent: float = 24.0,
    *,
    kind: str = "ResizeBilinear",
    waits: bool = True,
    contention: CpuContention | None = None,
) -> Verdict:
    """Images are flipped and saturated at 224 by 224 pixels, and resized to 64 by 64 after that."""
    made = dataset_of("ParallelMap", function="augment", at=Location("train.py", 31))
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", 30.0, 2, dataset=made)
    work = FullSizeOperation(stage, "AdjustSaturation", spent, Location("train.py", 21))
    late = LateShrinking(kind, large, small, (work,), Location("train.py", 26))
    awaited = frozenset((stage.path,)) if waits else frozenset()
    return check(Buffers(()), FullSizeWork((late,), awaited, contention, 25.0), None)


sick = order


def healthy() -> Verdict:
    """The same work is done on images that are hardly larger."""
    return order((72, 72))
