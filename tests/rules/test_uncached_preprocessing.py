"""uncached-preprocessing: identical work in every epoch, whose output a cache could store."""

from tests.rules.kit import *
from tfdoctor.rules.input import uncached_preprocessing
from tfdoctor.rules.input.uncached_preprocessing import RepeatablePrefix, RepeatablePrefixes

EXAMPLE_DECODE = Dataset(
    id=1, kind="_MapDataset", inputs=(0,), function="decode", function_at=script(9),
    at=script(20), cardinality=1000, types=frozenset(("DecodePng",)), stateful=frozenset(),
    element="TensorSpec(shape=(2000,), dtype=tf.float32, name=None)",
)  # fmt: skip
SOURCE = dataset_of("TensorSlice", cardinality=1000)
SPEC = "TensorSpec(shape=(250,), dtype=tf.float32, name=None)"
FIT = script(21)
CROWDED = CpuContention(crowded=True, cores=1.0, compute_ms=38.0, beside=0.95)


def example(  # noqa: PLR0913 - what the rule takes
    *datasets: Dataset, passes: float | None = 10.0, work: float = 40.0, wait: float = 30.0,
    memory: HostMemory | Unavailable = HostMemory(total=16e9, used=4e9),
    contention: CpuContention = CpuContention(crowded=False), fit_at: Location | None = None,
    prefixes: tuple[RepeatablePrefix, ...] = (), idle: tuple[Dataset, ...] = (), run: RunSteps | None = None,
) -> Verdict:  # fmt: skip
    """Decoding 8 MB of images takes 40 ms per step, in each of ten epochs."""
    chain = tuple(reversed(datasets or (SOURCE, EXAMPLE_DECODE)))
    properties = DatasetProperties(chain, passes, fit_at=fit_at)
    stages = (
        stage_time(f"Root::Prefetch::{made.id}", work, kind="Map", dataset=made)
        for made in reversed(chain)
        if made.function and made not in idle
    )
    pipeline = InputPipeline.of(PREFETCH, *stages)
    pipeline, cacheable = replace(pipeline, idle=idle), Cacheable.measure(properties)
    repeated = RepeatedWork.measure(cacheable, properties, pipeline)
    step = Breakdown.of(input=wait, device=40.0 - wait)
    facts = (cacheable, properties, pipeline, repeated, RepeatablePrefixes(prefixes), step)
    return uncached_preprocessing.check(*facts, memory, contention, run)


def stage(number: int, kind: str, **more: Any) -> Dataset:
    return dataset_of(kind, **{"id": number, "inputs": (number - 1,), **more})


def mapped(number: int, *types: str, name: str = "decode", **more: Any) -> Dataset:
    parts = {"function": name, "function_at": script(9), "at": script(20 + number), "element": SPEC}
    kinds = {"types": frozenset(types), "stateful": frozenset(one for one in types if "Random" in one)}
    return stage(number, "Map", **(parts | kinds | more))


def joined(number: int, kind: str, *inputs: int) -> Dataset:
    return Dataset(id=number, kind=f"_{kind}Dataset", inputs=inputs, cardinality=1000)


def library(number: int, kind: str, **more: Any) -> Dataset:
    """A stage that image_dataset_from_directory makes on line 21."""
    return stage(number, kind, at=FIT, made_by="image_dataset_from_directory", **more)


def prefix(share: float, nbytes: int | None = 1000, **more: Any) -> RepeatablePrefix:
    dataset = mapped(1, "DecodePng", "RandomUniform", name="load", **more)
    work = StageTime(path="Root::Prefetch::1", kind="Map", work_ms=10.0, dataset=dataset)
    return RepeatablePrefix(CacheablePart(dataset, ()), work, share, nbytes, ("DecodePng",))


def measured(*operations: tuple[str, list[int], float]) -> str:
    """Measure a function by its operations behind the placeholder: (type, sources, ms), each with 4000 bytes."""
    times = {f"{kind}_{at}": taken for at, (kind, _, taken) in enumerate(operations)}
    rows = (("Placeholder", "Placeholder", []), *((f"{k}_{at}", k, s) for at, (k, s, _) in enumerate(operations)))
    outputs = (("float32", (1000,)),)
    graph = RecordedGraph(tuple(RecordedOperation(n, k, outputs=outputs, sources=tuple(s)) for n, k, s in rows))
    kept = frozenset(("AssignAddVariableOp", "RandomUniform"))
    data = mapped(1, "DecodePng", "RandomUniform", name="load", stateful=kept)
    work = InputPipeline.of(StageTime(path="Root::1", kind="Map", work_ms=20.0, operations=times, dataset=data))
    cacheable = Cacheable.measure(DatasetProperties((data, SOURCE), 4.0))
    (found,) = RepeatablePrefixes.measure(cacheable, work, FunctionGraphs({1: graph})).prefixes
    return (
        f"{found.share:g}, {found.ms:g} ms, {found.nbytes} bytes, mostly {', '.join(found.heaviest) or 'nothing'}"
    )


