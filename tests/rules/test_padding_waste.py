"""padding-waste: sequences that are mostly zeros at their ends, and what only looks like them."""

import ast

import numpy as np
import pytest

from tests.rules.kit import *
from tfdoctor.capture.agent.process.journal import Journal
from tfdoctor.capture.agent.program.given import Given
from tfdoctor.rules.input import padding_waste
from tfdoctor.rules.input.padding_waste import ACTION, OWN, BatchMaker, BatchSource, LengthWork


def example(
    *inputs: PaddedInput, rows: tuple[OperationTime, ...] = (),
    source: BatchSource = BatchSource(BatchMaker.DATASET), breakdown: Breakdown | None = None,
    loops: LoopWork | None = None, program: Program | None = None, overhead: PythonOverhead | None = None,
) -> Verdict:  # fmt: skip
    """Sequences of 50 words are padded to 200 for a matmul of 30 ms."""
    tensors = (("float32", (32, 200, 256)), ("float32", (256, 256)))
    graph = Operation(name="model/dense/MatMul", type="MatMul", inputs=tensors)
    matmul = OperationTime(name=graph.name, type="MatMul", ms=30.0, operation=graph)
    padding = SequencePadding(inputs or (of_length(50),))
    work = LengthWork.measure(padding, Operations(rows or (matmul,)), loops, program)
    return padding_waste.check(padding, source, work, breakdown or Breakdown.of(device=30.0), program, overhead)


def of_length(length: int) -> PaddedInput:
    """Build an input whose sequences are padded to the longest one of 200 positions."""
    return PaddedInput(200, ((length,) * 31 + (200,),))


sick = example


def healthy() -> Verdict:
    """Sequences of 190 words are padded to 200."""
    return example(of_length(190))


def row(name: str, *shapes: Shape, calls: float = 1.0) -> OperationTime:
    graph = Operation(name=name, type="X", inputs=tuple(("float32", shape) for shape in shapes))
    return OperationTime(name=name, type="X", ms=10.0, operation=graph, calls=calls)


def check(used: float, *rows: OperationTime, **more: Any) -> Verdict:
    sequences = PaddedInput(200, ((round(used * 200),) * 8,))
    return example(sequences, rows=rows or (row("a", (32, 200, 8)),), **more)


def test_a_quarter_of_padding_is_reported() -> None:
    assert [type(check(used)) for used in (0.75, 0.755, 0.95)] == [Finding, Healthy, Healthy]


def test_work_scales_with_each_dimension_of_time() -> None:
    rows = [row("dense", (32, 200, 8)), row("scores", (32, 4, 200, 200)), row("head", (32, 8))]
    finding = check(0.5, *rows)
    assert scales(finding) == {"dense": 0.5, "scores": 0.25}
    assert {bound for *_, bound in effects(finding)} == {Bound.AT_MOST}
    assert scales(check(0.5, row("dense", (None, None, 8)), row("scores", (None, 4, None, None)))) == scales(
        finding
    )


def test_a_loop_over_time_scales_too() -> None:
    long, short = (as_finding(check(0.5, row("cell", (32, 8), calls=calls))) for calls in (100.0, 99.0))
    assert (len(long.effects), long.severity) == (1, None)
    assert (len(short.effects), short.severity) == (0, None)


def test_the_host_starts_a_loop_once_for_each_position() -> None:
    """Of 256 positions 26 are used: the host's time scales as the operations do, so the bound includes it."""
    cell = row("while/body/Mul", (32, 8), calls=90.0)  # some of its calls were not recorded
    loops = LoopWork((GraphLoop("while", 200.0, 90.0, 10.0, (cell,)),), 30.0, 35.0)
    finding = as_finding(check(0.1, cell, breakdown=Breakdown.of(host=40.0, device=10.0), loops=loops))
    assert [one[:3] for one in effects(finding)] == [(Stage.DEVICE, 10.0, 0.1), (Stage.HOST, 40.0, 0.1)]
    assert finding.effects[1].subject == StepWork.SCHEDULING


