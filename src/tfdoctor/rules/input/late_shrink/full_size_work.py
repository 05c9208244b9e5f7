"""Work of the maps on images that the next operations shrink or crop, and what it would take after that."""

from tfdoctor.facts.input.map_functions import DECODERS, RESIZERS
from tfdoctor.families.kit import *
from tfdoctor.recording.program import RecordedOperation, TensorType

# Kinds of datasets between two maps that pass on the elements, alone or stacked.
PASSING = frozenset(
    ("Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard", "Cache", "Batch", "ParallelBatch")
)  # fmt: skip

Size = tuple[int | None, int | None]  # Height and width in pixels; None is open


class MapNode(Record):
    """An operation of a map's function; ``sources`` are positions among all nodes."""

    dataset: Dataset
    operation: RecordedOperation
    sources: tuple[int, ...] = ()

    @property
    def size(self) -> Size | None:
        """Height and width of the image, or images, that it gives; None where it gives none."""
        return size_of(self.operation.outputs[0]) if self.operation.outputs else None

    @property
    def taken(self) -> Size | None:
        """Height and width of the image that it takes first."""
        return size_of(self.operation.inputs[0]) if self.operation.inputs else None


def joined_maps(line: Sequence[Dataset], graphs: FunctionGraphs) -> list[MapNode]:
    """Return the nodes of successive maps, each behind those that it takes results of: of one map or of the next.

    The line of datasets begins with the trainer's.
    """
    nodes: list[MapNode] = []
    given: list[int] = []  # results of the map before, where elements pass as they are
    for dataset in reversed(line):
        graph = graphs.of(dataset)
        if not MAPS.fullmatch(kind_of(dataset)) or graph is None:
            given = given if kind_of(dataset) in PASSING else []
            continue
        # Tensors that it captures are placeholders too, behind its arguments.
        arguments = [at for at, one in enumerate(graph.operations) if one.type == "Placeholder"]
        taken = [graph.operations[at].outputs[:1] for at in arguments[: len(given)]]
        made = [nodes[at].operation.outputs[:1] for at in given]
        fit = len(taken) == len(made) and all(
            one and other and one[0][0] == other[0][0] and size_of(one[0]) == size_of(other[0])
            for one, other in zip(taken, made, strict=True)
        )
        joined = dict(zip(arguments, given, strict=False)) if fit else {}
        first = len(nodes)
        for at, operation in enumerate(graph.operations):
            own = tuple(first + source for source in operation.sources if source is not None)
            nodes.append(MapNode(dataset, operation, (joined[at],) if at in joined else own))
        used = {source for node in nodes[first:] for source in node.sources}
        results = (at for at in range(first, len(nodes)) if nodes[at].operation.type == "Identity")
        given = [at for at in results if at not in used]  # TensorFlow makes an Identity of each
    return nodes


def size_of(tensor: TensorType) -> Size | None:
    """Return the height and width of a tensor of images, alone or stacked; None of another tensor."""
    shape = tensor[1]
    images = shape is not None and len(shape) in {3, 4} and shape[-1] in {1, 3, 4}
    return (shape[-3], shape[-2]) if shape and images else None


CROPS = frozenset(("Slice", "StridedSlice"))  # Operations that cut a part of an image out

# Operations whose result at a pixel needs that pixel alone, and perhaps a mean: they may follow a shrinking.
PIXELWISE = frozenset(
    ("Abs", "Add", "AddN", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Cast",
     "CheckNumerics", "ClipByValue", "Div", "DivNoNan", "EnsureShape", "Equal", "Exp", "ExpandDims", "Floor",
     "Greater", "GreaterEqual", "HSVToRGB", "Identity", "Less", "LessEqual", "Log", "Log1p", "LogicalAnd",
     "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg", "Placeholder", "Pow", "RGBToHSV",
     "RealDiv", "Relu", "Round", "Rsqrt", "Select", "SelectV2", "Sigmoid", "Sqrt", "Square",
     "SquaredDifference", "Squeeze", "Sub", "Tanh")
)  # fmt: skip

# Operations that move pixels: they may follow a resize of the whole image, and a crop at a random place.
MIRRORS = frozenset(("ReverseV2", "Transpose", "If", "StatelessIf", "ImageProjectiveTransformV3"))

