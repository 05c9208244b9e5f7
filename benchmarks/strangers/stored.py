"""What tfdoctor said of the rounds' scripts, as stored, and the table of the rounds that is made of it.

``N.said.json`` beside a round has the findings of each script, so that a round can be counted anew. Of rounds
1 to 4 only the rows of the table were kept, in ``counted.json``: they leave out general rules, for good.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import archives
from benchmarks.pages import store, table
from benchmarks.strangers.cases import cases
from benchmarks.strangers.scores import Named, Scored, totals

ROUNDS = Path(__file__).with_name("rounds")
SAID = ".said.json"
COUNTED = Path(__file__).with_name("counted.json")

COLUMNS = (
    *("round", "faults found", "by general rules alone", "recall", "lines named", "explained"),
    *("findings undeclared", "of warnings and above", "precision at least"),
    *("savings off, median", "90th percentile", "ceilings exceeded by more than 5 % of the step"),
)

KNOWN = "0"
"""The round whose scripts were known while the rules were written."""

AIM = ("aim", "", "", "0.90", "0.95", "0.85", "", "", "0.97", "8 %", "20 %", "fewer than 1 of 10")


def write(scored: Sequence[Scored], round_: Path) -> None:
    """Store the findings and the measured saving of each case beside its round."""
    said = {
        one.case.name: {
            "saving": one.saving,
            "named": one.named,
            "explained": one.explained,
            "found": {twin: [asdict(each) for each in found] for twin, found in one.found.items()},
        }
        for one in scored
    }
    store(round_.with_suffix(SAID), said)


def read(round_: Path) -> list[Scored]:
    """Return the cases of a round, an archive or a folder, with what was stored of each.

    Raises:
        OSError: nothing was stored.
    """
    said: dict[str, Any] = json.loads(round_.with_suffix(SAID).read_text("utf-8"))
    with archives.unpacked(round_) as folder:
        return [
            Scored(
                case,
                {
                    twin: [Named(**each | {"lines": tuple(each["lines"])}) for each in found]
                    for twin, found in said[case.name]["found"].items()
                },
                said[case.name]["saving"],
                named=said[case.name].get("named"),
                explained=said[case.name].get("explained"),
            )
            for case in cases(folder, [])
            if case.name in said
        ]


def markdown() -> Iterator[str]:
    """Yield the table of all rounds, each as it was seen first but the one that was known."""
    counted = [
        (f"{name}, without general rules", *cells[:3], "-", "-", *cells[3:])
        for name, cells in json.loads(COUNTED.read_text("utf-8")).items()
    ]
    stored = {path.stem: read(path) for path in ROUNDS.glob("*.zip") if path.with_suffix(SAID).is_file()}
    known = _row(f"{KNOWN}, known while rules were changed", stored.pop(KNOWN))
    first = [_row(name, scored) for name, scored in sorted(stored.items(), key=lambda one: int(one[0]))]
    yield from table(COLUMNS, [known, *counted, *first, AIM])


def _row(name: str, scored: Sequence[Scored]) -> tuple[str, ...]:
    total = totals(scored)
    errors, known = total.errors, any(one.named is not None for one in scored)
    return (
        name,
        f"{total.found} of {total.cases}",
        str(total.found_by_general),
        f"{total.recall:.2f}",
        *(f"{number} of {total.cases}" if known else "-" for number in (total.named, total.explained)),
        f"{total.false} of {total.true + total.false}",
        _loud(scored),
        f"{total.precision:.2f}",
        "-" if errors is None else f"{errors.median * 100:.0f} %",
        "-" if errors is None else f"{errors.ninetieth * 100:.0f} %",
        f"{total.exceeded} of {total.ceilings}",
    )


def _loud(scored: Sequence[Scored]) -> str:
    """Return how many of the warnings and the critical findings nobody declared true."""
    undeclared = [
        (twin, said.rule) in one.false
        for one in scored
        for twin, found in one.found.items()
        for said in found
        if said.severity in {"warning", "critical"}
    ]
    return f"{sum(undeclared)} of {len(undeclared)}"
