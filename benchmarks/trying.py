"""Runs `tfdoctor try` as a user does, and puts what its JSON report says into cells of a Markdown table.

The figures, the intervals and their words are those of tfdoctor: nothing is timed here.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis import Difference, Measured, TrainingMatch, TrainingState
from tfdoctor.humanize import milliseconds
from tfdoctor.report import trial_words

Object = Mapping[str, Any]
"""An object of the JSON report; docs/reference/json.md lists its fields."""

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}


class TryFailedError(RuntimeError):
    """A command of tfdoctor failed: its last line."""


def tfdoctor(folder: Path, *words: str, **environment: str) -> None:
    """Run a command of tfdoctor in a folder; its progress goes to the terminal.

    Raises:
        TryFailedError: its exit code was not 0.
    """
    command = (sys.executable, "-m", "tfdoctor", *words)
    env = os.environ | QUIET | environment
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    sys.stderr.buffer.write(done.stderr)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TryFailedError(f"exit code {done.returncode}: {''.join(last)}")


def report(recording: Path) -> Object:
    """Return the JSON report in a recording."""
    read: Object = json.loads((recording / "report.json").read_text("utf-8"))
    return read


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
    return trial_words.saved(Measured(**shares, difference=difference, rounds=rounds))


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
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