# Operations on the numbers beside the images within a branch, as tf.image makes them.
SCALARS = frozenset(
    ("Const", "NoOp", "Shape", "Rank", "Size", "StridedSlice", "Pack", "Range", "ConcatV2", "Merge", "Switch",
     "RandomUniform", "RandomUniformInt", "StatelessRandomUniformV2", "StatelessRandomGetKeyCounter",
     "StatelessRandomGetAlg", "StatelessRandomUniformIntV2")
)  # fmt: skip

BRANCHES = frozenset(("If", "StatelessIf"))

# Types of a picture's numbers as stored: a resize makes them float, and a conversion after it would not scale.
INTEGER = re.compile(r"u?int\d+")


class FullSizeOperation(Record):
    """An operation that would have fewer pixels after the shrinking; ms per training step, over all threads."""

    stage: StageTime
    type: str
    ms: float
    at: Location | None = None


class LateShrinking(Record):
    """An operation that makes images smaller, and the work before it, in the order of the data."""

    type: str
    large: tuple[int, int]  # height and width in pixels
    small: tuple[int, int]
    work: tuple[FullSizeOperation, ...]
    at: Location | None = None

    @property
    def kept(self) -> float:
        """The share of the pixels that is left, 0 to 1."""
        return self.small[0] * self.small[1] / (self.large[0] * self.large[1])

    @property
    def remedy(self) -> Remedy:
        """The shrinking before the work."""
        first = next((one.at for one in self.work if one.at), None)
        place = f"line {first.line}" if first else "these operations"
        height, width = self.small
        code = f"image = tf.image.resize(image, ({height}, {width}))  # before {place}"
        crops = self.type in CROPS  # a part is cut out, and not the whole scaled
        if crops:
            code = f"image = image[top:top + {height}, left:left + {width}]  # before {place}"
        action = f"{'Crop' if crops else 'Resize'} the images before changing their pixels"
        return Remedy(action, code, self.at or first, changes="the images differ slightly")

    @property
    def spared_ms(self) -> float:
        """The time that the work takes less on the pixels that are left, in ms per step over all threads."""
        return sum(one.ms for one in self.work) * (1.0 - self.kept)

    @property
    def by_stage(self) -> Mapping[str, tuple[StageTime, float]]:
        """The stages at work, by path, and the ms per step that each is spared."""
        found: dict[str, tuple[StageTime, float]] = {}
        for one in self.work:
            before = found.get(one.stage.path, (one.stage, 0.0))[1]
            found[one.stage.path] = (one.stage, before + one.ms * (1.0 - self.kept))
        return found


class FullSizeWork(Record):
    """The late shrinkings of the feeding pipeline whose work the trace shows, and what a step waits for.

    ``awaited`` are the paths of the stages that limit the input; ``contention`` is None where it is unknown
    whether the input takes cores from the model.
    """

    shrinkings: tuple[LateShrinking, ...] = ()
    awaited: frozenset[str] = frozenset()
    contention: CpuContention | None = None
    step_ms: float = 0.0

    @classmethod
    def measure(
        cls, pipeline: InputPipeline, properties: DatasetProperties, graphs: FunctionGraphs, breakdown: Breakdown,
        contention: CpuContention, cores: Cores | None,
    ) -> Self:  # fmt: skip
        """Follow the images back from each operation that makes them smaller, where all sizes are known.

        Raises:
            Unavailable: the trace does not show the operations of the maps' functions.
        """
        stages = {one.dataset.id: one for one in pipeline.stages if one.dataset and one.operations}
        if not stages:
            raise Unavailable("the trace does not show the operations of the pipeline's functions")
        joined, found = joined_maps(properties.line(), graphs), list[LateShrinking]()
        images = {data.files.image for data in properties.chain if data.files and data.files.image}
        height, width, *_ = images.pop() if len(images) == 1 else (None, None)
        for at, node in enumerate(joined):
            kind = node.operation.type
            if not (RESIZERS.fullmatch(kind) or kind in CROPS):
                continue
            moved, first = _moved(joined, at)
            decoded = node.taken == (None, None) and DECODERS.fullmatch(first.operation.type)
            large, small = _known((height, width) if decoded else node.taken), _known(node.size)
            if large is None or small is None or large[0] * large[1] <= small[0] * small[1]:
                continue
            work = []
            for one, stage in ((one.operation, stages.get(one.dataset.id)) for one in moved):
                # Under its name, as part of a branch, or under the one that TensorFlow's graph optimizer gives what
                # it puts in the place of `name`: "ArithmeticOptimizer/AddOpsRewrite_name".
                name, branch = one.name, one.type in BRANCHES
                spent = sum(
                    time
                    for ran, time in (stage.operations.items() if stage else ())
                    if ran == name
                    or (branch and ran.startswith(f"{name}/"))
                    or ("Optimizer/" in ran and ran.endswith(f"_{name}"))
                )
                if stage and spent:
                    work.append(FullSizeOperation(stage, one.type, spent, graphs.at(one)))
            if work:
                found.append(LateShrinking(kind, large, small, tuple(work), graphs.at(node.operation)))
        waited = pipeline.limiting if breakdown.waits_for_input else ()
        return cls(
            tuple(found),
            frozenset(stage.path for stage in waited),
            contention if cores is not None and cores.certain else None,
            breakdown.step_ms,
        )

    def matters(self, late: LateShrinking, share: float, taken: float) -> bool:
        """Whether it is this share of what a step waits for, or takes this share of the step from the model."""
        if any(path in self.awaited and ms >= share * one.work_ms for path, (one, ms) in late.by_stage.items()):
            return True
        crowd = self.contention
        return crowd is not None and crowd.crowds_out(late.spared_ms, self.step_ms, taken)


