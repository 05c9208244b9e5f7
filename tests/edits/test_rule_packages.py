"""A rule that is a package brings its own edits, and the reason where it has none."""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from tests.edits.recorded import finding, recorded, remedy
from tests.report.diagnoses import rule
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.edits import edited

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

EDIT = """from tfdoctor.source_code.splice import Splice

EDITS = {"remove-line": lambda module, line, _: [Splice(0, len(module.text), 0, "y = 2\\n")]}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rule:
    folder = tmp_path / "needless_line"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "edit.py").write_text(EDIT)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Rule.from_module(import_module("needless_line"))
    monkeypatch.delitem(sys.modules, "needless_line")
    return made


def test_the_edit_of_a_package_is_imported_when_it_is_needed(package: Rule) -> None:
    assert package.edit_modules == ("needless_line.edit",)
    assert "needless_line.edit" not in sys.modules
    assert set(package.edits()) == {"remove-line"}
    del sys.modules["needless_line.edit"]


def test_a_rule_without_a_folder_brings_no_edit() -> None:
    assert rule("input-bound").edits() == {}


def test_the_edit_of_a_package_changes_the_file(package: Rule, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    found = replace(finding("", remedy("remove-line"), remedy("")), rule=package)
    results, patch = edited(recorded(tmp_path, ["train.py"]), [found], None)
    made, other = results[0].edits
    assert (made.before, made.after) == ("x = 1", "y = 2")
    assert other.missing == package.by_hand
    assert b"+y = 2" in patch
