"""The family of rules that compare measured numbers, mostly shares of a time, with their limits."""

from collections.abc import Iterable

from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import (
    Concern,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Measure,
    Remedy,
    RunEffect,
    Severity,
    Verdict,
)


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
