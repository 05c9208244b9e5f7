"""recompilation: compilations that continue during training."""

import pytest

from tests.rules.cases.recompilation import example
from tests.rules.verdicts import as_finding
from tfdoctor.facts.input.training_inputs import PaddedInput, SequencePadding
from tfdoctor.facts.step_time.python_work import CompileTime
from tfdoctor.rules.recompilation.open_shapes import OpenShapes
from tfdoctor.terms.verdict import Finding, Healthy, Location, Severity


@pytest.mark.parametrize(
    ("steps", "late", "kind"), [(2, 1, Finding), (1, 1, Healthy), (9, 0, Healthy), (0, 0, Healthy)]
)
def test_compiling_at_the_start_is_no_fault(steps: int, late: int, kind: type) -> None:
    """Trap: a trace that holds the first calls."""
    assert isinstance(example(CompileTime(steps, 20, late, 15.0), 20.0), kind)


def test_compilations_in_long_steps_alone_promise_no_saving() -> None:
    finding = as_finding(example(CompileTime(3, 20, 2, 0.0, 0.0, 300.0), 1.0))
    assert (finding.effects, finding.severity) == ((), Severity.NOTE)


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.93, Severity.CRITICAL), (0.2, Severity.CRITICAL), (0.1, Severity.WARNING), (0.01, Severity.NOTE)],
)
def test_compiling_in_few_steps_has_the_severity_of_its_share_of_the_trace(
    share: float, severity: Severity
) -> None:
    """Trap: compiling in steady steps says little of what all of it costs."""
    compiling = CompileTime(5, 20, 3, 2.5, 0.0, 850.0, share, frozenset((2, 5, 11, 17)))
    finding = as_finding(example(compiling, 3.0))
    assert (finding.effects, finding.severity) == ((), severity)
    assert "of the traced time" in finding.summary


LINE = Location("train.py", 7)


@pytest.mark.parametrize(
    ("shapes", "edit_id", "words"),
    [
        (None, "", "Keep the input shapes"),
        (OpenShapes(size=True, at=LINE), "drop-remainder", "smaller batch"),
        (OpenShapes(size=True), "", "Keep the input shapes"),
        (OpenShapes(at=LINE), "", "Keep the input shapes"),
        (OpenShapes(size=True, lengths=True, at=LINE), "", "a few lengths"),
    ],
)
def test_whole_batches_are_advised_only_where_nothing_but_their_size_varies(
    shapes: OpenShapes | None, edit_id: str, words: str
) -> None:
    """Trap: drop_remainder does not help with sequences of different lengths."""
    finding = as_finding(example(shapes=shapes))
    assert (finding.remedies[0].edit_id, finding.remedies[0].at) == (edit_id, LINE if edit_id else None)
    assert words in finding.remedies[0].action


def test_the_code_has_the_lengths_and_the_batch_size_that_were_recorded() -> None:
    padding = SequencePadding((PaddedInput(200, ((50,) * 31 + (200,),)),))
    shapes = OpenShapes(lengths=True, rows=32)
    (lengths,) = as_finding(example(shapes=shapes, padding=padding)).remedies
    assert "bucket_boundaries=[57, 201], bucket_batch_sizes=[32] * 3" in lengths.code

    (unknown,) = as_finding(example()).remedies
    assert "dataset.batch(batch_size, drop_remainder=True)" in unknown.code
    assert not any(character.isdigit() for character in unknown.code)
