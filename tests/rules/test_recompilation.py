"""recompilation: compilations that continue during training."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.recompilation import check


def example(
    compiling: CompileTime = CompileTime(20, 20, 10, 250.0, 0.0, 346.0),
    host_ms: float = 268.0,
    program: Program | None = None,
    padding: SequencePadding | None = None,
) -> Verdict:
    """Every batch has another length, and XLA compiles in 20 of 20 steps."""
    return check(compiling, Breakdown.of(host=host_ms, device=4.0), program, padding)


sick = example


def healthy() -> Verdict:
    """XLA compiled before the traced steps."""
    return example(CompileTime(0, 20, 0), 0.5)


def test_compiling_at_the_start_is_no_fault() -> None:
    """Trap: a trace that holds the first calls."""
    cases = (2, 1), (1, 1), (9, 0), (0, 0)
    found = [example(CompileTime(steps, 20, late, 15.0), 20.0) for steps, late in cases]
    assert kinds(*found) == [Finding, Healthy, Healthy, Healthy]


def test_compilations_in_long_steps_alone_promise_no_saving() -> None:
    finding = as_finding(example(CompileTime(3, 20, 2, 0.0, 0.0, 300.0), 1.0))
    assert (finding.effects, finding.severity) == ((), Severity.NOTE)


def test_compiling_in_few_steps_has_the_severity_of_its_share_of_the_trace() -> None:
    """Trap: compiling in steady steps says little of what all of it costs."""
    critical, warning, note = Severity.CRITICAL, Severity.WARNING, Severity.NOTE
    for share, severity in ((0.93, critical), (0.2, critical), (0.1, warning), (0.01, note)):
        compiling = CompileTime(5, 20, 3, 2.5, 0.0, 850.0, share, frozenset((2, 5, 11, 17)))
        finding = as_finding(example(compiling, 3.0))
        assert (finding.effects, finding.severity) == ((), severity)
        assert "of the traced time" in finding.summary


LINE = Location("train.py", 3)


def tensor(shape: str) -> str:
    return f"TensorSpec(shape={shape}, dtype=tf.int32, name=None)"


def fed(element: str, *more: Dataset, rows: int | None = None, drops: bool = False) -> Program:
    """A program whose second dataset feeds the run."""
    given = DatasetParameters(drop_remainder=drops, batch_size=rows)
    batch = Dataset(id=1, kind="_BatchDataset", parameters=given, element=element, at=LINE)
    last = Dataset(id=2, kind="_PrefetchDataset", inputs=(1,), element=element)
    return Program(datasets=(batch, last, *more), feeds=2)


ANY, SIZE, LENGTH = "Keep the input shapes", "smaller batch", "a few lengths"


def test_whole_batches_are_advised_only_where_nothing_but_their_size_varies() -> None:
    """Trap: drop_remainder does not help with sequences of different lengths."""
    for element, words in (
        (tensor("(None, 20)"), SIZE),
        (f"({tensor('(None, 20)')}, {tensor('(None,)')})", SIZE),
        (f"({tensor('(None, None)')}, {tensor('(None,)')})", LENGTH),
        (f"({tensor('(16, None)')}, {tensor('(16,)')})", LENGTH),
        (tensor("(16, 20)"), ANY),
        ("", ANY),
        (tensor("<unknown>"), ANY),
        ("RaggedTensorSpec(TensorShape([None]), tf.int32, 0)", ANY),
        (f"({tensor('(None, 2)')}, SparseTensorSpec(TensorShape([2, 3]), tf.int32))", ANY),
    ):
        remedy = as_finding(example(program=fed(element))).remedies[0]
        drops = words == SIZE
        assert remedy.at == (LINE if drops else None)
        assert words in remedy.action


def test_a_run_without_a_pipeline_is_told_both() -> None:
    for program in (None, Program()):
        assert ANY in first_action(example(program=program))


def test_the_line_is_that_of_the_batch_that_feeds_the_run() -> None:
    element = tensor("(None, 20)")
    other = Dataset(id=7, kind="_BatchDataset", parameters=DatasetParameters(drop_remainder=False))
    assert as_finding(example(program=fed(element, other))).remedies[0].at == LINE
    assert as_finding(example(program=fed(element, other, drops=True))).remedies[0].at is None


def test_the_code_has_the_lengths_and_the_batch_size_that_were_recorded() -> None:
    padding = SequencePadding((PaddedInput(200, ((50,) * 31 + (200,),)),))
    program = fed(tensor("(16, None)"), rows=32)
    (lengths,) = as_finding(example(program=program, padding=padding)).remedies
    assert "bucket_boundaries=[57, 201], bucket_batch_sizes=[32] * 3" in lengths.code

    (unknown,) = as_finding(example()).remedies
    assert "dataset.batch(batch_size, drop_remainder=True)" in unknown.code
    assert not any(character.isdigit() for character in unknown.code)