def _known(size: Size | None) -> tuple[int, int] | None:
    return (size[0], size[1]) if size and size[0] and size[1] else None


def _moved(nodes: Sequence[MapNode], at: int) -> tuple[list[MapNode], MapNode]:
    """Return the nodes before a shrinking that could follow it, and the node whose image could be shrunk instead.

    Walks back from it while nothing but it gets to see the image at full size.
    """
    shrinking = nodes[at]
    if not shrinking.sources:
        return [], shrinking

    def sources(one: int) -> tuple[int, ...]:
        return () if nodes[one].operation.type in SHAPES else nodes[one].sources

    image, *others = shrinking.sources
    chosen, before = reached(others, sources), reached([image], sources)
    used = {source for node in nodes for source in node.sources}
    # What is seen but by the shrinking: by results that no node takes, those of the last map and assertions.
    ends = {one for one, node in enumerate(nodes) if one not in used and node.operation.type != "Placeholder"}
    seen = chosen | reached(ends - {at}, lambda one: {*sources(one)} - {at})
    crops = shrinking.operation.type in CROPS
    drawn = any(RANDOM.search(nodes[one].operation.type) for one in chosen)  # at random
    begins: dict[int, int] = {}
    for one in sorted(before):
        node, kind = nodes[one], nodes[one].operation.type
        begins[one] = one
        same = [source for source in node.sources if nodes[source].size == node.size]
        may_follow = (
            one not in seen
            and node.size is not None
            and (crops or not _converts(node))
            and (kind in PIXELWISE or (kind in MIRRORS and (drawn or not crops)))
        )
        if may_follow and kind in BRANCHES:  # what is within is recorded as types alone
            own = {other.operation.type for other in nodes if other.dataset is node.dataset}
            may_follow = (node.dataset.types or {"unknown"}) - own <= PIXELWISE | MIRRORS | SCALARS
        if may_follow and crops:  # a crop has another mean than the whole image
            may_follow = not any(nodes[other].size for other in reached({*node.sources}.difference(same), sources))
        if may_follow and len(earlier := {begins[source] for source in same}) == 1:
            begins[one] = earlier.pop()
    first, whole = nodes[begins[image]], reached([begins[image]], sources)
    later = [nodes[one] for one in sorted(before - seen - whole)]
    full = (one for one in later if shrinking.taken in {one.size, one.taken})
    # The line that makes its numbers float stays whole.
    return [one for one in full if not (_converts(first) and one.operation.at == first.operation.at)], first


def _converts(node: MapNode) -> bool:
    """Say whether a node makes floats of the integers of a stored image."""
    operation = node.operation
    taken = operation.inputs[0][0] if operation.inputs else ""
    return operation.type == "Cast" and bool(INTEGER.fullmatch(taken))
