"""What a remedy shows and where it is made: by an edit, as a suggestion, or by hand with the reason for that."""

import importlib
import sys

from tests.edits.kit import *
from tests.report.diagnoses import tried
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.rules import all_rules
from tfdoctor.trial import proposals
from tfdoctor.trial.program import NotTried, Variant


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_remedy_has_an_edit_or_its_rule_a_reason(rule: Rule) -> None:
    verdict = importlib.import_module(f"tests.rules.test_{rule.name.replace('-', '_')}").sick()
    assert isinstance(verdict, Finding)
    known = {*KINDS, *rule.edits()}
    without = [remedy for remedy in verdict.remedies if remedy.edit_id not in known]
    assert not without or rule.by_hand != NO_EDIT
    assert rule.by_hand[0].islower()
    assert rule.by_hand[-1].isalnum()


@pytest.mark.parametrize("why", ["the files have to be written again", NO_EDIT])
def test_the_reason_is_told(tmp_path: Path, why: str) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    results, patch = made(tmp_path, finding("own", remedy(""), by_hand=why))
    assert (missing(results), patch) == ([why], b"")


PACKAGE = '''"""A line that is too much.

## What it checks
A line.
## Why it matters
It takes time.
## How to fix
Remove it.
## Holds for
All.
## Sources
None.
"""

from tfdoctor.facts.run.device import Device
from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.RUN
BY_HAND = "only its writer knows why it is there"


def check(device: Device): ...
def sick(): ...
def healthy(): ...
'''

EDIT = """from tfdoctor.edits.kit import *

EDITS = {"remove-line": lambda module, line, _: [Splice(0, len(module.text), 0, "y = 2\\n")]}
"""


def test_a_package_brings_its_edit_which_is_imported_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needless_line").mkdir()
    (tmp_path / "needless_line" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "needless_line" / "edit.py").write_text(EDIT)
    (tmp_path / "train.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = Rule.from_module(importlib.import_module("needless_line"))
    monkeypatch.delitem(sys.modules, "needless_line")
    assert package.edit_modules == ("needless_line.edit",)
    assert "needless_line.edit" not in sys.modules
    (result,), patch = made(tmp_path, replace(finding("", remedy("remove-line"), remedy("")), rule=package))
    edit, other = result.edits
    assert (edit.before, edit.after, other.missing) == ("x = 1", "y = 2", package.by_hand)
    assert b"+y = 2" in patch
    del sys.modules["needless_line.edit"]


def test_a_rule_without_a_folder_brings_no_edit() -> None:
    assert rule("input-bound").edits() == {}


ORDER = "the examples come in another order"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    (tmp_path / "train.py").write_text("import tensorflow as tf\nd = d.batch(32).shuffle(64)\nd = d.map(f)\n")
    return recorded(tmp_path)


def suggested(recording: Recording, *more: Remedy) -> tuple[tuple[Result, ...], bytes]:
    suggestion = replace(remedy("earlier-shuffle", line=2), changes=ORDER)
    return made(recording, finding("shuffle-order", suggestion, *more))


def test_a_suggestion_is_shown_and_not_in_the_patch(recording: Recording) -> None:
    (result,), patch = suggested(recording)
    (edit,) = result.edits
    assert (edit.before, edit.after) == ("d = d.batch(32).shuffle(64)", "d = d.shuffle(64).batch(32)")
    assert edit.missing.startswith(ORDER)
    assert "tfdoctor try --only shuffle-order" in edit.missing
    assert patch == b""


def test_another_remedy_of_its_finding_is_in_the_patch(recording: Recording) -> None:
    results, patch = suggested(recording, remedy("parallel-map", line=3))
    assert list(map(bool, missing(results))) == [True, False]
    assert b"+d = d.map(f, num_parallel_calls=tf.data.AUTOTUNE)" in patch
    assert b"d.shuffle" not in patch


def wanted(
    recording: Recording, only: list[str], *, keep: bool = False
) -> tuple[list[tuple[Variant, Result]], list[NotTried]]:
    results, _ = suggested(recording)
    return proposals.edits(recording, replace(tried(), results=results), only, keep=keep)


def test_a_suggestion_is_tried_when_its_rule_is_named(recording: Recording) -> None:
    variants, missing = wanted(recording, [])
    assert not variants
    assert missing[0].why == f"{ORDER}, so it is tried only with --only shuffle-order"
    ((variant, _),), missing = wanted(recording, ["shuffle-order"])
    assert (missing, variant.model, variant.may_keep) == ([], ORDER, False)
    ((kept, _),), _ = wanted(recording, ["shuffle-order"], keep=True)
    assert kept.may_keep
