"""padding-waste: sequences that are mostly zeros at their ends, and what only looks like them."""

from tests.rules.kit import *
from tfdoctor.capture.agent.process.journal import Journal
from tfdoctor.capture.agent.program.given import Given
from tfdoctor.facts.run.program import Shape
from tfdoctor.rules.input import padding_waste
from tfdoctor.rules.input.padding_waste import LengthWork
from tfdoctor.rules.input.padding_waste.batch_source import BatchMaker, BatchSource

TEXTS = (5, 12, 20, 31, 33, 40, 48, 59)


def example(
    *inputs: PaddedInput, rows: tuple[OperationTime, ...] = (),
    source: BatchSource = BatchSource(BatchMaker.DATASET), breakdown: Breakdown | None = None,
    loops: LoopWork | None = None, program: Program | None = None, overhead: PythonOverhead | None = None,
) -> Verdict:  # fmt: skip
    """Sequences of 50 words are padded to 200 for a matmul of 30 ms."""
    tensors = (("float32", (32, 200, 256)), ("float32", (256, 256)))
    graph = Operation(name="model/dense/MatMul", type="MatMul", inputs=tensors)
    matmul = took(graph.name, "MatMul", 30.0, operation=graph)
    padding = SequencePadding(inputs or (of_length(50),))
    work = LengthWork.measure(padding, Operations(rows or (matmul,)), loops, program)
    return padding_waste.check(padding, source, work, breakdown or Breakdown.of(device=30.0), program, overhead)


def of_length(length: int) -> PaddedInput:
    """Build an input whose sequences are padded to the longest one of 200 positions."""
    return PaddedInput(200, ((length,) * 31 + (200,),))


def row(name: str, *shapes: Shape, calls: float = 1.0) -> OperationTime:
    graph = Operation(name=name, type="X", inputs=tuple(("float32", shape) for shape in shapes))
    return took(name, "X", 10.0, operation=graph, calls=calls)


def check(used: float, *rows: OperationTime, **more: Any) -> Verdict:
    sequences = PaddedInput(200, ((round(used * 200),) * 8,))
    return example(sequences, rows=rows or (row("a", (32, 200, 8)),), **more)


def padded(*batches: tuple[int, ...], sizes: tuple[int, ...]) -> Verdict:
    entry = PaddedInput(max(sizes), batches, batches=True, sizes=sizes)
    return example(entry, rows=(row("a", (2, max(sizes), 8)),))


def loop_of(iterations: float, calls: float) -> tuple[OperationTime, LoopWork]:
    cell = row("while/body/Mul", (32, 8), calls=calls)
    return cell, LoopWork((GraphLoop("while", iterations, calls, 10.0, (cell,)),), 30.0, 35.0)


def measured(**parts: Any) -> SequencePadding:
    entry = {"shape": [64, 100], "lengths": [[*range(36, 45)]], "dtype": "int64", "begins": 1.0, "gaps": 0.0}
    return chart(trace([]), recording({"sequences": [entry | parts]})).fact(SequencePadding)


def alike(number: int) -> dict[str, Any]:
    """Of 30 rows that end early so many are of one length; rows without padding do not count."""
    return {"lengths": [[40] * number + [10 + at for at in range(30 - number)] + [100] * 5]}


def padded_in(padding: SequencePadding) -> list[str]:
    return [
        f"{one.used:.4g} of {one.steps} used, {shown(one.trimmed)} with batches as long as their longest; "
        f"{one.pad} at the {'beginning' if one.leading else 'end'}, "
        f"{one.batch_size} in {'a batch' if one.batches else 'a sample'}"
        for one in padding.inputs
    ]


def token_rows(*lengths: int, pad: int = 0, steps: int = 120) -> Any:
    rows = np.full((len(lengths), steps), pad, "int32")
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = range(7, 7 + length)
    return rows


def called(*given: Any) -> SequencePadding:
    """What is measured of calls with these arguments, as the agent records them."""
    lengths = Given(Journal("unused"))
    for arguments in given:
        lengths.call(arguments, {}, waits=True)
    assert not lengths.log.errors
    return chart(trace([]), recording({"sequences": lengths.describe(None)})).fact(SequencePadding)


def padded_columns(number: int = 64) -> Any:
    """Twenty columns of whole numbers, of which the last eight are zero but for a rare entry."""
    rows = np.random.default_rng(1).integers(1, 50, (number, 20))
    rows[:, 12:] = 0
    rows[3, 17] = rows[40, 14] = 1
    return rows


