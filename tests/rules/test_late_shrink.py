"""late-shrink: a buffer holds elements that are much smaller on the other side of a map."""

from tests.rules.kit import *
from tfdoctor.facts.run.program import Shape
from tfdoctor.rules.input.late_shrink import Buffer, Buffers, check
from tfdoctor.rules.input.late_shrink.full_size_work import FullSizeOperation, FullSizeWork, LateShrinking

MIB = 2**20


def example(
    elements: int = 10_000, each: int = 602_112, least: int = 1024, *, grows: bool = True,
    unknown: tuple[Dataset, ...] = (), memory: HostMemory | None = None,
) -> Verdict:  # fmt: skip
    """A shuffle buffer holds 10,000 images that a map reads and decodes before it."""
    size = DatasetParameters(buffer_size=elements)
    shuffle = dataset_of("Shuffle", id=1, parameters=size, at=script(9))
    decode = dataset_of("ParallelMap", function="decode")
    held = Buffer(dataset=shuffle, elements=elements, each=each, least=least, by=decode, grows=grows)
    return check(Buffers((held,), unknown), FullSizeWork(), memory)


def order(
    large: tuple[int, int] = (224, 224), small: tuple[int, int] = (64, 64), spent: float = 24.0, *,
    kind: str = "ResizeBilinear", waits: bool = True, contention: CpuContention | None = None,
) -> Verdict:  # fmt: skip
    """Images are flipped and saturated at 224 by 224 pixels, and resized to 64 by 64 after that."""
    made = dataset_of("ParallelMap", function="augment", at=script(31))
    stage = stage_time("Root::Prefetch::ParallelMapV2", 30.0, 2, dataset=made)
    work = FullSizeOperation(stage, "AdjustSaturation", spent, script(21))
    late = LateShrinking(kind, large, small, (work,), script(26))
    awaited = frozenset((stage.path,)) if waits else frozenset()
    return check(Buffers(()), FullSizeWork((late,), awaited, contention, 25.0), None)


sick = order
healthy = described("The same work is done on images that are hardly larger.", order, (72, 72))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["images of 2 times the pixels, and of less"] = order((128, 64), (64, 64)), order((128, 64), (64, 65))
    told["work of a fifth of the stage, and less"] = [order((128, 128), (64, 64), spent) for spent in (8.01, 7.99)]
    told["the saving is the work on pixels that are dropped: 15 of 30 ms"] = order((128, 128), (64, 64), 20.0)
    told["a crop says so"] = order(kind="StridedSlice")
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=20.0)
    told["a step that does not wait is slowed through the cores alone"] = order(waits=False, contention=crowded)
    told[...] = order(waits=False)
    told["without recorded functions only buffers are judged"] = check(Buffers(()), Unavailable("no graphs"), None)
    told["without pipeline nothing is judged"] = check(Unavailable("no data"), FullSizeWork(), None)


@golden_cases
def test_full_buffers(told: Cases) -> None:
    told["elements are larger before the buffer: the stages change places"] = example()
    told["elements get smaller behind it: their map comes first"] = example(1000, MIB, grows=False)
    told["268.4 MB are spared, and less"] = example(1000, each=268_536, least=100)
    told[...] = example(1000, each=268_535, least=100)
    told["elements are half as large elsewhere, and hardly smaller"] = example(1000, each=4 * MIB, least=2 * MIB)
    told[...] = example(1000, each=4 * MIB, least=2 * MIB + 1)
    told["a warning where tasks wait for memory, else a note"] = [
        example(memory=HostMemory(64e9, 20e9, stalled=stalled)) for stalled in (0.02, 0.019, None)
    ]
    unknown = (dataset_of("Shuffle"),)
    told["a buffer of unknown size is not called healthy"] = check(Buffers((), unknown), FullSizeWork(), None)
    told["a buffer of unknown size beside a large one"] = example(unknown=unknown)


# Buffers: what shuffle, cache and prefetch hold, and where the same elements are smaller.
WIDE, NARROW = "shape=(100, 100, 3), dtype=tf.float32", "shape=(100, 100, 3), dtype=tf.uint8"
SMALL, TEXT = "shape=(10, 10, 3), dtype=tf.uint8", "shape=(), dtype=tf.string"
MUL = frozenset(("Cast", "Mul", "Placeholder"))
COUNT = 500
Stepped = tuple[str, str, Mapping[str, Any]]


