"""Recordings of files in a folder, and findings about their lines."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.report.diagnoses import rule
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import NO_EDIT
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.typed import read
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding, Location, Remedy

MODULES = {edit_id: rule.edit_modules for rule in all_rules() for edit_id in rule.edits()}
"""The module of each edit that belongs to one rule."""


def recorded(
    folder: Path,
    files: Sequence[str],
    run: Mapping[str, object] | None = None,
    layers: Sequence[Mapping[str, str]] | None = (),
) -> Recording:
    """Return the recording of a run in a folder: the hashes of these files, its settings and layers."""
    hashes = {str(folder / name): hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    written = [{"name": f"layer{at}", **layer} for at, layer in enumerate(layers or ())]
    data = {"sources": hashes, "run": run, "layers": None if layers is None else written}
    program = read(ProgramRecord, data, [])
    return Recording(None, Manifest(cwd=str(folder)), (), program, (), ())


def finding(name: str, *remedies: Remedy, by_hand: str = NO_EDIT) -> Result:
    """Return a finding with these remedies, of a rule that says what is in the way of an edit.

    It has the edits of the rule that the first remedy with an edit of its own belongs to.
    """
    modules = [MODULES[remedy.edit_id] for remedy in remedies if remedy.edit_id in MODULES]
    own = replace(rule(name), by_hand=by_hand, edit_modules=modules[0] if modules else ())
    return Result(rule=own, outcome=Finding(summary="", evidence=(), remedies=remedies))


def remedy(edit_id: str, path: str = "train.py", line: int = 1, code: str = "") -> Remedy:
    """Return a remedy for a line."""
    return Remedy("Change it", code, Location(path, line) if line else None, edit_id)
