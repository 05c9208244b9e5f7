"""The cases of small-files: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.program import FileList
from tfdoctor.rules.files.small_files import PRECONDITIONS, check
from tfdoctor.rules.files.small_files.read_sizes import ReadSizes


def example(
    *stages: StageTime,
    files: FileList | None = FileList(count=10_000, nbytes=3_000),
    wait: float = 30.0,
    sizes: ReadSizes | Unavailable = Unavailable("not recorded"),
    functions: MapFunctions | None = None,
) -> Verdict:
    """Each step opens 256 files of 3 kB, for 25 of the 40 ms that a batch takes."""
    reader = StageTime.of("Root::Prefetch::Map", 40.0, reading_ms=25.0, reads=256.0)
    return PRECONDITIONS[1](Breakdown.of(input=wait, device=40.0 - wait)) or check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or (reader,))),
        DatasetProperties((Dataset(id=0, kind="_TensorSliceDataset", files=files),)),
        sizes,
        functions,
    )


sick = example


def healthy() -> Verdict:
    """The same number of files of 4 MB each."""
    return example(files=FileList(count=10_000, nbytes=4_000_000))