sick = example
healthy = described("The same pipeline in a run of a single epoch.", example, passes=1.0)
check = partial(example, passes=4.0, work=10.0, memory=HostMemory(total=10e6, used=6e6))
DECODE, FLIP, CACHE = mapped(1, "DecodePng"), mapped(1, "RandomUniform", name="flip"), stage(2, "Cache")
BATCH = stage(2, "Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)
AFTER = mapped(2, "DecodePng")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a function that gives the same in each epoch is cached"] = check(SOURCE, DECODE)
    told["one pass gains nothing"] = [check(SOURCE, DECODE, passes=passes) for passes in (None, 1.0, 1.9, 2.0)]
    told["what comes before a random function"] = check(SOURCE, DECODE, replace(FLIP, id=2, inputs=(1,)))
    told["work behind a random function, and a cache that freezes its draws"] = check(SOURCE, FLIP, AFTER)
    told[...] = check(SOURCE, FLIP, CACHE)
    told["a cache spares the work before it"] = check(SOURCE, DECODE, CACHE)
    told["work behind a cache"] = check(SOURCE, mapped(1, "Mul"), CACHE, mapped(3, "DecodePng"))
    for kind in ("Shuffle", "Repeat"):
        told[f"a {kind} before it must move behind"] = check(SOURCE, stage(1, kind), AFTER)
    fixed = stage(1, "Shuffle", parameters=DatasetParameters(reshuffle_each_iteration=False))
    told["a shuffle in the same order in each epoch may stay"] = check(SOURCE, fixed, AFTER)
    for kind in ("Shuffle", "Prefetch"):
        told[f"batches behind a {kind}: shuffled elements make others each time"] = check(
            SOURCE, stage(1, kind), BATCH, mapped(3, "DecodePng")
        )
    told["a megabyte fits into half of the memory"] = check(SOURCE, DECODE, memory=HostMemory(total=10e6, used=8e6))
    told[...] = check(SOURCE, DECODE, memory=HostMemory(total=10e6, used=8.1e6))
    told["memory that was not sampled"] = check(SOURCE, DECODE, memory=Unavailable("no memory was sampled"))
    told["only a step that waits is judged"] = [check(SOURCE, DECODE, wait=wait) for wait in (2.0, 1.9)]
    endless = stage(2, "Repeat", cardinality=-1), stage(3, "Cache", cardinality=-1)
    told["a cache that is never complete is another rule's"] = check(SOURCE, DECODE, *endless)
    told["work that keeps cores counts without a wait"] = check(SOURCE, DECODE, wait=0.0, contention=CROWDED)
    told[...] = check(SOURCE, DECODE, wait=0.0, contention=CpuContention(crowded=False))
    told[...] = check(SOURCE, DECODE, wait=0.0, contention=CpuContention(crowded=None))
    told["between little and a fifth of the step only a trial tells: 8 to 13 % saved 15, 3 and -6 % in trials"] = [
        check(SOURCE, DECODE, wait=0.0, contention=CpuContention(crowded=True, cores=cores, compute_ms=40.0))
        for cores in (1.3, 5.2, 1.2)
    ]
    for name, more in (
        ("an element of open shape", {"element": "TensorSpec(shape=(None, 3), dtype=tf.uint8, name=None)"}),
        ("unknown operations", {"types": None}),
        ("Python", {"python": True}),
        ("variables", {"types": frozenset(("ReadVariableOp",)), "stateful": frozenset(("ReadVariableOp",))}),
    ):
        told[f"a function with {name} is not advised"] = check(SOURCE, mapped(1, "DecodePng", **more))
    told["files of unknown length"] = check(replace(SOURCE, cardinality=None), DECODE)


@golden_cases
def test_several_pipelines(told: Cases) -> None:
    labels, shuffled = joined(9, "TensorSlice"), Dataset(id=8, kind="_ShuffleDataset", inputs=(9,))
    told["pipelines that meet must all give the same"] = check(labels, SOURCE, joined(1, "Zip", 0, 9), AFTER)
    told[...] = check(labels, shuffled, SOURCE, joined(1, "Zip", 0, 8), AFTER)
    other, source = mapped(3, "DecodePng", name="other", inputs=(2,)), replace(SOURCE, id=2)
    mixed = Dataset(id=4, kind="_DirectedInterleaveDataset", inputs=(1, 3))
    told["pipelines that are drawn from at random"] = check(SOURCE, DECODE, source, other, mixed, mapped(5, "Mul"))
    noise = mapped(3, "RandomUniform", name="noise", inputs=(2,))
    told["a random branch leaves the others"] = check(SOURCE, DECODE, source, noise, joined(4, "Zip", 1, 3))
    # timeseries_dataset_from_array repeats the whole series beside the positions in it.
    series = Dataset(id=7, kind="_TensorDataset", cardinality=1)
    repeated = Dataset(id=8, kind="_RepeatDataset", inputs=(7,), cardinality=-1)
    told["the shorter side of a zip may be repeated"] = check(
        series, repeated, SOURCE, joined(1, "Zip", 0, 8), mapped(2, "GatherV2", cardinality=1000)
    )
    cached = Dataset(id=8, kind="CacheDataset", inputs=(1,))
    told["a cached branch"] = check(SOURCE, DECODE, cached, joined(9, "Zip", 8, 0), mapped(2, "Mul", inputs=(9,)))


@golden_cases
def test_what_libraries_make(told: Cases) -> None:
    told["what fit makes of arrays is its own"] = check(SOURCE, replace(DECODE, function_at=None), fit_at=FIT)
    told["a function of the user's own in the line of fit"] = check(SOURCE, DECODE, fit_at=FIT)
    decode = replace(DECODE, function_at=None, made_by="image_dataset_from_directory")
    size = DatasetParameters(batch_size=10)
    told["what a library returns is cached whole"] = check(SOURCE, decode, library(2, "Batch", parameters=size))
    told["a library that shuffles must return single examples"] = check(
        SOURCE, decode, library(2, "Shuffle"), library(3, "Batch", parameters=size)
    )
    layer = mapped(1, "Mul", function_at=None, made_by="map")
    told["a layer that the user maps is the user's"] = check(SOURCE, layer)


@golden_cases
def test_prefixes(told: Cases) -> None:
    told["half of a random function may come before its first draw, and less"] = [
        check(SOURCE, one.part.last, prefixes=(one,)) for one in (prefix(0.5), prefix(0.49))
    ]
    large = prefix(0.99)
    told["a function is not divided for cores alone: a trial that did so gained little"] = check(
        SOURCE, large.part.last, prefixes=(large,), wait=0.5, contention=CROWDED
    )
    open_size = prefix(0.9, None)
    told["a part without known size is not advised"] = check(SOURCE, open_size.part.last, prefixes=(open_size,))


@golden_cases
def test_repeatable_parts(told: Cases) -> None:
    draw: tuple[str, list[int], float] = ("RandomUniform", [], 0.5)
    told["work before the first draw"] = measured(("DecodePng", [0], 9.0), draw, ("Mul", [1, 2], 0.5))
    told["work on a random result"] = measured(draw, ("Add", [0, 1], 0.5), ("ResizeBilinear", [2], 9.0))
    told["what branches call is not recorded"] = measured(("If", [0], 5.0), ("DecodePng", [1], 5.0))
    told["a count is another one in each pass"] = measured(
        ("DecodePng", [0], 9.0), ("AssignAddVariableOp", [], 0.5), ("Mul", [1, 2], 0.5), ("RandomUniform", [3], 0.5)
    )
    told["a result that needs no draw is cached too"] = measured(("Cast", [0], 5.0), ("RandomUniform", [0], 5.0))


# Work that only the first step of a pass does
def begun(share: float, first: int = 7) -> RunSteps:
    """A run of 1,000 steps of 28 ms, of which so many first ones take this share of the time beyond the usual."""
    total_ms = 28_000.0 / (1.0 - share)
    long = LongSteps(
        count=first, ms=0.0, beyond_ms=0.0, first=first, first_median_ms=share * total_ms / max(1, first)
    )
    return replace(equal_steps(script(1), 1_000, 28.0, long), total_ms=total_ms, mean_ms=total_ms / 1_000)


IDLE = mapped(1, "DepthwiseConv2dNative", name="soften")
SHUFFLE = stage(2, "Shuffle")


@golden_cases
def test_starts_of_passes(told: Cases) -> None:
    at_starts = partial(check, SOURCE, wait=0.1, idle=(IDLE,), run=begun(0.25))
    told["a map that fills a shuffle at each pass: the typical step does not show it"] = at_starts(IDLE, SHUFFLE)
    told["a twentieth of the time, less, unknown"] = at_starts(IDLE, SHUFFLE, run=begun(0.051))
    told[...] = at_starts(IDLE, SHUFFLE, run=begun(0.049)), at_starts(IDLE, SHUFFLE, run=None)
    told["one first step"] = at_starts(IDLE, SHUFFLE, run=begun(0.25, first=1))
    told["a cache holds its output"] = at_starts(IDLE, CACHE, stage(3, "Shuffle"))
    told["no shuffle takes it at once"] = at_starts(IDLE)
    told["it does not fit"] = at_starts(IDLE, SHUFFLE, memory=HostMemory(total=10e6, used=9.9e6))
    told["it is random"] = check(SOURCE, FLIP, SHUFFLE, wait=0.1, idle=(FLIP,), run=begun(0.25))
