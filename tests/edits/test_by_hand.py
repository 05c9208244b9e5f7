"""Every remedy without an edit says what is in the way, in one clause."""

import importlib
from pathlib import Path

import pytest

from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.diagnosis.rule import NO_EDIT, Rule
from tfdoctor.edits import edited
from tfdoctor.edits.by_id import KINDS
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding


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
    found = finding("own", remedy(""), by_hand=why)
    results, patch = edited(recorded(tmp_path, ["train.py"]), [found], None)
    assert results[0].edits[0].missing == why
    assert patch == b""
