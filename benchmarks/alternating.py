"""Times the gallery's changes step by step, without tfdoctor: ``python -m benchmarks.alternating [NAME ...]``.

`tfdoctor try` compares runs that follow each other, so a host that other programs share leaves wide intervals. Here
the script as it is and the changed one train in one process and take turns, a step each, so that such programs meet
both alike. That shows of a change what its steps save, as far as two trainings in one process do not disturb each
other, and nothing of the start of a run. `make docs` writes what is stored into the table of the gallery.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import commands, gallery, trying
from tfdoctor.terms.student_t import student

MINUTES, WARM, BLOCKS = 0.75, 5, 20
"""Of both trainings by turns; steps that are left out first; groups of steps whose spread gives the interval."""


def saved(as_is: list[float], changed: list[float]) -> gallery.Saved:
    """Return what a change saves, by pairs of steps that follow each other; times in ms."""
    count = min(len(as_is), len(changed))
    pairs = np.log([changed[WARM:count], as_is[WARM:count]])
    logs = np.array([np.median(block) for block in np.array_split(pairs[0] - pairs[1], BLOCKS)])
    half = student(BLOCKS - 1) * float(np.std(logs, ddof=1)) / BLOCKS**0.5
    share, low, high = (-float(np.expm1(np.mean(logs) + side)) for side in (0.0, half, -half))
    ms = [float(np.median(np.exp(one))) for one in pairs]
    return {
        "steps": float(count - WARM),
        "as_is_ms": ms[1],
        "changed_ms": ms[0],
        "share": share,
        "low": low,
        "high": high,
    }


def measured(entry: gallery.Entry, change: str, minutes: float) -> gallery.Saved:
    """Train the script of an entry and a changed one by turns; a change is named as in the report of its trial.

    Raises:
        FailedError: the training failed.
    """
    with tempfile.TemporaryDirectory() as name:
        script = Path(shutil.copy(gallery.SCRIPTS / entry.script, name))
        other = Path(name, "changed", entry.script)
        other.parent.mkdir()
        shutil.copy(script, other)
        rule = entry.patched.get(change, change)
        if rule in gallery.CHANGES:
            other.write_text(gallery.CHANGES[rule](script.read_text("utf-8")), "utf-8")
        else:
            patch = gallery.SCRIPTS / change
            commands.output("git", "apply", patch, folder=other.parent)
        worker = Path(__file__).with_name("alternating_worker.py")
        seconds = str(60 * minutes)
        printed = commands.output(
            sys.executable, worker, seconds, script, other, *entry.arguments, folder=Path(name)
        )
    return saved(*json.loads(printed.splitlines()[-1]))


def main() -> None:
    """Measure the entries named, all by default, and store what they save."""
    names = [entry.name for entry in gallery.ENTRIES]
    options = trying.chosen(__doc__, "NAME", names, MINUTES)
    found = gallery.by_turns()
    for entry in (one for one in gallery.ENTRIES if one.name in options.names):
        tried = [one["name"] for one in gallery.stored(entry)["trials"]["variants"]]
        found[entry.name] = {one: measured(entry, one, options.minutes) for one in tried}
        gallery.BY_TURNS.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
        sys.stdout.write(f"{entry.name}: {found[entry.name]}\n")


if __name__ == "__main__":
    main()
