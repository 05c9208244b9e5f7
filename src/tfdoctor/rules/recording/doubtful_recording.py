from dataclasses import asdict

from tfdoctor.facts.machine.samples import BUSY_CORES
from tfdoctor.facts.quality import SLOWED, UNEVEN, Quality
from tfdoctor.facts.steps.steps import FEWEST_STEPS
from tfdoctor.families.kit import *
from tfdoctor.terms.text import capitalized

__doc__, CODE = page(__file__)


class Limits(RuleLimits):  # the report's own trust level does not depend on them
    steps: float = limit(float(FEWEST_STEPS))
    uneven: float = limit(UNEVEN)
    slowed: float = limit(SLOWED)
    busy_cores: float = limit(BUSY_CORES)


def check(quality: Quality, limits: Limits = Limits()) -> Verdict:
    """Report every doubt about the recording, the most severe first."""
    steps = Measure("training steps traced", count(quality.steps))
    doubts = quality.by(asdict(limits))
    if not doubts:
        summary = f"{quality.steps} steady training steps were traced"
        if quality.account and not quality.steps:
            summary = "The account of the run is complete"
        return Healthy(summary=summary, evidence=(steps,))
    first, *others = doubts
    more = f" (and {len(others)} more)" if others else ""
    return Finding(
        summary=f"{capitalized(first.what)}{more}",
        evidence=(steps,),
        remedies=tuple(Remedy(capitalized(doubt.advice)) for doubt in doubts),
        severity=Severity.WARNING if first.grave else Severity.NOTE,
    )
