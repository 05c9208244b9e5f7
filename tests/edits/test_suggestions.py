"""An edit that changes more than the time is shown, not in the patch; a trial makes it when its rule is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.edits.recorded import finding, recorded, remedy
from tests.report.diagnoses import tried
from tfdoctor.diagnosis.results import Result
from tfdoctor.edits import edited
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Remedy
from tfdoctor.trial import proposals
from tfdoctor.trial.program import NotTried, Variant

TEXT = "import tensorflow as tf\nd = d.batch(32).shuffle(64)\nd = d.map(f)\n"
ORDER = "the examples come in another order"


def suggestion() -> Remedy:
    return replace(remedy("earlier-shuffle", line=2), changes=ORDER)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    (tmp_path / "train.py").write_text(TEXT)
    return recorded(tmp_path, ["train.py"])


def test_it_is_shown_and_not_in_the_patch(recording: Recording) -> None:
    (result,), patch = edited(recording, [finding("shuffle-order", suggestion())], None)
    (edit,) = result.edits
    assert (edit.before, edit.after) == ("d = d.batch(32).shuffle(64)", "d = d.shuffle(64).batch(32)")
    assert edit.missing.startswith(ORDER)
    assert "tfdoctor try --only shuffle-order" in edit.missing
    assert patch == b""


def test_another_remedy_of_its_finding_is_in_the_patch(recording: Recording) -> None:
    found = finding("shuffle-order", suggestion(), remedy("parallel-map", line=3))
    (result,), patch = edited(recording, [found], None)
    assert [bool(edit.missing) for edit in result.edits] == [True, False]
    assert b"+d = d.map(f, num_parallel_calls=tf.data.AUTOTUNE)" in patch
    assert b"d.shuffle" not in patch


def wanted(
    recording: Recording, only: list[str], *, keep: bool = False
) -> tuple[list[tuple[Variant, Result]], list[NotTried]]:
    results: tuple[Result, ...]
    results, _ = edited(recording, [finding("shuffle-order", suggestion())], None)
    return proposals.edits(recording, replace(tried(), results=results), only, keep=keep)


def test_it_is_tried_when_its_rule_is_named(recording: Recording) -> None:
    variants, missing = wanted(recording, [])
    assert not variants
    assert missing[0].why == f"{ORDER}, so it is tried only with --only shuffle-order"
    ((variant, _),), missing = wanted(recording, ["shuffle-order"])
    assert not missing
    assert variant.model == ORDER
    assert not variant.may_keep
    ((kept, _),), _ = wanted(recording, ["shuffle-order"], keep=True)
    assert kept.may_keep
