"""``tfdoctor diff``: compare two runs of a program."""

import sys
from pathlib import Path

import typer

from tfdoctor.cli.commands import DiffOptions
from tfdoctor.cli.options import FOUND, UNDECIDED, book
from tfdoctor.cli.outcome import noted, tell, untried
from tfdoctor.cli.values import files_beside
from tfdoctor.compare.compare import compare
from tfdoctor.compare.reports import load, must_differ
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report import comparison as rendering
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.progress_line import late_line


def diff(given: DiffOptions) -> int:
    """Compare two runs, or several before a change with several after it, and return the exit code."""
    wanted, most = files_beside(given.formats, show=given.show), given.max_regression
    if most is not None and given.shares:
        raise typer.BadParameter("--max-regression needs times: leave --shares out")
    if given.shares and given.anyway:
        raise typer.BadParameter("--shares and --anyway exclude each other: leave one out")
    before, after = [given.before, *(given.also_before or ())], [given.after, *(given.also_after or ())]
    applied = book(given.rules.settings(given.before, given.after, *before[1:], *after[1:]))
    must_differ([*before, *after])

    def diagnosis(path: Path) -> Diagnosis:
        with late_line(f"reading {path} …", sys.stderr):
            return load(path, lambda recording, title: untried(noted(recording), title, applied), applied.rules)

    reports = [*map(diagnosis, before)], [*map(diagnosis, after)]
    comparison = compare(*reports, in_ms=not given.shares, most_regression=most)
    if comparison.mismatches and not (given.anyway or given.shares):
        differ = "; ".join(map(rendering.mismatch, comparison.mismatches))
        raise InputError(
            f"the runs are not the same program on the same machine ({differ}): --shares compares the shares of "
            "the step, --anyway the times too."
        )
    if most is not None and comparison.step is None:  # a gate must not pass unseen
        raise InputError(f"--max-regression cannot be checked: {comparison.missing}.")
    tell(comparison, rendering, wanted, given.out, show=given.show)
    gate = comparison.gate
    return 0 if gate is None else FOUND if gate.failed else UNDECIDED if gate.unclear else 0