def step(kind: str, tensor: str, **more: Any) -> Stepped:
    return kind, tensor, more


def mapped(tensor: str, types: frozenset[str] = MUL, stateful: frozenset[str] = frozenset()) -> Stepped:
    return step("ParallelMap", tensor, function="f", types=types, stateful=stateful)


def shuffled(tensor: str, size: int = 200) -> Stepped:
    return step("Shuffle", tensor, parameters=DatasetParameters(buffer_size=size))


def measured(*steps: Stepped) -> Buffers:
    """Measure a pipeline that is written in the order of its code."""
    stages = (
        dataset_of(kind, **{"element": f"TensorSpec({tensor}, name=None)", "cardinality": COUNT, **more})
        for kind, tensor, more in steps
    )
    return Buffers.measure(DatasetProperties(chained(*stages)))


def held(*steps: Stepped) -> list[str]:
    """What is known of the buffers of a pipeline."""
    found = measured(*steps)
    known = [
        f"{one.dataset.kind} of {one.elements:,} elements, each {one.each:,} bytes; {one.least:,} "
        + (f"{one.place} of stage {one.by.id}, spared: {one.spared:,} of {one.nbytes:,}" if one.by else "anywhere")
        for one in found.known
    ]
    return [*known, *(f"{one.kind} of unknown size" for one in found.unknown)] or ["no buffer"]


@golden_cases
def test_buffers(told: Cases) -> None:
    wide, narrow, records = (
        step(*of) for of in (("TensorSlice", WIDE), ("TensorSlice", NARROW), ("TFRecord", TEXT))
    )
    told["a map before the buffer makes elements larger"] = held(narrow, mapped(WIDE), shuffled(WIDE))
    told["a map behind the buffer shrinks them"] = held(records, mapped(NARROW), shuffled(NARROW), mapped(SMALL))
    several = mapped(SMALL), mapped(NARROW), mapped(WIDE)
    told["across several maps the smallest form counts"] = held(records, *several, shuffled(WIDE))
    decode = frozenset(("DecodeJpeg",))
    named = step("TensorSlice", TEXT), mapped(WIDE, decode | {"ReadFile"})
    told["of a file that a map reads there was a name before"] = held(*named, shuffled(WIDE))
    told["nobody knows whether encoded records are smaller"] = held(records, mapped(WIDE, decode), shuffled(WIDE))
    cache = step("Cache", WIDE)
    told["a shuffle behind a cache holds nothing of its own"] = held(narrow, mapped(WIDE), cache, shuffled(WIDE))
    told["a shuffle never moves before a cache: it would be the same order in every epoch"] = held(
        narrow, step("Cache", NARROW), mapped(WIDE), shuffled(WIDE)
    )
    for cost, types in (("costs nothing", MUL), ("is expensive", MUL | {"ResizeArea"}), ("is unknown", None)):
        cast = step("Map", WIDE, function="f", types=types)
        told[f"a cache behind a function that {cost}"] = held(records, mapped(NARROW), cast, cache)
    for name, kind, random in (("is no", "ResizeArea", ()), ("is", "RandomUniformInt", ("RandomUniformInt",))):
        crop = mapped(SMALL, frozenset((kind,)), frozenset(random))
        told[f"a cache before what {name} random"] = held(records, mapped(NARROW), step("Cache", NARROW), crop)
    told["elements that are in memory anyway do not count"] = held(wide, shuffled(WIDE), mapped(SMALL))
    batch = step("Batch", "shape=(None, 10, 10, 3), dtype=tf.uint8", parameters=DatasetParameters(batch_size=8))
    told["batches end the search"] = held(records, mapped(WIDE), shuffled(WIDE), batch, mapped(SMALL))
    told["a buffer larger than the data holds the data"] = held(narrow, mapped(WIDE), shuffled(WIDE, size=10_000))
    size = DatasetParameters(buffer_size=10_000)
    endless = step("Repeat", WIDE, cardinality=-1), step("Shuffle", WIDE, cardinality=-1, parameters=size)
    told["a repetition fills it"] = held(narrow, mapped(WIDE), *endless)
    ahead, tuned = (step("Prefetch", WIDE, parameters=DatasetParameters(buffer_size=n)) for n in (300, -1))
    told["a prefetch stays at the end, and a tuned one is small"] = held(narrow, mapped(WIDE), ahead, tuned)
    for name, tensor in (("texts", TEXT), ("open shapes", "shape=(None, 4, 4), dtype=tf.uint8")):
        told[f"a buffer of {name}"] = held(records, mapped(tensor), shuffled(tensor))


