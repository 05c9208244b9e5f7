"""Compares what tfdoctor says of scripts with planted faults with what is true, and with a stopwatch.

``python -m benchmarks.accuracy`` runs each pair of ``pairs/``: the faulty and the fixed twin in turns, alone
and with a stopwatch, then each under ``tfdoctor profile``. ``--only plain_map`` or ``--only
plain_map/fault`` chooses, ``--rounds 0`` times nothing, ``--table`` writes the figures into
``docs/explanation/accuracy.md``. ``--keep DIR`` keeps times and recordings; ``--again DIR`` runs no
script, and diagnoses what was kept by the rules as they are now.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.accuracy.corpus import TWINS, Pair, chosen
from benchmarks.accuracy.runs import Report, step_ms
from benchmarks.accuracy.scores import Measured
from benchmarks.accuracy.tables import markdown, pair_row, summaries

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy.md"
MARKED = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)

WIDTHS = (25, 24, 4, 9, 9, 5, 12, 12, 5, 0)


def measure(pair: Pair, twins: Sequence[str], rounds: int, folder: Path) -> Measured:
    """Time both twins in turns, then profile each with tfdoctor."""
    scripts = [str(pair.script(twin)) for twin in TWINS]
    rounds = min(rounds, 1) if pair.trap else rounds  # traps have no saving to compare
    times = [(step_ms(scripts[0]), step_ms(scripts[1])) for _ in range(rounds)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{pair.name}.json").write_text(json.dumps(times), encoding="utf-8")
    reports = {twin: Report.of(pair.script(twin), folder / f"{pair.name}-{twin}") for twin in twins}
    return Measured(pair, reports, times)


def diagnose(pair: Pair, twins: Sequence[str], folder: Path) -> Measured:
    """Read the stored times, and diagnose the recordings again."""
    times = json.loads((folder / f"{pair.name}.json").read_text("utf-8"))
    reports = {twin: Report.again(folder / f"{pair.name}-{twin}") for twin in twins}
    return Measured(pair, reports, [(fault, fixed) for fault, fixed in times])


def printed(measurements: Iterable[Measured]) -> Iterator[Measured]:
    """Print each measurement and pass it on."""
    for measurement in measurements:
        cells = zip(pair_row(measurement), WIDTHS, strict=True)
        print("  ".join(f"{cell:<{width}}" for cell, width in cells))
        for twin, report in measurement.reports.items():
            findings = [f"{rule} {promise.share:.0%}" for rule, promise in report.promises.items()]
            findings += sorted(report.found - set(report.promises) - {"unfinished-recording"})
            print(f"    {twin}: {', '.join(findings) or 'nothing'}")
        sys.stdout.flush()
        yield measurement


def measurements(options: argparse.Namespace, folder: Path) -> Iterator[Measured]:
    """Yield a measurement of each chosen pair."""
    for pair, twins in chosen(options.only):
        if options.again:
            yield diagnose(pair, twins, options.again)
        else:
            yield measure(pair, twins, options.rounds, options.keep or folder)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="of timing both twins [default: 3]")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep times and recordings here")
    parser.add_argument("--again", type=Path, metavar="DIR", help="diagnose what was kept there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = list(printed(measurements(options, Path(folder))))
    for line in summaries(measured):
        print(line)
    if options.table:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MARKED.sub(rf"\g<1>{markdown(measured)}\g<2>", page), encoding="utf-8")


if __name__ == "__main__":
    main()
