"""Switches off, of a round's recordings, each rule that names a fault: ``python -m benchmarks.strangers.without``.

A rule may have been written for one program. Its fault should still be named without it, by another rule or among
the largest places, and often explained. ``--again DIR`` is where ``benchmarks.strangers --keep DIR`` kept them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import archives, commands
from benchmarks.strangers.cases import SICK, Case, cases
from benchmarks.strangers.classes import explained, named, naming


def report(recording: Path, out: Path, without: str = "") -> Mapping[str, Any]:
    """Diagnose a recording with all rules, or all but one; {} where there is no report."""
    ignored = ("--ignore", without) if without else ()
    options = ("--format", "json", "--out", out, *ignored)
    commands.ended(*commands.TFDOCTOR, "report", *options, recording, folder=recording.parent)
    return commands.report(out)


def tried(case: Case, keep: Path) -> Iterator[tuple[str, bool, bool]]:
    """Yield each rule that names a case's fault, and whether it is named and explained without it."""
    recording, out = keep / f"{case.name}-{SICK}", keep / f"{case.name}-without"
    found = report(recording, out / "none")
    for rule in naming(case, found) if found else ():
        left = report(recording, out / rule, rule)
        yield rule, named(case, left), explained(case, left)


def main() -> None:
    """Run the command line."""
    parser = commands.parser(__doc__)
    parser.add_argument("round", type=Path, help="archive or folder of the round's cases")
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--again", type=Path, metavar="DIR", required=True, help="where the recordings were kept")
    options = parser.parse_args()
    rows = []
    with archives.unpacked(options.round) as folder:
        for case in (one for one in cases(folder, options.names) if not one.trap):
            for rule, still_named, still_explained in tried(case, options.again.resolve()):
                rows.append((rule, still_named, still_explained))
                said = "explained" if still_explained else "named" if still_named else "LOST"
                print(f"{case.name:<34} without {rule:<24} {said}", flush=True)
    still, explains = sum(row[1] for row in rows), sum(row[2] for row in rows)
    rules = len({row[0] for row in rows})
    print(f"{len(rows)} switched off ({rules} rules): {still} still named, {explains} still explained")


if __name__ == "__main__":
    main()
