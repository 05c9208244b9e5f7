"""Runs pairs of whole programs under tfdoctor, and compares the reports with what is true.

``python -m benchmarks.whole_run`` runs each pair of ``programs.zip``: ``sick.py``, ``healthy.py`` and ``case.json``
(see ``cases.py``); another archive or folder can be named. ``--only 04`` chooses by the beginning of the name,
``--keep DIR`` keeps programs and recordings: what is there is not run again, but diagnosed by the rules as they are
now. ``--table`` stores the results in ``results.json``.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import archives, commands, pages
from benchmarks.whole_run.cases import TIMED, TWINS, Case, cases
from benchmarks.whole_run.phase_timer import VARIABLE
from benchmarks.whole_run.reports import RunReport
from benchmarks.whole_run.scores import Figure, Scored, figures
from benchmarks.whole_run.tables import RESULTS

PROGRAMS = Path(__file__).with_name("programs.zip")


def measure(case: Case, keep: Path, twins: Sequence[str]) -> Scored:
    """Profile the programs of a pair; what the folder has is diagnosed again."""
    reports = {twin: RunReport.of(case.script(twin, keep), keep / f"{case.name}-{twin}") for twin in twins}
    timed, seconds = _timed(case, keep) if case.is_timed else (None, {})
    return Scored(case, reports.get("sick"), reports.get("healthy"), timed, seconds)


def _timed(case: Case, keep: Path) -> tuple[RunReport, dict[str, float]]:
    """Profile the program with a timer, which writes beside the recording; what is there is diagnosed again."""
    out, file = keep / f"{case.name}-{TIMED}", keep / f"{case.name}-{TIMED}.json"
    timer = {VARIABLE: str(file), "PYTHONPATH": str(Path(__file__).parent)}
    report = RunReport.of(case.script(TIMED, keep), out, timer)
    return report, json.loads(file.read_text("utf-8")) if file.is_file() else {}


def row(one: Scored) -> str:
    """Return a line of the table on the screen."""
    rank = "first" if one.first else "named" if one.named else "no"
    rule = one.named.rule if one.named else "-"
    true = "-" if one.case.saving is None else f"{one.case.saving:.0%}"
    said = "-" if one.predicted is None else f"{one.predicted:.0%}"
    false = ", ".join(finding.rule for finding in one.false) or "-"
    phases = max((abs(error) for error in one.phase_errors.values()), default=0.0)
    return f"{one.case.name:<28}{rank:<7}{rule:<18}{true:>6}{said:>7}{phases:>8.1%}  {false}"


def details(one: Scored) -> Iterator[str]:
    """Yield the findings of both programs in order."""
    for twin, report in (("sick", one.sick), ("healthy", one.healthy)):
        for finding in report.findings if report else ():
            share = "" if finding.share is None else f" {finding.share:.0%}"
            yield f"    {twin}: {finding.severity} {finding.rule}{share}: {finding.summary}"


def stored(one: Scored) -> dict[str, Any]:
    """Return what is true and what the report says, as JSON."""
    return {
        "title": one.case.title,
        "first": one.first,
        "named_by": one.named.rule if one.named else None,
        "saving": one.case.saving,
        "predicted": one.predicted,
        "false": [finding.rule for finding in one.false],
        "phases": one.phase_errors,
        "sick": [finding.rule for finding in one.sick.findings] if one.sick else None,
        "healthy": [finding.rule for finding in one.healthy.findings] if one.healthy else None,
    }


def main() -> None:
    """Run the command line."""
    parser = commands.parser(__doc__)
    parser.add_argument("programs", type=Path, nargs="?", default=PROGRAMS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--twin", choices=TWINS, action="append", help="run only this one")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep programs and recordings here")
    parser.add_argument("--details", action="store_true", help="print all findings")
    parser.add_argument("--table", action="store_true", help="store the results")
    options = parser.parse_args()
    scored = []
    print(f"{'program':<28}{'cause':<7}{'rule':<18}{'true':>6}{'said':>7}{'phases':>8}  false")
    with tempfile.TemporaryDirectory() as folder, archives.unpacked(options.programs) as programs:
        for case in cases(programs, options.only):
            keep = (options.keep or Path(folder)).resolve()
            scored.append(measure(case, keep, options.twin or TWINS))
            print(row(scored[-1]))
            for line in details(scored[-1]) if options.details else ():
                print(line)
            sys.stdout.flush()
    for figure in figures(scored):
        print(said(figure))
    if options.table:
        table = {
            "figures": [asdict(figure) for figure in figures(scored)],
            "programs": {one.case.name: stored(one) for one in scored},
        }
        pages.store(RESULTS, table)


def said(figure: Figure) -> str:
    """Return a figure with its aim."""
    word = {True: "reached", False: "not reached", None: ""}[figure.reached]
    aim = f" (aim {figure.aim}: {word})" if figure.aim else ""
    return f"{figure.name}: {figure.value}{aim}"


if __name__ == "__main__":
    main()