# FullSizeWork: what the maps do to images that later operations make smaller.
FULL, HALF, STORED = (200, 100, 3), (100, 50, 3), (None, None, 3)
FLIP = frozenset(("Placeholder", "StatelessIf", "ReverseV2", "ResizeBilinear", "Identity"))
ARRAYS, ALONE = dataset_of("TensorSlice"), Cores(2.0, 1.9)
WAITING = Breakdown.of(input=8.0, device=2.0)


def op(kind: str, *sources: int, shape: Shape = FULL, dtype: str = "float32", line: int = 1) -> Any:
    """Describe an operation named by its type; its first input has the shape of its first source."""
    return kind, sources, (dtype, shape), line


def resized(source: int, shape: Shape = HALF) -> Any:
    return op("ResizeBilinear", source, shape=shape)


def graph(*operations: Any) -> RecordedGraph:
    """Build a function's graph: a placeholder of a full image, the operations, and an Identity as its result."""
    written = (op("Placeholder"), *operations)
    outputs: list[TensorType] = [output for _, _, output, _ in written]
    rows = [
        RecordedOperation(
            kind, kind, tuple(outputs[one] for one in sources), (output,), sources=sources, at=("train.py", line)
        )
        for kind, sources, output, line in written
    ]
    end = RecordedOperation("out", "Identity", outputs=(outputs[-1],), sources=(len(rows) - 1,))
    return RecordedGraph((*rows, end))


def found(
    *maps: RecordedGraph, between: str = "Prefetch", types: frozenset[str] | None = None, source: Dataset = ARRAYS,
    cores: Cores = ALONE, step: Breakdown = WAITING, ran: tuple[str, ...] = (),
) -> FullSizeWork:  # fmt: skip
    """Measure maps of which each operation takes 2 of the stage's 20 ms per step."""
    stages: list[Dataset] = [source]
    for _ in maps:
        stages += [dataset_of("ParallelMap", function="f", types=types), dataset_of(between)]
    chain = chained(*stages)
    mapped = [data for data in reversed(chain) if data.function]
    times = (dict.fromkeys((*(one.type for one in made.operations), *ran), 2.0) for made in maps)
    work = (
        stage_time(f"Root::ParallelMap{data.id}", 20.0, 2, dataset=data, operations=each_ms)
        for data, each_ms in zip(mapped, times, strict=True)
    )
    crowd = CpuContention(crowded=True, cores=2.0, compute_ms=9.0)
    graphs = FunctionGraphs({data.id: made for data, made in zip(mapped, maps, strict=True)})
    pipeline, properties = InputPipeline.of(*work), DatasetProperties(chain)
    return FullSizeWork.measure(pipeline, properties, graphs, step, crowd, cores)


def late(*maps: RecordedGraph, **more: Any) -> list[str]:
    """What could follow the operations that make images smaller, and the time of it."""
    return [
        f"{one.type} from {one.large} to {one.small} keeps {one.kept:.4g} and spares {one.spared_ms:g} ms of "
        + ", ".join(f"{work.type} {work.ms:g} ms in {work.stage.path}" for work in one.work)
        for one in found(*maps, **more).shrinkings
    ] or ["nothing"]


def in_one(*operations: Any, **more: Any) -> list[str]:
    return late(graph(*operations), **more)


RESIZE = resized(1)