def test_a_loop_that_is_shorter_than_the_sequences_is_not_over_time() -> None:
    for iterations in (3.0, 99.0):
        cell = row("while/body/Mul", (32, 8), calls=iterations)
        loops = LoopWork((GraphLoop("while", iterations, 3.0, 10.0, (cell,)),), 30.0, 35.0)
        parts = Breakdown.of(host=40.0, device=20.0)
        assert scales(check(0.1, row("a", (32, 200, 8)), cell, breakdown=parts, loops=loops)) == {"a": 0.1}


def test_transfers_of_batches_scale() -> None:
    assert scales(check(0.5, breakdown=Breakdown.of(transfer=5.0, device=10.0))) == {"a": 0.5, "": 0.5}


def test_what_may_be_as_long_as_the_sequences_counts() -> None:
    for shape, times in (
        ((200, None, 8), 1),  # time comes first
        ((200, 300), 0),  # weights
        ((None, 8), 1),  # may be all positions of all sequences
        ((None, 20, 8), 0),
        ((32, None, 8), 1),
        ((32, 8), 0),
    ):
        found = scales(check(0.5, row("a", (32, 200, 8)), row("b", shape)))
        assert found == {"a": 0.5} | ({"b": 0.5} if times else {})


def test_work_of_unknown_length_counts_in_proportion_and_is_shown() -> None:
    unknown = OperationTime(name="b", type="X", ms=7.0)
    finding = as_finding(check(0.5, row("scores", (32, 4, 200, 200)), unknown))
    assert scales(finding) == {"scores": 0.25, "b": 0.5}
    assert ms(7.0) in [entry.value for entry in finding.evidence if isinstance(entry, Measure)]


def test_rows_of_a_layer_are_positions_if_the_layer_has_time() -> None:
    """A dense layer makes rows of all positions; the same shape after pooling has one row for each example."""
    dense, head = (replace(row(f"{name}/MatMul", (None, 8)), layer=name) for name in ("dense", "head"))
    reshaped = Operation(name="dense/Reshape", type="Reshape", inputs=(("float32", (32, 200, 8)),))
    program = Program((replace(reshaped, layer="dense"),), ())
    found = scales(check(0.5, row("a", (32, 200, 8)), dense, head, program=program))
    assert found == {"a": 0.5, "dense/MatMul": 0.5}


def test_the_host_shrinks_by_the_calls_of_the_loop() -> None:
    """The call from Python does not."""
    cell, others = row("while/body/Mul", (32, 8), calls=150.0), row("adam/Mul", (8, 8), calls=50.0)
    parts = Breakdown.of(host=40.0, device=20.0)
    shared = check(0.5, cell, others, breakdown=parts)
    called = check(0.5, cell, breakdown=parts, overhead=PythonOverhead(4.0, 1.0))
    assert [[of for part, of, *_ in effects(one) if part is Stage.HOST] for one in (shared, called)] == [
        [30.0],
        [36.0],
    ]


def padded(*batches: tuple[int, ...], sizes: tuple[int, ...]) -> Verdict:
    entry = PaddedInput(max(sizes), batches, batches=True, sizes=sizes)
    return example(entry, rows=(row("a", (2, max(sizes), 8)),))


def test_batches_as_long_as_their_longest_sequence_are_healthy() -> None:
    """Trap: half of them is padding, which only batches of similar lengths avoid."""
    own, longer = padded((40, 10), (90, 20), sizes=(40, 100)), padded((40, 10), (80, 20), sizes=(40, 120))
    fixed = padded((100, 10), (100, 20), sizes=(100, 100))
    assert kinds(own, longer, fixed) == [Healthy, Finding, Finding]


def test_batches_before_time_are_known_by_their_size() -> None:
    program = Program((), (), settings=RunSettings(batch_size=32))
    found = scales(check(0.5, row("a", (200, 32, 8)), row("b", (200, 30, 8)), program=program))
    assert found == {"a": 0.5}


def test_unknown_work_alone_is_no_work_on_sequences() -> None:
    assert as_finding(check(0.5, OperationTime(name="b", type="X", ms=10.0))).effects == ()


