"""How the conditions of two runs widen the interval of their difference: load of other programs, and GPU clocks."""

from collections.abc import Sequence

import numpy as np

from tfdoctor.diagnosis import Conditions, Diagnosis
from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.record import Record

NOTICED = 0.01  # Share by which conditions must widen the interval to be named
# Of a run's time that other programs may have taken: above it, the sampled shares are not exact enough.
MOST_TAKEN = 0.9
# Threads of other programs for each of the run's, as on a machine with a load of four per core. A thread that is
# ready then waits at most four times as long as it runs, and one that sleeps waits for nobody.
WAITING = 4.0


class Widening(Record):
    """By how much the ends of the interval move apart, in logarithms of ratios, and why."""

    below: float = 0.0
    above: float = 0.0
    why: tuple[str, ...] = ()


def widening(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Widening:
    """Return what the conditions may have changed.

    Other programs that took a share s of a run's time (see `taken`) may have made it up to 1 / (1 - s) times as
    long. A lower clock may have made it longer by the ratio of the clocks.
    """
    slowed_before, slowed_after = _slowed(before), _slowed(after)
    clock = _clock(before, after)
    why = [_load("before", before, slowed_before), _load("after", after, slowed_after)]
    if abs(clock) >= NOTICED:
        which, ratio = "lower" if clock > 0 else "higher", float(np.expm1(abs(clock)))
        why.append(f"The clock of the GPUs was {percent(ratio)} {which} after the change.")
    return Widening(
        below=slowed_after + max(0.0, clock), above=slowed_before + max(0.0, -clock), why=tuple(filter(None, why))
    )


def _slowed(reports: Sequence[Diagnosis]) -> float:
    """Return by how much other programs slowed the runs at most, as a logarithm; their mean."""
    return float(np.mean([-np.log1p(-taken(report.conditions)) for report in reports]))


def taken(conditions: Conditions) -> float:
    """Return the largest share of a run's time that it may have waited for cores, while there were none to spare.

    It is no larger than the share of the cores that other programs used, and the run waits only to compute.
    """
    usable, run, other = conditions.cores_usable, conditions.cores_run, conditions.cores_other
    if not usable or run is None or other is None or run + other < CROWDED * usable:
        return 0.0
    return min(other / usable, WAITING * run, MOST_TAKEN)


def _clock(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> float:
    """Return the logarithm of the GPUs' clock before over that after; 0 where one is unknown."""
    clocks = [[one.conditions.gpu_mhz for one in side] for side in (before, after)]
    if not all(mhz for side in clocks for mhz in side):
        return 0.0
    first, last = (float(np.mean([np.log(mhz or 1.0) for mhz in side])) for side in clocks)
    return first - last


def _load(which: str, reports: Sequence[Diagnosis], slowed: float) -> str:
    if slowed < NOTICED:
        return ""
    share = percent(float(np.mean([_used(report.conditions) for report in reports])))
    return f"Other programs used {share} of the cores while the steps {which} the change were traced."


def _used(conditions: Conditions) -> float:
    """Return the share of the cores that other programs used, as far as it counts."""
    usable, other = conditions.cores_usable, conditions.cores_other
    return min(1.0, other / usable) if usable and other and taken(conditions) else 0.0
