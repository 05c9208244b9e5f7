"""per-element-map: calls that cost more than what they compute, in a pipeline that the step waits for."""

from tests.rules.kit import *
from tfdoctor.rules.input.per_element_map import PRECONDITIONS, check

CSV = Dataset(id=1, kind="_ParallelMapDataset", function="columns", at=script(12))
CHEAP = frozenset(("DecodeCSV", "Pack"))
SINGLE_ITEMS = (
    "DecodeJpeg", "DecodePng", "ReadFile", "RandomUniform", "StatelessRandomUniformV2", "If", "StatelessWhile",
    "MatMul", "BatchMatMulV2", "RFFT", "ResizeBilinear", "EagerPyFunc", "Where", "StatefulPartitionedCall",
)  # fmt: skip
TEXT = "TensorSpec(shape=(), dtype=tf.string, name=None)"
ANY_LENGTH = "TensorSpec(shape=(None,), dtype=tf.int64, name=None)"


def example(  # noqa: PLR0913 - what a call costs, and what needs it
    stage: StageTime = stage_time("Root::Prefetch::MapAndBatch", 7.7, 1.4, dataset=CSV),
    types: frozenset[str] = CHEAP, nbytes: int | None = 300, batch: int = 256, *, fixed: bool = True,
    wait: float = 5.8, contention: CpuContention = CpuContention(crowded=False),
) -> Verdict:  # fmt: skip
    """CSV rows are decoded one by one: 256 calls of 0.03 ms per step."""
    return PRECONDITIONS[1](Breakdown.of(input=wait, host=2.3)) or check(
        InputPipeline.of(PREFETCH, stage),
        MapFunctions({CSV.id: MapFunction(types, nbytes, batch, fixed)}),
        contention,
    )


def stage(kind: str = "MapAndBatch", work: float = 7.7, **more: Any) -> StageTime:
    return stage_time(f"Root::Prefetch::{kind}", work, **{"dataset": CSV, **more})


def graph(name: str, *types: str, shape: Any = (30,)) -> dict[str, Any]:
    rows = [{"name": f"o{at}", "type": kind, "outputs": [["float32", shape]]} for at, kind in enumerate(types)]
    return {"name": f"Dataset_map_{name}", "kind": "dataset", "operations": rows}


def measured(*graphs: dict[str, Any], element: str = TEXT, between: str = "Prefetch") -> Any:
    datasets = (
        Dataset(id=0, kind="TextLineDatasetV2", element=element),
        Dataset(id=1, kind="_ParallelMapDataset", inputs=(0,), function="columns"),
        Dataset(id=2, kind=f"_{between}Dataset", inputs=(1,)),
        Dataset(id=3, kind="_BatchDataset", inputs=(2,), parameters=DatasetParameters(batch_size=256)),
    )
    program = Program(datasets=datasets, feeds=3)
    recorded = FunctionGraphs.measure(program, recording({"graphs": list(graphs)}))
    return MapFunctions.measure(program, recorded).by_dataset.get(1)


sick = example
healthy = described("The same number of calls, each of which writes 20 kB.", example, nbytes=20_000)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a map counts its own calls"] = [example(stage("ParallelMapV2", calls=calls)) for calls in (256.0, 1.0)]
    told["a call that takes less than 0.1 ms, and more"] = [example(stage(work=work)) for work in (25.5, 25.7)]
    told["a call that writes 9 kB, and more"] = example(nbytes=9000), example(nbytes=9100)
    told["nine calls, and eight"] = [example(stage(work=0.3), batch=batch) for batch in (9, 8)]
    told["elements of several shapes cannot be batched"] = example(fixed=False), example(nbytes=None)
    told["no batch comes behind the map"] = example(stage("ParallelMapV2", calls=256.0), batch=0)
    told["Python is another rule's"] = example(stage(python_ms=5.0))
    told["a step that does not wait"] = example(wait=0.1)
    told["a stage of an unknown dataset"] = example(stage(dataset=None))
    told["functions that were not recorded"] = check(
        InputPipeline.of(stage()), Unavailable("nothing recorded"), CpuContention(crowded=False)
    )