def measured(**parts: Any) -> SequencePadding:
    entry = {"shape": [64, 100], "lengths": [[*range(36, 45)]], "dtype": "int64", "begins": 1.0, "gaps": 0.0}
    return chart(trace([]), recording({"sequences": [entry | parts]})).fact(SequencePadding)


def test_the_recorded_lengths_are_what_is_used() -> None:
    (entry,) = measured().inputs
    assert (entry.steps, entry.trimmed, entry.used) == (100, None, near(0.4))
    (entry,) = measured(lengths=[[40] * 9, [20] * 9], batches=True).inputs
    assert [entry.used, entry.trimmed] == near([0.3, 0.3])
    (entry,) = measured(lengths=[[40] * 9, [20] * 9], steps=[50, 200], batches=True).inputs
    assert (entry.steps, entry.used) == (200, near(540 / 2250))  # shares of their own batch


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


TEXTS = (5, 12, 20, 31, 33, 40, 48, 59)


@pytest.mark.parametrize("pad", [0, 1, -100])
@pytest.mark.parametrize("leading", [False, True])
def test_padding_is_what_the_training_call_gets(pad: int, *, leading: bool) -> None:
    rows = token_rows(*TEXTS, pad=pad)[:, :: -1 if leading else 1]
    (entry,) = called(({"tokens": rows}, np.ones(8)), ({"tokens": rows}, np.ones(8))).inputs
    assert entry.lengths == (TEXTS, TEXTS)
    assert (entry.steps, entry.pad, entry.leading) == (120, pad, leading)
    assert (entry.batches, entry.batch_size) == (True, 8)


def padded_columns(number: int = 64) -> Any:
    """Twenty columns of whole numbers, of which the last eight are zero but for a rare entry."""
    rows = np.random.default_rng(1).integers(1, 50, (number, 20))
    rows[:, 12:] = 0
    rows[3, 17] = rows[40, 14] = 1
    return rows


@pytest.mark.parametrize(
    "rows",
    [
        padded_columns(),
        np.eye(40, dtype="int64")[np.arange(64) % 40],  # one-hot
        np.random.default_rng(2).random((64, 40)) < 0.1,  # multi-hot
        np.arange(40) < np.arange(1, 33)[:, None],  # a mask, or an ordinal label
        np.pad(np.random.default_rng(3).integers(1, 255, (64, 80)), [(0, 0), (20, 20)]),  # an image
        np.random.default_rng(4).poisson(1.0, (64, 20)),  # counts
    ],
    ids=["table", "one-hot", "multi-hot", "mask", "image", "counts"],
)
def test_other_matrices_of_whole_numbers_are_no_padding(rows: Any) -> None:
    with pytest.raises(Unavailable):
        called(rows.astype("int32"))


def test_matrices_of_other_types_are_no_sequences() -> None:
    for dtype in ("uint8", "float32", "int16"):
        with pytest.raises(Unavailable):
            called(token_rows(*TEXTS).astype(dtype))


def alike(number: int) -> dict[str, Any]:
    """Of 30 rows that end early so many are of one length; rows without padding do not count."""
    return {"lengths": [[40] * number + [10 + at for at in range(30 - number)] + [100] * 5]}


def test_buckets_are_quarters_of_the_recorded_lengths() -> None:
    entry = PaddedInput(120, ((5, 12, 16, 17), (33, 40, 48, 59)))
    assert entry.buckets == (16, 24, 40, 64)
    assert PaddedInput(120, ((3, 4, 5, 100),)).buckets == (8, 104)


def advice(maker: BatchMaker, **parts: Any) -> tuple[Remedy, ...]:
    entry = PaddedInput(120, (TEXTS,), batches=True, **parts)
    source = BatchSource(maker, Location("train.py", 7))
    return as_finding(example(entry, rows=(row("a", (8, 120, 8)),), source=source)).remedies


