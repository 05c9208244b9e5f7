"""The results that the page publishes: stored beside the scripts, so that its figures can be computed again.

``results.json`` has for each pair the times of both twins and what the reports on them found and promised.
What is true stands in ``corpus.py``, so the scores follow from the two.
"""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.accuracy.corpus import CORPUS, named
from benchmarks.accuracy.runs import Promise, Report
from benchmarks.accuracy.scores import Measured, Origin
from tfdoctor.rules import all_rules

RESULTS = Path(__file__).with_name("results.json")


def origin(file: Path) -> Origin:
    """Return the day on which a file was written, and this machine."""
    day = dt.datetime.fromtimestamp(file.stat().st_mtime, tz=dt.UTC).date()
    return Origin(str(day), pages.shared_machine())


def load(path: Path = RESULTS) -> list[Measured]:
    """Return the stored results, in the order of the corpus; none where there is no file."""
    if not path.is_file():
        return []
    stored = json.loads(path.read_text("utf-8"))["pairs"]
    return [_measured(pair.name, stored[pair.name]) for pair in CORPUS if pair.name in stored]


def judged_by(path: Path = RESULTS) -> frozenset[str]:
    """Return the rules by which all stored results were judged."""
    return frozenset(json.loads(path.read_text("utf-8"))["rules"]) if path.is_file() else frozenset()


def save(measured: Sequence[Measured], path: Path = RESULTS) -> None:
    """Store results; those of other pairs stay."""
    kept = {one.pair.name: one for one in load(path)}
    rules = frozenset(rule.name for rule in all_rules())
    if kept.keys() - {one.pair.name for one in measured}:
        rules &= judged_by(path)
    pairs = {name: _json(one) for name, one in (kept | _by_name(measured)).items()}
    pages.store(path, {"rules": sorted(rules), "pairs": pairs})


def _by_name(measured: Iterable[Measured]) -> dict[str, Measured]:
    return {one.pair.name: one for one in measured}


def _json(one: Measured) -> dict[str, Any]:
    reports = {twin: asdict(report) | {"found": sorted(report.found)} for twin, report in one.reports.items()}
    origins = {"timed": one.timed, "recorded": one.recorded}
    return {
        **{name: asdict(origin) if origin else None for name, origin in origins.items()},
        "rounds": one.rounds,
        "reports": reports,
    }


def _measured(name: str, stored: dict[str, Any]) -> Measured:
    pair = named(name)
    reports = {twin: _report(report) for twin, report in stored["reports"].items()}
    timed, recorded = (Origin(**stored[key]) if stored[key] else None for key in ("timed", "recorded"))
    rounds = [(fault, fixed) for fault, fixed in stored["rounds"]]
    return Measured(pair, reports, rounds, timed, recorded)


def _report(stored: dict[str, Any]) -> Report:
    promises = {rule: Promise(**promise) for rule, promise in stored["promises"].items()}
    return Report(stored["step_ms"], frozenset(stored["found"]), promises, stored["trust"])