@golden_cases
def test_functions(told: Cases) -> None:
    pack = graph("columns", "Pack")
    told["a function is its graph by name"] = measured(graph("columns", "Placeholder", "DecodeCSV", "Pack"))
    told["a result of open shape"] = measured(graph("columns", "Pack", shape=(None,)))
    told["an element of open shape"] = measured(pack, element=ANY_LENGTH)
    told["a filter between map and batch ends the search"] = measured(pack, between="Filter")
    told["two functions of one name are not guessed from"] = measured(pack, graph("columns", "Cast"))
    for name in SINGLE_ITEMS:
        told[f"{name} takes single items"] = example(types=CHEAP | {name})
    for name in ("DecodeCSV", "DecodeRaw", "ParseExampleV2", "OneHot", "Cast"):
        told[f"{name} takes batches"] = example(types=frozenset((name,)))
    told["no function"] = lambda: measured()  # noqa: PLW0108 - it raises


# vectorized-map: only a function that treats a batch as it treats each element is given batches.
TEXT_OF_EDIT = """import tensorflow as tf

N, MEAN = 3, tf.ones([3])


def parse(record):
    row = tf.io.parse_single_example(record, FEATURES)
    label = row.pop("y")
    {body}
    return {result}


ds = files.shuffle(9){chain}
{after}
"""
CHAIN, RESULT = ".map(parse, num_parallel_calls=4).batch(8)", "row, label"
LINES = """import tensorflow as tf

N = 3
DEFAULTS = [[0.0]] * N


def parse(line):
    fields = tf.io.decode_csv(line, DEFAULTS + [0])
    {body}
    return x, fields[-1]


ds = tf.data.TextLineDataset(path).shuffle(9)
ds = ds.map(parse, num_parallel_calls=4)
{between}ds = ds.batch(8).prefetch(2)
"""


def made(body: str = "pass", result: str = RESULT, chain: str = CHAIN, after: str = "") -> str:
    return lines_of_edit(
        "vectorized-map", TEXT_OF_EDIT.format(body=body, result=result, chain=chain, after=after), "ds = files"
    )


def of_lines(body: str = "x = tf.stack(fields[:-1], axis=-1)", between: str = "", end: str = "\n") -> str:
    text = LINES.format(body=body, between=between).rstrip("\n") + end
    return lines_of_edit("vectorized-map", text, "ds = ds.map(parse")


@golden_cases
def test_batches(told: Cases) -> None:
    told["batches are parsed at once"] = made()
    told["batches are parsed at once, and labels encoded"] = made("label = tf.one_hot(label, N)")
    for body in (
        "x = tf.cast(row['x'], tf.float32) / 255.0",
        "x = tf.stack([row[k] for k in sorted(row)], axis=-1)",
        "x = row['x'][0]",
        "x = row['x'] - MEAN",
        "x = row['x'] * row['z']",
        "x = tf.maximum(row['x'], row['z'])",
        "x = tf.stack([row['x'], row['z']])",
        "x = tf.reduce_sum(row['x'])",
        "x = tf.reshape(row['x'], [2, 2])",
        "x = tf.io.decode_raw(row['x'], tf.uint8)",
        "x = tf.random.uniform([])",
    ):
        told[f"a batch of {body}"] = made(body, "x, label")
    told["a branch"] = made("if MEAN:\n        pass")
    told["another use of tf.io"] = made("f = tf.io.VarLenFeature(tf.int64)")
    told["a map not before its own batch"] = made(chain=".map(parse, num_parallel_calls=4).repeat().batch(8)")
    told["no batch behind the map"] = made(chain=".map(parse, num_parallel_calls=4)")
    told["another map of the function"] = made(after="other = test.map(parse)")


@golden_cases
def test_columns(told: Cases) -> None:
    for body in (
        "x = tf.stack(fields[:-1], axis=-1)",
        "x = tf.stack(fields[:-1])",
        "x = tf.math.log(fields[0] + 1.0)",
        "x = fields[0] * fields[1]",
        "x = tf.stack(fields[:-1], axis=0)",
        "x = tf.stack([fields[0], fields[1]])",
        "x = tf.stack(fields[:-1])[0]",
        "x = tf.strings.split(line, ',')",
    ):
        told[f"columns of lines: {body}"] = of_lines(body)
    told["a file without a line break at its end"] = of_lines("x = fields[0]", end="")
    told["a cache between map and batch"] = of_lines("x = tf.stack(fields[:-1])", "ds = ds.cache()\n")
    told["another use between map and batch"] = of_lines("x = tf.stack(fields[:-1])", "print(ds)\n")
