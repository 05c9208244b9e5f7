"""What `tfdoctor profile` says at its end: the commands that apply and measure the changes."""

from dataclasses import replace
from pathlib import Path

from tests.report import diagnoses
from tfdoctor.cli.outcome import next_steps
from tfdoctor.diagnosis import Edit


def test_only_changes_that_are_edits_count() -> None:
    full = diagnoses.full()
    assert next_steps(replace(full, results=()), Path("run")) == ""
    first, second, *rest = full.results
    ready, missing = (
        Edit(at=None, before="a", after="b"),
        Edit(at=None, missing="it is code of a library"),
    )
    both = tuple(replace(one, edits=(missing, ready)) for one in (first, second))
    none = tuple(replace(one, edits=(missing,)) for one in rest)
    assert next_steps(replace(full, results=(*both, *none)), Path("my run")) == (
        "Two changes can be applied automatically: `tfdoctor report 'my run' --patch fix.diff` writes them, "
        "`tfdoctor try 'my run'` measures them."
    )
    assert "One change can be applied automatically" in next_steps(
        replace(full, results=(both[0], *none)), Path("run")
    )
