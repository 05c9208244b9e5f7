"""What the functions of the pipeline's maps compute for each element, and the images that they decode."""

from tfdoctor.facts.input.dataset_properties import DatasetProperties, FunctionGraphs, next_batch
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.operation_types import SHAPES
from tfdoctor.facts.run.program import WIDTHS, Program

GIVEN = frozenset(("Placeholder", "Const", "Identity", "NoOp"))  # Types of operations that compute nothing

# Operations that call functions, whose operations are recorded with the function only as types.
CONTROL = frozenset(
    ("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall",
     "StatefulPartitionedCall", "MapDefun")
)  # fmt: skip
# Operations that take one item, draw random numbers, or compute more than they write.
NOT_VECTORIZABLE = re.compile(
    r"(?=\w*\Z)(?:(?:Decode(?!CSV|Raw|PaddedRaw)|Encode|Extract|Sample|NonMax)\w*|\w*(?:File|PyFunc)\w*|\w*Random\w*"
    r"|\w*(?:MatMul|Conv|FFT|Resize|Pool|Einsum|Svd|Qr|Cholesky)\w*|\w*(?:While|If|Case|For)"
    r"|Unique\w*|Where|StringSplit\w*|\w*Dataset\w*|ParseTensor|\w*Call|\w*Multinomial|Rng\w*)"
)
# Parts of an element_spec of elements that differ in shape.
OPEN = re.compile(r"shape=\([^)]*None|<unknown>|Ragged|Sparse|Variant|Dataset")

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


def tensor_bytes(dtype: str, shape: Sequence[int | None] | None) -> int | None:
    """Return a tensor's bytes; texts and handles count nothing, open shapes are None."""
    if dtype not in WIDTHS:
        return 0
    return None if shape is None or None in shape else WIDTHS[dtype] * prod(size or 0 for size in shape)


class MapFunction(Record):
    """One function: the types of its operations, and the bytes that they write for each element."""

    types: frozenset[str]
    nbytes: int | None  # None where a shape is open
    batch: int = 0  # how many of its results the next batch takes; 0 where none follows
    fixed: bool = True  # all its input elements have the same shape, as far as the record tells

    @property
    def single(self) -> tuple[str, ...]:
        """The types of operations that may gain nothing from whole batches."""
        return tuple(sorted(name for name in self.types if NOT_VECTORIZABLE.fullmatch(name)))


class MapFunctions(Record):
    """The functions by the id of their dataset, without those whose names are ambiguous."""

    by_dataset: Mapping[int, MapFunction] = field(default_factory=dict)

    @classmethod
    def measure(cls, program: Program, graphs: FunctionGraphs) -> Self:
        """Read the recorded graph of each map's function."""
        functions, specs = {}, {one.id: one.element for one in program.datasets}

        for dataset in program.datasets:
            graph = graphs.of(dataset)
            if graph is None:
                continue
            working = [one for one in graph.operations if one.type not in GIVEN]
            written = [tensor_bytes(*output) for one in working for output in one.outputs]
            spec = next((specs[number] for number in specs if number in dataset.inputs), "")
            functions[dataset.id] = MapFunction(
                types=frozenset(one.type for one in working) | (dataset.types or set()) - GIVEN,
                nbytes=None if None in written else sum(size or 0 for size in written),
                batch=next_batch(program.feeding, dataset.id)[1],
                fixed=bool(spec) and not OPEN.search(spec),
            )
        return cls(functions)


class DecodedImage(Record):
    """One decoding, and the resizing of its result in the same function."""

    stage: StageTime
    type: str  # "DecodeJpeg"
    decoded: Size  # after JPEG's own division by ``ratio``
    used: Size  # after the resizing
    share: float  # of both operations in the time of all operations of the stage's function, 0 to 1
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


class DecodedImages(Record):
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
        decoding, images = [stage for stage in pipeline.stages if stage.image_ms], []
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
        ((high, wide, *_),) = stored
        for stage in decoding:
            graph, total = graphs.of(stage.dataset), sum(stage.operations.values())
            for at, operation in enumerate(graph.operations if graph else ()):
                resized = graph and DECODERS.fullmatch(operation.type) and _resized(graph, at)
                if not resized:
                    continue
                spent = sum(stage.operations.get(one.name, 0.0) for one in (operation, resized))
                share, ratio = spent / total if total else 0.0, max(1, operation.attrs.ratio)
                match resized.outputs[:1]:
                    case [(_, (_, int(height), int(width), _))] if height and width:  # else open
                        decoded, used = (-(-high // ratio), -(-wide // ratio)), (height, width)
                        where = graphs.at(operation)
                        images.append(DecodedImage(stage, operation.type, decoded, used, share, ratio, where))
        return cls(tuple(images))


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
