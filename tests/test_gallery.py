"""The gallery: each patch that its driver tries applies to its script, and leaves a program."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import gallery, trying


def report_with(*rules: str) -> trying.Object:
    findings = [
        {"rule": rule, "outcome": "finding", "remedies": [{"edit": None}]} for rule in rules
    ]
    return {"results": findings, "together": None}


@pytest.mark.parametrize("entry", gallery.ENTRIES, ids=lambda entry: entry.name)
def test_every_patch_applies_to_its_script(entry: gallery.Entry, tmp_path: Path) -> None:
    values = list(gallery.patches(entry, report_with(*entry.patched.values()), tmp_path))
    assert values
    for value in values:
        rule, equals, path = value.rpartition("=")
        assert bool(equals) == (Path(path).name != gallery.BOTH)
        assert entry.patched.get(Path(path).name, "") == rule
        (tmp_path / entry.script).write_bytes((gallery.SCRIPTS / entry.script).read_bytes())
        subprocess.run(["git", "apply", path], cwd=tmp_path, check=True)
        changed = (tmp_path / entry.script).read_text()
        assert changed != (gallery.SCRIPTS / entry.script).read_text()
        compile(changed, entry.script, "exec")


def test_a_change_that_tfdoctor_can_make_needs_no_patch(tmp_path: Path) -> None:
    (entry,) = (entry for entry in gallery.ENTRIES if entry.name == "Image folder")
    found = {
        "rule": gallery.PRECISION,
        "outcome": "finding",
        "remedies": [{"edit": {"after": "x"}}],
    }
    assert list(gallery.patches(entry, {"results": [found]}, tmp_path)) == []


def test_a_change_that_is_not_advised_says_so_and_both_needs_the_promise_of_both() -> None:
    entry = next(entry for entry in gallery.ENTRIES if gallery.NORM in entry.rules)
    patch = {"name": "mixed-bfloat16.diff", "promised": None}
    assert gallery.promise(patch, entry, report_with(gallery.NORM)) == "not advised"
    assert gallery.promise(patch, entry, report_with(gallery.PRECISION)) == "no figure"
    together = {"bound": "at-most", "share": 0.4, "rules": [gallery.NORM, gallery.PRECISION]}
    both = {"name": gallery.BOTH, "promised": None}
    assert gallery.promise(both, entry, {"results": [], "together": together}) == "at most 40 %"
    partly = together | {"rules": [gallery.NORM]}
    assert gallery.promise(both, entry, {"results": [], "together": partly}) == "no figure"


def test_no_published_code_begins_with_a_bare_backslash() -> None:
    pages = sorted(gallery.REPORTS.glob("*.md"))
    assert pages
    assert [page.name for page in pages if "```python\n\\\n" in page.read_text("utf-8")] == []