def test_the_advice_is_python_for_what_makes_the_batches() -> None:
    for maker in BatchMaker:
        own, by_length = advice(maker)
        assert own.at == Location("train.py", 7)
        for code in (own.code, by_length.code):
            ast.parse(code)
            of_dataset = maker in {BatchMaker.DATASET, BatchMaker.ARRAYS}
            assert ("padded_batch" in code or "bucket_by" in code) is of_dataset
        assert "16, 32, 40, 64" in by_length.code or "[17, 33, 41]" in by_length.code


def test_the_advice_keeps_the_side_and_the_number_of_the_padding() -> None:
    assert 'padding="pre", value=1' in advice(BatchMaker.LOOP, leading=True, pad=1)[0].code
    assert "padding_values: 1" in advice(BatchMaker.DATASET, pad=1)[0].code


def test_what_makes_the_batches_is_told_by_what_is_given() -> None:
    for kind, maker, line in (
        ("tf.data", BatchMaker.DATASET, 3),
        ("DatasetAdapter", BatchMaker.DATASET, 3),  # of Keras 2
        ("arrays", BatchMaker.ARRAYS, 3),
        ("PyDataset", BatchMaker.GIVEN, 9),
        ("KerasSequenceAdapter", BatchMaker.GIVEN, 9),
        ("", BatchMaker.LOOP, 5),
    ):
        datasets = [{"id": 1, "class": "_PaddedBatchDataset", "at": ["train.py", 3]}]
        python, run = {"fed": {"at": ["train.py", 5]}}, {"fit_at": ["train.py", 9]}
        record = {"input_kind": kind, "datasets": datasets, "feeds": 1, "run": run, "python": python}
        source = chart(trace([]), recording(record)).fact(BatchSource)
        assert (source.maker, source.at) == (maker, Location("train.py", line))


def test_positions_in_rows_of_a_loop_without_a_dataset_are_known_by_its_batches() -> None:
    """A dense layer makes one matrix of all positions of a batch: 8 rows of 120."""
    padding = SequencePadding((PaddedInput(120, (TEXTS,), batches=True),))
    rows = row("a", (8, 120, 8)), row("dense", (960, 8))
    work = LengthWork.measure(padding, Operations(rows), None, None)
    assert [entry.row.name for entry in work.growing if entry.known] == ["a", "dense"]


def test_other_zeros_are_no_padding() -> None:
    for parts in (
        {"begins": 0.97},  # trap: images with black borders, and series that are aligned to the right
        {"gaps": 0.06},  # trap: one-hot and sparse features
        {"shape": [64, 15], "lengths": [[*range(9)]]},  # trap: columns of a table
        {"lengths": [[*range(36, 43)]]},
        {"mask": True},
        {"leading": True, "lengths": [[100] * 9]},
        alike(28),
    ):
        with pytest.raises(Unavailable):
            measured(**parts)


def test_the_other_sides_of_these_limits() -> None:
    for parts in ({"begins": 0.98}, {"gaps": 0.05}, {"lengths": [[*range(36, 44)]]}, alike(27)):
        assert len(measured(**parts).inputs) == 1
    assert measured(leading=True).inputs[0].leading


def test_an_old_recording_says_what_is_missing() -> None:
    with pytest.raises(Unavailable, match="record the run again"):
        chart(trace([]), recording({"graphs": []})).fact(SequencePadding)


def test_the_saving_is_that_of_the_remedy() -> None:
    """Of 100 positions 20 are used; a batch of its own longest sequence keeps half of the 80, or more."""
    for longest, scale, first in ((60, 0.6, OWN), (61, 0.2, ACTION)):
        rows = (longest, *((200 - longest) // 9,) * 8, 200 - longest - 8 * ((200 - longest) // 9))
        finding = padded(rows, sizes=(100,))
        assert scales(finding) == near({"a": scale})
        assert first_action(finding) == first


def test_the_longest_of_a_batch_is_expected_from_a_sample() -> None:
    """Two rows of a batch: both short with a probability of 1/4."""
    entry = PaddedInput(100, ((10, 50, 10, 50),))
    assert entry.cut(2) == near((0.25 * 10 + 0.75 * 50) / 100)
    assert entry.cut(None) is None
    assert PaddedInput(100, ((10, 20), (30, 40)), batches=True).cut(64) == near(0.3)  # whole batches
