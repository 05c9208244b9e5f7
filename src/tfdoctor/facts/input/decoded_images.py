"""Images that the pipeline decodes and resizes: their stored size, and the size that it uses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.function_graphs import FunctionGraphs
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.operation_types import SHAPES
from tfdoctor.recording.program import RecordedGraph, RecordedOperation
from tfdoctor.terms.verdict import Location

DECODERS = re.compile(r"Decode(?:Image|Jpeg|Png)")  # Operations that decode a whole image
# Operations that change an image's size.
RESIZERS = re.compile(r"Resize(?:Area|Bicubic|Bilinear|NearestNeighbor)|ScaleAndTranslate")

# Operations that keep the height and width of an image.
SAME_SIZE = frozenset(
    ("Identity", "Cast", "ExpandDims", "Squeeze", "Mul", "Sub", "Add", "AddV2", "RealDiv", "EnsureShape",
     "CheckNumerics", "Maximum", "Minimum", "ClipByValue")
)  # fmt: skip

# Factor by which both sides of a decoded image exceed the used size when it is too large: JPEG's least ratio.
OVERSIZED_TIMES = 2.0
Size = tuple[int, int]  # Height and width in pixels


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """One decoding, and the resizing of its result in the same function.

    ``decoded`` is the size after JPEG's own division by ``ratio``, ``used`` that after the resizing. ``share``,
    0 to 1, is that of both operations in the time of all operations of the ``stage``'s function.
    """

    stage: StageTime
    type: str  # "DecodeJpeg"
    decoded: Size
    used: Size
    share: float
    ratio: int = 1
    at: Location | None = None

    @property
    def times(self) -> float:
        """By how much the decoded image is larger in both directions, at least."""
        return min(decoded / used for decoded, used in zip(self.decoded, self.used, strict=True))

    @property
    def kept(self) -> float:
        """The share of the decoded pixels that the used size has, 0 to 1."""
        (height, width), (used_height, used_width) = self.decoded, self.used
        return min(1.0, used_height * used_width / (height * width))

    @property
    def work_ms(self) -> float:
        """The decoding and resizing in ms per step, summed over threads."""
        return self.share * self.stage.work_ms

    @property
    def spared_ms(self) -> float:
        """What smaller images take less of it."""
        return self.work_ms * (1.0 - self.kept)


@dataclass(frozen=True, slots=True)
class DecodedImages:
    """All images whose stored and used sizes are known."""

    images: tuple[DecodedImage, ...] = ()

    @classmethod
    def measure(
        cls, pipeline: InputPipeline, properties: DatasetProperties, graphs: FunctionGraphs | Unavailable
    ) -> Self:
        """Follow the data from each decoder to the operation that resizes its result.

        Raises:
            Unavailable: an image is decoded, but its stored size or what becomes of it was not recorded.
        """
        decoding = [stage for stage in pipeline.stages if stage.image_ms]
        if not decoding:
            return cls()
        if isinstance(graphs, Unavailable):
            raise graphs
        stored = {data.files.image for data in properties.chain if data.files and data.files.image}
        if len(stored) != 1:
            raise Unavailable(
                "the size of the stored images was not recorded: the pipeline does not begin with paths of local "
                "JPEG or PNG files"
            )
        ((height, width, *_),) = stored
        return cls(tuple(_images(decoding, graphs, (height, width))))


def _images(stages: Sequence[StageTime], graphs: FunctionGraphs, stored: Size) -> Iterator[DecodedImage]:
    for stage in stages:
        graph, total = graphs.of(stage.dataset), sum(stage.operations.values())
        for at, operation in enumerate(graph.operations if graph else ()):
            resized = graph and DECODERS.fullmatch(operation.type) and _resized(graph, at)
            shape = resized.outputs[0][1] if resized and resized.outputs else None
            if not resized or shape is None or len(shape) != 4:  # noqa: PLR2004 - (number, height, width, channels)
                continue
            _, height, width, _ = shape
            if not height or not width:
                continue  # open
            spent = sum(stage.operations.get(op.name, 0.0) for op in (operation, resized))
            ratio = max(1, operation.attrs.ratio)
            yield DecodedImage(
                stage=stage,
                type=operation.type,
                decoded=(-(-stored[0] // ratio), -(-stored[1] // ratio)),
                used=(height, width),
                share=spent / total if total else 0.0,
                ratio=ratio,
                at=graphs.at(operation),
            )


def _resized(graph: RecordedGraph, decoder: int) -> RecordedOperation | None:
    """Return the only operation that resizes a decoder's result; None where another part of the image is used."""
    whole, found = {decoder}, []
    for at, operation in enumerate(graph.operations):
        if not whole.intersection(source for source in operation.sources if source is not None):
            continue
        if RESIZERS.fullmatch(operation.type):
            found.append(operation)
        elif operation.type in SAME_SIZE:
            whole.add(at)
        elif operation.type not in SHAPES:
            return None
    return found[0] if len(found) == 1 else None
