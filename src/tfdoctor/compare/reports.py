"""What is compared: recordings, traces and stored reports, and what a comparison reads in the diagnosis of each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tfdoctor.diagnosis import Conditions, Diagnosis
from tfdoctor.diagnosis.comparison import Mismatch
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.recording import Recording
from tfdoctor.stored.files import open_report, report_at
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.record import Record

Examine = Callable[[Recording, str], Diagnosis]  # Diagnoses a recording under a title

NOTICED = 0.01  # Share by which conditions must widen the interval to be named
# Of a run's time that other programs may have taken: above it, the sampled shares are not exact enough.
MOST_TAKEN = 0.9
# Threads of other programs for each of the run's, as on a machine with a load of four per core. A thread that is
# ready then waits at most four times as long as it runs, and one that sleeps waits for nobody.
WAITING = 4.0


def diagnosed(path: Path, examine: Examine, rules: Iterable[Rule]) -> Diagnosis:
    """Return the report of a recording, a trace or a file `report.json`.

    Raises:
        InputError: there is none of these, or it is damaged.
    """
    if stored := report_at(path):
        return open_report(stored, rules)
    recording = Recording.open(path)
    return examine(recording, recording.title(path))


def load(path: Path, examine: Examine, rules: Sequence[Rule]) -> Diagnosis:
    """Return the same with the results of these rules alone.

    Raises:
        InputError: there is none of these, or it is damaged.
    """
    report = diagnosed(path, examine, rules)
    names = {rule.name for rule in rules}
    return replace(report, results=tuple(one for one in report.results if one.rule.name in names))


def must_differ(paths: Sequence[Path]) -> None:
    """Check that no run is given twice: it would count as two.

    Raises:
        InputError: one is.
    """
    places = [path.resolve() for path in paths]
    if twice := next((path for path in places if places.count(path) > 1), None):
        raise InputError(f"{twice} is given twice: name different runs.")


def step_of(report: Diagnosis) -> float | None:
    """Return the step that a report is about, without the profiler's cost where that is noticeable, in ms."""
    return report.steps.untraced_ms or report.steps.step_ms


def mismatches(first: Diagnosis, others: Sequence[Diagnosis]) -> tuple[Mismatch, ...]:
    """Return in which respects any of the others is not a run of the same program on the same machine as the first.

    Only of the same their milliseconds can be compared. What is unknown of one of them does not count.
    """
    every = [
        Mismatch(what, one, another)
        for other in others
        for (what, one), (_, another) in zip(_traits(first), _traits(other), strict=True)
        if one and another and one != another
    ]
    return tuple({one.what: one for one in reversed(every)}.values())[::-1]


def _traits(report: Diagnosis) -> Iterator[tuple[str, str]]:
    subject, conditions = report.subject, report.conditions

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:g}"

    yield "host", ", ".join(sorted(subject.hosts))
    yield "device", subject.device_name or subject.device or ""
    yield "number of devices", number(subject.devices_used)
    yield "CPU", conditions.cpu_model
    yield "usable cores", number(conditions.cores_usable)
    yield "command", " ".join(subject.command)
    yield "batch size", number(conditions.batch_size)
    yield "versions", ", ".join(f"{name} {text}" for name, text in sorted(subject.framework.items()))


class Widening(Record):
    """By how much the ends of the interval move apart, in logarithms of ratios, and why."""

    below: float
    above: float
    why: tuple[str, ...]


def widening(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Widening:
    """Return what the conditions may have changed: load of other programs, and GPU clocks.

    Other programs that took a share s of a run's time (see `taken`) may have made it up to 1 / (1 - s) times as
    long. A lower clock may have made it longer by the ratio of the clocks.
    """
    conditions = {"before": [one.conditions for one in before], "after": [one.conditions for one in after]}
    slowed = {which: float(np.mean([-np.log1p(-taken(one)) for one in side])) for which, side in conditions.items()}
    why: list[str] = []
    for which, side in conditions.items():
        if slowed[which] >= NOTICED:
            used = [(one.cores_other or 0.0) / (one.cores_usable or 1.0) if taken(one) else 0.0 for one in side]
            share = percent(float(np.mean([min(1.0, one) for one in used])))
            why.append(f"Other programs used {share} of the cores while the steps {which} the change were traced.")
    clocks = [[one.gpu_mhz or 0.0 for one in side] for side in conditions.values()]
    known = all(map(all, clocks))
    first, last = (float(np.mean(np.log(side))) if known else 0.0 for side in clocks)
    clock = first - last
    if abs(clock) >= NOTICED:
        which, ratio = "lower" if clock > 0 else "higher", float(np.expm1(abs(clock)))
        why.append(f"The clock of the GPUs was {percent(ratio)} {which} after the change.")
    return Widening(slowed["after"] + max(0.0, clock), slowed["before"] + max(0.0, -clock), tuple(why))


def taken(conditions: Conditions) -> float:
    """Return the largest share of a run's time that it may have waited for cores, while there were none to spare.

    It is no larger than the share of the cores that other programs used, and the run waits only to compute.
    """
    usable, run, other = conditions.cores_usable, conditions.cores_run, conditions.cores_other
    if not usable or run is None or other is None or run + other < CROWDED * usable:
        return 0.0
    return min(other / usable, WAITING * run, MOST_TAKEN)
