"""Runs `tfdoctor try` as a user does, and puts what its JSON report says into cells of a Markdown table.

The figures, the intervals and their words are those of tfdoctor: nothing is timed here.
"""

import sys
from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from benchmarks import commands, pages
from tfdoctor.diagnosis.trials import Difference, Measured, TrainingMatch, TrainingState
from tfdoctor.report import trial_words
from tfdoctor.terms.humanize import milliseconds

Object = Mapping[str, Any]
"""An object of the JSON report; docs/reference/json.md lists its fields."""


def tfdoctor(folder: Path, *words: str | Path, **environment: str) -> None:
    """Run a command of tfdoctor in a folder; what it says goes to the terminal.

    Raises:
        FailedError: its exit code was not 0.
    """
    done = commands.ended(*commands.TFDOCTOR, *words, folder=folder, variables=environment)
    sys.stderr.write(done.stderr)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise commands.FailedError(f"exit code {done.returncode}: {''.join(last)}")


def chosen(doc: str | None, of: str, known: Collection[str], minutes: float) -> Namespace:
    """Read a command line that names some of those known, and gives the minutes of each trial."""
    parser = commands.parser(doc)
    parser.add_argument("names", metavar=of, nargs="*", help="by name, all by default")
    parser.add_argument("--minutes", type=float, default=minutes, help="of each trial")
    options = parser.parse_args()
    options.names = options.names or known
    if unknown := {*options.names} - {*known}:
        parser.error(f"no such name: {', '.join(sorted(unknown))}")
    return options


def promised(saving: Object | None) -> str:
    """Return what the report promises, in percent of the step."""
    if saving is None:
        return "no figure"
    most = "at most " if saving["bound"] == "at-most" else ""
    return f"{most}{round(100 * saving['share'])} %"


def measured(variant: Object) -> str:
    """Return what a variant saves with its interval, or why that is unknown."""
    one = variant["measured"]
    if one is None:
        return f"not measured: {variant['missing']}"
    shares = {name: one[name] for name in ("share", "low", "high")}
    rounds, difference = tuple(one["rounds"]), Difference(one["difference"])
    dropped = one.get("dropped", False)
    shown = Measured(**shares, difference=difference, rounds=rounds, dropped=dropped)
    return trial_words.saved(shown)


def trains(variant: Object) -> str:
    """Return whether a variant trains the same."""
    one = variant["training"]
    if one is None:
        return trial_words.trained(None, variant["runs"])
    return trial_words.trained(
        TrainingMatch(
            state=TrainingState(one["state"]),
            step=one["step"],
            apart=one["apart"],
            usual=one["usual"],
            why=one["why"],
        ),
        variant["runs"],
    )


def step(read: Object) -> str:
    """Return the step of the program as it is."""
    return milliseconds(read["trials"]["as_is_ms"])


def row(*cells: str) -> str:
    """Return a row of a table."""
    return pages.row(cell.replace("|", "/") for cell in cells)
