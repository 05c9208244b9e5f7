"""What several rules ask before they check anything: functions of facts that return a verdict, or None to go on.

A rule lists its own in ``PRECONDITIONS``. They are asked in that order, once all facts of the rule are there.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import STEP, SteadySteps
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Healthy, NotApplicable, Verdict

F = TypeVar("F")

Precondition = Callable[..., Verdict | None]  # Its parameters are facts, which it is given by type, as ``check`` is


def whole_run(phases: RunPhases) -> NotApplicable | None:
    """The run as a whole was recorded, and not only a part of it."""
    return None if phases.whole else NotApplicable(reason=phases.missing)


def timed_steps(breakdown: Breakdown) -> NotApplicable | None:
    """The traced steps take time."""
    if breakdown.step_ms:
        return None
    return NotApplicable(reason="the traced steps have no duration; record the run again")


def figures_per_step(steady: SteadySteps) -> NotApplicable | None:
    """What a device did is known per step, and not only for the whole trace."""
    return None if steady.unit == STEP else NotApplicable(reason=steady.why_no_steps)


def pipeline_ran(pipeline: InputPipeline, breakdown: Breakdown) -> NotApplicable | None:
    """Every function of the pipeline ran in the traced steps, or the step waits for those that did."""
    return NotApplicable(reason=pipeline.why_idle) if pipeline.why_idle and not breakdown.waits_for_input else None


def not_on(*kinds: DeviceKind, verdict: Verdict) -> Precondition:
    """The training does not run on a device of these kinds, for which the verdict is known."""

    def precondition(hardware: Hardware) -> Verdict | None:
        return verdict if hardware.kind in kinds else None

    return precondition


def only_on(kind: DeviceKind, otherwise: Healthy | str) -> Precondition:
    """The training runs on a device of this kind: for others the verdict, or why they are not checked, is known."""
    verdict = NotApplicable(reason=otherwise) if isinstance(otherwise, str) else otherwise
    return not_on(*(one for one in DeviceKind if one is not kind), verdict=verdict)


def found(kind: type[F], nothing: str = "", what: Callable[[F], object] = attrgetter("rows")) -> Precondition:
    """A fact of a kind shows something among the operations of the step: it has rows, or ``what`` says so.

    Otherwise the rule is not applicable where many operations have no name, and healthy elsewhere: ``nothing`` is
    the sentence, "" leaves this to the rule.
    """

    def precondition(fact: F, operations: Operations) -> Verdict | None:
        if what(fact):
            return None
        if operations.why_unnamed:
            return NotApplicable(reason=operations.why_unnamed)
        return Healthy(summary=nothing) if nothing else None

    precondition.__annotations__["fact"] = kind
    return precondition
