"""The steps of a run that took longer than usual: what they cost, and whether they come at equal distances."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tfdoctor.recording.run_log import LongStep

OCCASIONS, REGULAR = 4, 0.8
"""Long steps from which a period can be told from chance, and the share of their distances that must equal it.

Of all choices of three steps among 20, 8 % are equally far apart, of four 1 %; five of 20 are no outliers.
"""

WITHIN = 1  # Steps by which a distance may differ: a checkpoint that is due in a step may run after the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class LongSteps:
    """Steps that took more than 1.5 times the usual one: their number, all their time, and what is beyond usual.

    ``first_median_ms`` is the median of what first steps take beyond usual: one slow first epoch does not move it.
    """

    count: int
    ms: float
    beyond_ms: float
    first: int = 0  # of these, first steps of an epoch or of a pass over the data
    first_beyond_ms: float = 0.0
    first_median_ms: float = 0.0
    every: int | None = None  # their period in steps, where they have one


def long_steps(steps: Sequence[LongStep]) -> LongSteps | None:
    """Add up long steps; None where there is none."""
    if not steps:
        return None
    beyond = [max(0.0, step.ms - step.usual_ms) for step in steps]
    first = [ms for step, ms in zip(steps, beyond, strict=True) if step.first]
    return LongSteps(
        count=len(steps),
        ms=sum(step.ms for step in steps),
        beyond_ms=sum(beyond),
        first=len(first),
        first_beyond_ms=sum(first),
        first_median_ms=median(first) if first else 0.0,
        every=_period(sorted({step.number for step in steps if not step.first})),
    )


def _period(numbers: Sequence[int]) -> int | None:
    """Return the distance of steps that nearly all have the same one; None where there is none."""
    if len(numbers) < OCCASIONS:
        return None
    gaps = [after - before for before, after in pairwise(numbers)]
    usual = round(median(gaps))
    regular = sum(abs(gap - usual) <= WITHIN for gap in gaps)
    return usual if usual > WITHIN + 1 and regular >= REGULAR * len(gaps) else None