@golden_cases
def test_full_size_work(told: Cases) -> None:
    told["work before a resize takes the share of the pixels after it"] = in_one(op("AdjustSaturation", 0), RESIZE)
    hue, then = graph(op("AdjustHue", 0)), graph(resized(0))
    told["an image is followed from map to map"] = late(graph(op("AdjustSaturation", 0)), then)
    for kind in ("Cache", "Filter", "Window"):
        told[f"two maps with a {kind} between them"] = late(hue, then, between=kind)
    told["maps of other shapes are not joined"] = late(graph(op("AdjustHue", 0, shape=(64, 64, 3))), then)
    seen = op("AdjustSaturation", 0), op("AdjustHue", 1), resized(2), op("Conv2D", 1, shape=HALF)
    told["an image that is compared at full size keeps its place"] = in_one(*seen, op("AddV2", 3, 4, shape=HALF))
    told["a filter before the resize keeps its place"] = in_one(op("AdjustHue", 0), op("Conv2D", 1), resized(2))
    noise = op("RandomStandardNormal"), op("AddV2", 0, 1)
    told["noise before the resize keeps its place"] = in_one(*noise, resized(2))
    scaled = op("Cast", 1, line=7), op("Mul", 2, line=7), op("AdjustHue", 3, line=8)
    stored = op("Identity", 0, dtype="uint8"), *scaled
    told["integers become float before a resize"] = in_one(*stored, resized(4))
    told["integers may become float after a crop"] = in_one(*stored, op("StridedSlice", 4, shape=HALF))


@golden_cases
def test_what_may_follow_a_crop_or_a_resize(told: Cases) -> None:
    for name, kind, place in (
        ("a mirrored image is resized first", "ResizeBilinear", "Const"),
        ("a mirrored image is not cropped first where the place is fixed", "Slice", "Const"),
        ("a mirrored image is cropped first where the place is random", "Slice", "RandomUniformInt"),
    ):
        told[name] = in_one(op(place, shape=(3,)), op("ReverseV2", 0), op(kind, 2, 1, shape=HALF))
    centered = op("Mean", 0, shape=(3,)), op("Sub", 0, 1)
    told["the mean of a resized image is that of the image"] = in_one(*centered, resized(2))
    told["the mean of a crop is another"] = in_one(*centered, op("StridedSlice", 2, shape=HALF))
    flip = op("StatelessIf", 0), RESIZE
    inside = ("StatelessIf/then/_0/ReverseV2",)
    told["a branch counts with the operations in it"] = in_one(*flip, types=FLIP, ran=inside)
    told["a branch with a filter in it keeps its place"] = in_one(*flip, types=FLIP | {"Conv2D"})
    told["a branch of unknown operations keeps its place"] = in_one(*flip)
    rewritten = ("ArithmeticOptimizer/AddOpsRewrite_AddV2",)
    told["what the graph optimizer puts in its place is its time"] = in_one(op("AddV2", 0), RESIZE, ran=rewritten)
    decoded = op("DecodeJpeg", 0, shape=STORED), op("AdjustHue", 1, shape=STORED), resized(2)
    paths = dataset_of("TensorSlice", files=FileList(4, image=(400, 200)))
    told["decoded images have the size of the stored files"] = in_one(*decoded, source=paths)
    told["decoded images of unknown size"] = in_one(*decoded)
    told["enlarging drops nothing"] = in_one(op("AdjustHue", 0), resized(1, (400, 200, 3)))
    nothing = DatasetProperties(()), FunctionGraphs({}), WAITING, CpuContention(crowded=False), None
    work = InputPipeline.of(stage_time("Root::Map", 10.0))
    told["operations that the trace does not show"] = lambda: FullSizeWork.measure(work, *nothing)
    made = graph(op("AdjustHue", 0), RESIZE)
    busy, crowd = Breakdown.of(device=3.0), Cores(2.0, 1.0, others=0.9)
    for name, matters in (
        ("the step waits", found(made)),
        ("the step does not wait", found(made, step=Breakdown.of(input=0.0, device=7.0))),
        ("the work takes cores", found(made, step=busy)),
        ("others take the cores", found(made, step=busy, cores=crowd)),
    ):
        told[f"it matters where {name}"] = matters.matters(matters.shrinkings[0], share=0.05, taken=0.2)
