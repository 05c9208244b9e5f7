"""Compares what tfdoctor says of scripts with planted faults with what is true, and with a stopwatch.

``python -m benchmarks.accuracy`` runs each pair of ``pairs.zip``: the faulty and the fixed twin in turns, alone
and with a stopwatch, then each under ``tfdoctor profile``. ``--only plain_map`` or ``--only
plain_map/fault`` chooses, ``--rounds 0`` times nothing and takes the times that are stored. ``--keep DIR``
keeps scripts, times and recordings: what is there is not run again, but diagnosed by the rules as they are now, so
that a run that was ended can go on. ``--table`` stores the results in ``results.json``, from which
``make docs`` writes ``docs/explanation/accuracy.md``.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import commands
from benchmarks.accuracy import results
from benchmarks.accuracy.corpus import TWINS, Pair, chosen
from benchmarks.accuracy.runs import Report, step_ms
from benchmarks.accuracy.scores import Measured
from benchmarks.accuracy.tables import pair_row, summaries
from tfdoctor.recording.files import MANIFEST

WIDTHS = (25, 24, 4, 9, 9, 5, 12, 12, 5, 0)


def measure(pair: Pair, twins: Sequence[str], rounds: int, folder: Path) -> Measured:
    """Time both twins in turns, then profile each with tfdoctor; what the folder has is taken from there."""
    rounds = min(rounds, 1) if pair.trap else rounds  # traps have no saving to compare
    folder.mkdir(parents=True, exist_ok=True)
    stored = next((one for one in results.load() if one.pair is pair), Measured(pair, {}))
    file = folder / f"{pair.name}.json"
    times = kept_times(pair, rounds, file)
    timed = results.origin(file) if times else stored.timed
    outs = {twin: folder / f"{pair.name}-{twin}" for twin in twins}
    reports = {twin: report_on(pair.script(twin, folder), out) for twin, out in outs.items()}
    recorded = max((results.origin(out / MANIFEST) for out in outs.values()), key=lambda o: o.day)
    return Measured(pair, reports, times or stored.rounds, timed, recorded)


def kept_times(pair: Pair, rounds: int, file: Path) -> list[tuple[float, float]]:
    """Return the times of both twins in so many rounds; those of the file count, and new ones are added to it."""
    kept = json.loads(file.read_text("utf-8")) if file.is_file() else []
    times = [(fault, fixed) for fault, fixed in kept]
    scripts = [str(pair.script(twin, file.parent)) for twin in TWINS]
    while len(times) < rounds:
        times.append((step_ms(scripts[0]), step_ms(scripts[1])))
        file.write_text(json.dumps(times), encoding="utf-8")
    return times


def report_on(script: Path, out: Path) -> Report:
    """Return the report on the recording in a folder, made now if it is not there."""
    if (out / "report.json").is_file():
        return Report.again(out)
    shutil.rmtree(out, ignore_errors=True)  # of a run that was ended
    return Report.of(script, out)


def printed(measurements: Iterable[Measured]) -> Iterator[Measured]:
    """Print each measurement and pass it on."""
    for measurement in measurements:
        cells = zip(pair_row(measurement), WIDTHS, strict=True)
        print("  ".join(f"{cell:<{width}}" for cell, width in cells))
        for twin, report in measurement.reports.items():
            findings = [f"{rule} {promise.share:.0%}" for rule, promise in report.promises.items()]
            findings += sorted(report.found - set(report.promises))
            print(f"    {twin}: {', '.join(findings) or 'nothing'}")
        sys.stdout.flush()
        yield measurement


def measurements(options: argparse.Namespace, folder: Path) -> Iterator[Measured]:
    """Yield a measurement of each chosen pair."""
    for pair, twins in chosen(options.only):
        yield measure(pair, twins, options.rounds, options.keep or folder)


def main() -> None:
    """Run the command line."""
    parser = commands.parser(__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="of timing both twins [default: 3]")
    parser.add_argument("--table", action="store_true", help="store the results")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep scripts, times and recordings here")
    options = parser.parse_args()
    if options.table and any("/" in name for name in options.only):
        parser.error("--table stores whole pairs: name no twin with --only")
    with tempfile.TemporaryDirectory() as folder:
        measured = list(printed(measurements(options, Path(folder))))
    for line in summaries(measured):
        print(line)
    if options.table:
        results.save(measured)


if __name__ == "__main__":
    main()
