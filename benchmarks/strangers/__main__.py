"""Scores tfdoctor on a round of scripts: ``python -m benchmarks.strangers rounds/4.zip --keep DIR``.

Each case is timed by turns without any profiler, then each of its scripts is profiled once. ``--again DIR`` runs no
script and diagnoses what was kept there by the present rules. ``--rounds 0`` times nothing and takes the times
that the writer measured.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import archives, commands
from benchmarks.strangers.cases import SICK, Case, cases
from benchmarks.strangers.classes import explained, named
from benchmarks.strangers.edits import EditCount
from benchmarks.strangers.scores import Scored, findings, totals
from benchmarks.strangers.stored import write

TIMEOUT_S = 150

SECONDS = 12.0
"""Steps that are timed of a run."""


def _run(folder: Path, *command: str | Path) -> str:
    """Run a command in a folder and return what it printed; "" where it did not end."""
    try:
        return commands.ended(*command, folder=folder, limit_s=TIMEOUT_S).stdout
    except subprocess.TimeoutExpired:
        return ""


def timed(case: Case, folder: Path, rounds: int) -> list[dict[str, dict[str, float]]]:
    """Time the scripts of a case, which are in a folder, by turns."""
    timer = Path(__file__).with_name("timer.py")
    options = ["--function", case.step_function] if case.step_function else []
    if not case.by_mean:  # what comes only at some steps needs the whole run
        options += ["--seconds", str(SECONDS)]
    return [
        {twin: _last_line(_run(folder, sys.executable, timer, *options, f"{twin}.py")) for twin in case.twins}
        for _ in range(rounds)
    ]


def _last_line(output: str) -> dict[str, Any]:
    lines = [line for line in output.splitlines() if line.startswith('{"step"')]
    return json.loads(lines[-1]) if lines else {}


def report(script: Path, out: Path, *, again: bool) -> dict[str, Any]:
    """Profile a script, or diagnose its recording again, and return the JSON report; {} where there is none."""
    words = ("report", out) if again else ("profile", "--out", out, script)
    _run(script.parent, *commands.TFDOCTOR, *words[:1], "--format", "json", *words[1:])
    return commands.report(out)


def score(case: Case, options: argparse.Namespace) -> Scored:
    """Time and profile one case, or read what was kept."""
    keep: Path = (options.again or options.keep).resolve()
    kept = keep / f"{case.name}.json"
    folder = case.written(keep / case.name)
    if options.rounds and not options.again:
        kept.write_text(json.dumps(timed(case, folder, options.rounds)), encoding="utf-8")
    times = json.loads(kept.read_text("utf-8")) if kept.exists() else []
    reports = {
        twin: report(case.script(twin, folder), keep / f"{case.name}-{twin}", again=bool(options.again))
        for twin in case.twins
    }
    declared = case.measured.get("saving_pct")
    saving = None if case.trap else case.saving(times)
    if saving is None and declared is not None:
        saving = declared / 100
    found = {twin: findings(one) if one else [] for twin, one in reports.items()}
    sick = reports.get(SICK)
    known = (named(case, sick), explained(case, sick)) if sick else (None, None)
    return Scored(case, found, saving, times, *known)


def line(scored: Scored) -> str:
    """Return one line on a case: what was found, and how far the figure is off."""
    saving = "-" if scored.saving is None else f"{scored.saving:.0%}"
    naming = ", ".join(one.rule for one in scored.naming) or ("MISSED" if scored.slow else "-")
    predicted = scored.predicted
    share = scored.share(predicted) if predicted else None
    said = f"{'<' if predicted.at_most else ''}{share:.0%}" if predicted and share else "-"
    false = ", ".join(f"{twin}: {rule}" for twin, rule in scored.false)
    others = ", ".join(
        f"{one.rule}{f' {one.share:.0%}' if one.share is not None else ''}"
        for one in scored.found.get(SICK, scored.found.get("healthy", []))
    )
    figures = f"saves {saving:>4} said {said:>5}"
    return f"{scored.case.name:<34} {figures}  {naming}  | false: {false or '-'}  | all: {others}"


def main() -> None:
    """Run the command line."""
    parser = commands.parser(__doc__)
    parser.add_argument("round", type=Path, help="archive or folder of the round's cases")
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=2, help="of timing by turns [default: 2]")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--keep", type=Path, metavar="DIR", help="keep scripts, times and recordings here")
    where.add_argument("--again", type=Path, metavar="DIR", help="diagnose what was kept there")
    parser.add_argument("--store", action="store_true", help="store the findings beside the round")
    options = parser.parse_args()
    if options.store and options.names:
        parser.error("--store stores a whole round: name no cases")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    scored = []
    with archives.unpacked(options.round) as folder:
        for case in (c for c in cases(folder, options.names) if not c.spare):
            scored.append(score(case, options))
            print(line(scored[-1]), flush=True)
    if options.store:
        write(scored, options.round)
    total = totals(scored)
    by_general = f"{total.found_by_general} by general rules alone"
    print(f"recall {total.recall:.2f} ({total.found} of {total.cases}, {by_general})")
    print(f"named {total.named} and explained {total.explained} of {total.cases}")
    print(f"precision {total.precision:.2f} ({total.false} undeclared of {total.true + total.false})")
    print(f"savings: {total.errors}; ceilings exceeded {total.exceeded} of {total.ceilings}")
    print(EditCount.of(scored))


if __name__ == "__main__":
    main()