def advice(maker: BatchMaker, **parts: Any) -> Verdict:
    entry = PaddedInput(120, (TEXTS,), batches=True, **parts)
    source = BatchSource(maker, script(7))
    return example(entry, rows=(row("a", (8, 120, 8)),), source=source)


sick = example
healthy = described("Sequences of 190 words are padded to 200.", example, of_length(190))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a quarter of padding is reported, and less is not"] = check(0.75), check(0.755)
    own, longer = padded((40, 10), (90, 20), sizes=(40, 100)), padded((40, 10), (80, 20), sizes=(40, 120))
    told["trap: batches as long as their longest sequence, half of which only similar lengths avoid"] = own
    told["batches longer than that"] = longer, padded((100, 10), (100, 20), sizes=(100, 100))
    for longest, name in ((60, "of which its batches' longest keep half or less"), (61, "of which they keep more")):
        rest = 200 - longest
        lengths = (longest, *(rest // 9,) * 8, rest - 8 * (rest // 9))
        told[f"of 100 positions 20 are used, {name}: the saving is the remedy's"] = padded(lengths, sizes=(100,))


@golden_cases
def test_work(told: Cases) -> None:
    dense, scores = (32, 200, 8), (32, 4, 200, 200)
    rows = row("dense", dense), row("scores", scores), row("head", (32, 8))
    told["work scales with each dimension of time, and not without one"] = check(0.5, *rows)
    open_ones = row("dense", (None, None, 8)), row("scores", (None, 4, None, None))
    told["dimensions that are open may be time"] = check(0.5, *open_ones)
    for shape, name in (
        ((200, None, 8), "time comes first"),
        ((200, 300), "weights"),
        ((None, 8), "all positions of all sequences, perhaps"),
        ((None, 20, 8), "another length"),
        ((32, None, 8), "an open length"),
        ((32, 8), "a row for each sequence"),
    ):
        told[f"{name}: {shape}"] = check(0.5, row("a", dense), row("b", shape))
    told["a loop over half of the positions, and over less"] = check(0.5, row("cell", (32, 8), calls=100.0))
    told[...] = check(0.5, row("cell", (32, 8), calls=99.0))
    told["transfers of batches scale"] = check(0.5, breakdown=Breakdown.of(transfer=5.0, device=10.0))
    unknown = took("b", "X", 7.0)
    told["work of unknown length counts in proportion and is shown"] = check(0.5, row("scores", scores), unknown)
    told["unknown work alone is no work on sequences"] = check(0.5, unknown)
    program = Program((), (), settings=RunSettings(batch_size=32))
    told["batches before time"] = check(0.5, row("a", (200, 32, 8)), row("b", (200, 30, 8)), program=program)
    layer, head = (replace(row(f"{name}/MatMul", (None, 8)), layer=name) for name in ("dense", "head"))
    reshaped = Operation(name="dense/Reshape", type="Reshape", inputs=(("float32", dense),))
    program = Program((replace(reshaped, layer="dense"),), ())
    told["rows of a layer are positions if the layer has time: after pooling it is one for each example"] = check(
        0.5, row("a", dense), layer, head, program=program
    )


@golden_cases
def test_loops(told: Cases) -> None:
    cell, loops = loop_of(200.0, 90.0)  # some of its calls were not recorded
    told["the host starts a loop once for each position, of 256 of which 26 are used"] = check(
        0.1, cell, breakdown=Breakdown.of(host=40.0, device=10.0), loops=loops
    )
    parts = Breakdown.of(host=40.0, device=20.0)
    for iterations in (3.0, 99.0):
        cell, loops = loop_of(iterations, iterations)
        told[f"a loop of {iterations:g} iterations is not over 200 positions"] = check(
            0.1, row("a", (32, 200, 8)), cell, breakdown=parts, loops=loops
        )
    cell, others = row("while/body/Mul", (32, 8), calls=150.0), row("adam/Mul", (8, 8), calls=50.0)
    told["the host shrinks by the calls of the loop: three of four"] = check(0.5, cell, others, breakdown=parts)
    padding = SequencePadding((PaddedInput(120, (TEXTS,), batches=True),))
    dense = Operations((row("a", (8, 120, 8)), row("dense", (960, 8))))  # one matrix of all positions of a batch
    known = [one.name for one, long in LengthWork.measure(padding, dense, None, None).growing if long is not None]
    told["positions in rows of a loop without a dataset are known by its batches of 8 rows of 120"] = known
    told["the call itself does not shrink"] = check(0.5, cell, breakdown=parts, overhead=PythonOverhead(4.0, 1.0))


@golden_cases
def test_recorded(told: Cases) -> None:
    def sequences(name: str, **parts: Any) -> None:
        told[name] = lambda: padded_in(measured(**parts))

    two = [[40] * 9, [20] * 9]
    sequences("lengths of 36 to 44 of 100 positions")
    sequences("batches of 40 and of 20", lengths=two, batches=True)
    sequences("batches of other lengths: shares of their own batch", lengths=two, steps=[50, 200], batches=True)
    sequences("zeros at the beginning", leading=True)
    sequences("27 of 30 rows are alike", **alike(27))
    sequences("trap: images with black borders, and series that are aligned to the right", begins=0.97)
    sequences("few rows begin with zeros", begins=0.98)
    sequences("trap: one-hot and sparse features", gaps=0.06)
    sequences("few zeros lie between others", gaps=0.05)
    sequences("trap: 15 columns of a table", shape=[64, 15], lengths=[[*range(9)]])
    sequences("seven lengths", lengths=[[*range(36, 43)]])
    sequences("eight lengths", lengths=[[*range(36, 44)]])
    sequences("a mask", mask=True)
    sequences("all positions are used", leading=True, lengths=[[100] * 9])
    sequences("28 of 30 rows are alike", **alike(28))
    told["an old recording"] = lambda: chart(trace([]), recording({"graphs": []})).fact(SequencePadding)


@golden_cases
def test_arguments(told: Cases) -> None:
    def given(name: str, rows: Any, dtype: str = "int32") -> None:
        arguments = {"tokens": rows.astype(dtype)}, np.ones(len(rows))
        told[name] = lambda: padded_in(called(arguments, arguments))

    for pad in (0, 1, -100):
        rows = token_rows(*TEXTS, pad=pad)
        given(f"texts, padded with {pad}", rows)
        given(f"texts, padded before with {pad}", rows[:, ::-1])
    for dtype in ("uint8", "float32", "int16"):
        given(f"texts as {dtype} are no sequences", token_rows(*TEXTS), dtype)
    given("trap: a table", padded_columns())
    given("trap: one-hot rows", np.eye(40)[np.arange(64) % 40])
    given("trap: multi-hot rows", np.random.default_rng(2).random((64, 40)) < 0.1)
    given("trap: a mask, or an ordinal label", np.arange(40) < np.arange(1, 33)[:, None])
    given("trap: an image", np.pad(np.random.default_rng(3).integers(1, 255, (64, 80)), [(0, 0), (20, 20)]))
    given("trap: counts", np.random.default_rng(4).poisson(1.0, (64, 20)))


@golden_cases
def test_advice(told: Cases) -> None:
    for maker in BatchMaker:
        told[f"batches made by {maker.name}"] = verdict = advice(maker)
        for remedy in as_finding(verdict).remedies:
            ast.parse(remedy.code)
    told["padding before the words with 1 in a loop"] = advice(BatchMaker.LOOP, leading=True, pad=1)
    told["padding with 1 in a dataset"] = advice(BatchMaker.DATASET, pad=1)
    buckets = (
        PaddedInput(120, batches).buckets for batches in (((5, 12, 16, 17), (33, 40, 48, 59)), ((3, 4, 5, 100),))
    )
    told["buckets are quarters of the recorded lengths"] = [*buckets]
    entry, whole = PaddedInput(100, ((10, 50, 10, 50),)), PaddedInput(100, ((10, 20), (30, 40)), batches=True)
    told["two rows of a sample are both short with a probability of 1/4"] = entry.cut(2), entry.cut(None)
    told["whole batches have their longest"] = whole.cut(64)


@golden_cases
def test_makers(told: Cases) -> None:
    datasets = [{"id": 1, "class": "_PaddedBatchDataset", "at": ["train.py", 3]}]
    given = {"fed": {"at": ["train.py", 5]}}, {"fit_at": ["train.py", 9]}
    for kind in ("tf.data", "DatasetAdapter", "arrays", "PyDataset", "KerasSequenceAdapter", ""):
        record = {"input_kind": kind, "datasets": datasets, "feeds": 1, "python": given[0], "run": given[1]}
        source = chart(trace([]), recording(record)).fact(BatchSource)
        told[f"what makes batches of {kind or 'a loop of calls'}"] = f"{source.maker.name} at {shown(source.at)}"
