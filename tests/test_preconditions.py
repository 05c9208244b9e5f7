"""What several rules ask before they check anything, and when the engine asks it."""

from tests.builders import even_steps
from tests.kit import *
from tests.rules.applied import applied
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import TRACE, SteadySteps
from tfdoctor.families.preconditions import (
    Precondition,
    figures_per_step,
    found,
    not_on,
    pipeline_ran,
    timed_steps,
    whole_run,
)
from tfdoctor.rules.operations import slow_random
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Healthy, NotApplicable, Verdict

WHY = "only its window was traced"
PART = RunPhases(total_ms=1.0, times={}, whole=False, missing=WHY)
STEADY = SteadySteps.of(even_steps(10, 5.0))
IDLE = InputPipeline((), (), idle=(Dataset(id=1, kind="_MapDataset", function="decode"),))
WAITS, WORKS = Breakdown.of(input=5.0, device=5.0), Breakdown.of(device=5.0)
COMPILED = "XLA compiles it"
ON_TPU = not_on(DeviceKind.TPU, verdict=Healthy(summary=COMPILED))
GRADIENT = OperationTime(name="gradient_tape/m", type="MatMul", ms=1.0)
UNNAMED = OperationTime(name="k", type="compiled or unnamed", ms=9.0)


NO_STEP = "no step is marked"
UNMARKED = replace(STEADY, unit=TRACE, why_no_steps=NO_STEP)
NO_TIME = "the traced steps have no duration; record the run again"


@cases(
    (whole_run, replace(PART, whole=True), None),  # the rule goes on
    (timed_steps, WORKS, None),
    (figures_per_step, STEADY, None),
    (ON_TPU, Hardware(DeviceKind.GPU, "x"), None),
    (whole_run, PART, NotApplicable(reason=WHY)),
    (timed_steps, Breakdown.of(), NotApplicable(reason=NO_TIME)),
    (figures_per_step, UNMARKED, NotApplicable(reason=NO_STEP)),
    (ON_TPU, Hardware(DeviceKind.TPU, "x"), Healthy(summary=COMPILED)),
)
def test_the_verdict_where_it_does_not_hold(check: Precondition, fact: object, verdict: Verdict | None) -> None:
    assert check(fact) == verdict


def test_functions_that_did_not_run_matter_only_where_the_step_does_not_wait() -> None:
    assert pipeline_ran(IDLE, WAITS) is None
    assert pipeline_ran(InputPipeline.of(), WORKS) is None
    assert pipeline_ran(IDLE, WORKS) == NotApplicable(reason=IDLE.why_idle)


@each("", "The step has none")
def test_what_is_not_found_is_absent_only_where_operations_have_names(nothing: str) -> None:
    named, unnamed = Operations((GRADIENT,)), Operations((UNNAMED,))
    precondition = found(Operations, nothing, lambda operations: len(operations.rows) > 1)
    several = Operations((GRADIENT, UNNAMED))
    assert precondition(several, several) is None
    assert precondition(unnamed, unnamed) == NotApplicable(reason=unnamed.why_unnamed)
    assert precondition(named, named) == (Healthy(summary=nothing) if nothing else None)


@dataclass(frozen=True)
class Known:
    """A fact that the check below needs."""

    measure = staticmethod(lambda: None)


def rule(*preconditions: Precondition) -> Rule:
    def check(known: Known) -> Verdict:  # noqa: ARG001 - it is asked for by its type
        return Healthy(summary="checked")

    return replace(Rule.from_module(slow_random), check=check, preconditions=preconditions, limits=None)


def test_the_first_precondition_that_fails_decides() -> None:
    chart = Chart([Known(), UNMARKED, PART])
    assert rule().apply(chart) == Healthy(summary="checked")
    assert rule(whole_run, figures_per_step).apply(chart) == NotApplicable(reason=WHY)
    assert rule(figures_per_step).apply(chart) == NotApplicable(reason=NO_STEP)


@each(Known, SteadySteps)
def test_a_verdict_holds_whatever_else_is_missing(missing: type) -> None:
    facts = [fact for fact in (Known(), STEADY, PART) if not isinstance(fact, missing)]
    chart = Chart(facts, {missing: Unavailable("it was not recorded")})
    assert rule(figures_per_step, whole_run).apply(chart) == NotApplicable(reason=WHY)
    with pytest.raises(Unavailable, match="not recorded"):
        rule(figures_per_step).apply(chart)


def test_a_fact_that_is_given_takes_precedence() -> None:
    chart = Chart([Known(), PART])
    whole = replace(PART, whole=True)
    assert rule(whole_run).apply(chart, whole) == Healthy(summary="checked")


def test_the_rule_says_what_its_preconditions_need() -> None:
    module = ModuleType("a_rule", slow_random.__doc__)
    vars(module).update(vars(slow_random), PRECONDITIONS=(whole_run,))
    assert Rule.from_module(module).needs == ("Operations", "Hardware", "RunPhases")


def test_on_facts_by_hand_one_that_is_not_given_is_missing() -> None:
    with pytest.raises(Unavailable):
        applied(slow_random)
