"""The family of rules that compare measured numbers, mostly shares of a time, with their limits.

Among them are those about operations that take less after a change.
"""

from collections.abc import Iterable
from dataclasses import replace

from tfdoctor.facts.operations.operation_time import ComputePart, OperationTime
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import *


def judged(  # noqa: PLR0913 - what was measured, and the words for it
    *measured: Evidence,
    healthy: str,
    finding: str = "",
    wrong: bool | None = None,
    details: Iterable[Evidence] = (),
    remedies: Iterable[Remedy],
    effects: Iterable[Effect] = (),
    run_effects: Iterable[RunEffect] = (),
    severity: Severity | None = None,
    concern: Concern = Concern.TYPICAL_STEP,
    about: RunCall | None = None,
    alike: int = 0,
) -> Verdict:
    """Judge what was measured: a fault where each measure that has a limit reaches it.

    ``wrong`` decides where more than that counts. ``details`` are evidence of the finding alone, whose sentence is
    that of the healthy verdict unless given.
    """
    if wrong is None:
        limited = ((one.value, one.limit) for one in measured if isinstance(one, Measure) and one.limit)
        wrong = not any(value.value < least.value for value, least in limited)
    if not wrong:
        return Healthy(summary=healthy, evidence=measured, concern=concern)
    return Finding(
        summary=finding or healthy,
        evidence=(*measured, *details),
        remedies=tuple(remedies),
        effects=tuple(effects),
        run_effects=tuple(run_effects),
        severity=severity,
        concern=concern,
        about=about,
        alike=alike,
    )


def spared(  # noqa: PLR0913 - what is spared, and the words for it
    part: ComputePart,
    least: float | None,
    work: str,
    changed: Iterable[tuple[OperationTime, float] | Effect],
    *,
    finding: str,
    remedies: Iterable[Remedy],
    healthy: str = "",
    wrong: bool | None = None,
    more: Iterable[Evidence] = (),
    shown: Iterable[Evidence] = (),
    bound: Bound = Bound.AT_MOST,
    narrows: bool = False,
    alike: int = 0,
) -> Verdict:
    """Judge operations that take less after a change: each with the share of its time that is left, or its effect.

    ``part`` is what they take (``operations.part(ms)``), and has to be at least ``least`` of the compute time;
    None judges nothing, and ``wrong`` decides where more counts. ``work`` is such as "in casts", for labels.
    ``healthy`` is the sentence where it is less (otherwise that of the finding), ``more`` evidence of both, and
    ``shown`` of a finding alone.
    """
    effects = (
        one if isinstance(one, Effect) else replace(one[0].scaled(one[1], bound), narrows=narrows)
        for one in changed
    )
    return judged(
        *part.measures(work, least),
        *more,
        healthy=healthy or finding,
        finding=finding,
        wrong=(least is None or part.share >= least) if wrong is None else wrong,
        details=shown,
        remedies=remedies,
        effects=effects,
        alike=alike,
    )


def why_not(*cases: tuple[object, str]) -> str:
    """Return what is said of the first case that holds; "" where none does."""
    return next((said for holds, said in cases if holds), "")


def nothing(healthy: str, *why_unknown: str) -> Verdict:
    """Return the verdict where nothing was found: the first reason for which that proves nothing, else healthy."""
    why = next(filter(None, why_unknown), "")
    return NotApplicable(reason=why) if why else Healthy(summary=healthy)
