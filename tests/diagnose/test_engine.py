"""The engine applies rules, isolates crashes, and lets the step model judge what findings save."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import Takes, Together
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.input_pipeline import PipelineSegment
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import PARTS, Breakdown
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Bound,
    Concern,
    Effect,
    Errored,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    StepWork,
    Verdict,
)

SEEN = Measure("what was seen", ms(1.0))


def rule(check: Callable[..., Verdict], name: str = "") -> Rule:
    doc = RuleDoc("A title", {})
    called = name or check.__name__.replace("_", "-")
    return Rule(called, Topic.INPUT, "0.1.0", doc, (), check, check, check)


def finding(*effects: Effect, severity: Severity | None = None) -> Finding:
    return Finding(
        summary="Something is slow",
        evidence=(SEEN,),
        remedies=(Remedy("Change it"),),
        effects=effects,
        severity=severity,
    )


def states(name: str, *effects: Effect, severity: Severity | None = None) -> Rule:
    """A rule that finds this fault."""
    return rule(lambda: finding(*effects, severity=severity), name)


def part(saved: float, subject: str = "part", **more: Any) -> Effect:
    """A change that saves so many ms of the device's work."""
    return Effect(Stage.DEVICE, 0.0, subject, ms(saved), **more)


def chart_of(*segments: PipelineSegment, **parts: float) -> Chart:
    """A GPU's step, of these parts in ms."""
    exposed = {str(one): parts.get(str(one), 0.0) for one in PARTS}
    return Chart([StepModel(device=DeviceKind.GPU, exposed=exposed, segments=segments)])


COMPUTE = {"device": 100.0}


def examine(*rules: Rule, chart: Chart | None = None) -> dict[str, Result]:
    results = engine.examine(chart or chart_of(**COMPUTE), rules)
    return {result.rule.name: result for result in results}


def followed(*rules: Rule, chart: Chart | None = None) -> Together | None:
    chart = chart or chart_of(**COMPUTE)
    return savings.together(chart, engine.examine(chart, rules))


# Limits


@dataclass(frozen=True)
class Limits:
    least: float = 10.0


def limited(step_model: StepModel, limits: Limits = Limits()) -> Verdict:
    return finding() if step_model.step_ms >= limits.least else fine()


def test_a_rule_gets_the_limits_that_it_holds() -> None:
    as_written = replace(rule(limited, "as-written"), limits=Limits())
    set_higher = replace(rule(limited, "set-higher"), limits=Limits(least=1000.0))
    found = examine(as_written, set_higher)
    assert isinstance(found["as-written"].outcome, Finding)
    assert isinstance(found["set-higher"].outcome, Healthy)


# Steps that tracing made much longer


def slowed() -> Chart:
    exposed = {str(one): COMPUTE.get(str(one), 0.0) for one in PARTS}
    return Chart([StepModel(device=DeviceKind.GPU, exposed=exposed, slowdown=2.0)])


def test_nor_is_found_what_is_little_even_of_those() -> None:
    found = examine(states("small", part(4.9)), states("some", part(5.0)), chart=slowed())
    assert isinstance(found["small"].outcome, NotApplicable)
    assert "is not reliable" in found["small"].outcome.reason
    assert isinstance(found["some"].outcome, Finding)


# Isolation


def broken() -> Verdict:
    raise KeyError("shape")


def missing(breakdown: Breakdown) -> Verdict:
    raise AssertionError(breakdown)


def fine() -> Verdict:
    return Healthy(summary="All is well")


def test_a_rule_that_crashes_leaves_the_others_untouched() -> None:
    found = examine(rule(broken), rule(fine), states("fault", part(50)))
    outcome = found["broken"].outcome
    assert isinstance(outcome, Errored)
    assert outcome.error == "KeyError('shape')"
    assert "in broken" in outcome.traceback
    assert found["fine"].outcome == fine()
    assert found["fault"].saving


def test_a_missing_fact_is_not_applicable_with_its_reason() -> None:
    chart = Chart([], missing={Breakdown: Unavailable("no step was traced")})
    found = examine(rule(missing), chart=chart)
    assert found["missing"].outcome == NotApplicable(reason="no step was traced")


def test_a_defect_in_a_fact_is_an_error_and_no_missing_fact() -> None:
    """An empty chart cannot measure the breakdown: its parts were never given."""
    outcome = examine(rule(missing), chart=Chart([]))["missing"].outcome
    assert isinstance(outcome, Errored)


def test_without_a_step_model_findings_stand_without_a_saving() -> None:
    for chart in (Chart([], missing={StepModel: Unavailable("no")}), Chart([])):
        result = examine(states("fault", part(50)), rule(fine), chart=chart)["fault"]
        assert isinstance(result.outcome, Finding)
        assert (result.saving, result.severity) == (None, Severity.NOTE)
        assert followed(states("fault", part(50)), chart=chart) is None


def test_steps_without_length_save_nothing_and_break_nothing() -> None:
    result = examine(states("fault", part(50)), chart=chart_of())["fault"]
    assert isinstance(result.outcome, Finding)
    assert result.saving is None


# What a finding saves


@pytest.mark.parametrize(
    ("saved", "severity"),
    [
        (20.0, Severity.CRITICAL),
        (19.9, Severity.WARNING),
        (5.0, Severity.WARNING),
        (4.9, Severity.NOTE),
        (0.5, Severity.NOTE),
    ],
)
def test_severity_follows_the_saving(saved: float, severity: Severity) -> None:
    result = examine(states("fault", part(saved)))["fault"]
    assert result.severity is severity
    assert result.saving
    assert result.saving.ms_per_step == pytest.approx(saved)
    assert result.saving.share == pytest.approx(saved / 100)


def test_a_saving_below_half_a_percent_is_healthy_with_what_was_seen() -> None:
    result = examine(states("fault", part(0.49)))["fault"]
    assert isinstance(result.outcome, Healthy)
    assert result.outcome.evidence == (SEEN,)
    assert result.outcome.summary.startswith("Something is slow; fixing it would save less")
    assert (result.saving, result.severity) == (None, None)


def test_a_change_that_costs_time_is_healthy() -> None:
    slower = Effect(Stage.DEVICE, 1.5, "part", ms(50.0))
    assert isinstance(examine(states("fault", slower))["fault"].outcome, Healthy)


def test_a_finding_without_effects_states_its_own_severity() -> None:
    found = examine(states("grave", severity=Severity.WARNING), states("plain"))
    assert found["grave"].severity is Severity.WARNING
    assert found["plain"].severity is Severity.NOTE
    assert isinstance(found["plain"].outcome, Finding)


def test_a_ceiling_stays_one() -> None:
    found = examine(states("a", part(50, bound=Bound.AT_MOST)), states("b", part(50)))
    assert found["a"].saving
    assert found["a"].saving.bound is Bound.AT_MOST
    assert found["b"].saving
    assert found["b"].saving.bound is Bound.EXPECTED


def test_a_model_that_explains_too_little_makes_no_upper_bound() -> None:
    """It may be off either way: the report says that the saving is an estimate."""
    chart = chart_of(PipelineSegment({"a": 20.0}, overlapped=True), input=40.0, device=10.0)
    result = examine(states("fault", Effect(Stage.INPUT, 0.5)), chart=chart)["fault"]
    assert result.saving
    assert result.saving.bound is Bound.EXPECTED
    assert "60 %" in result.saving.how
    assert "estimate" in result.saving.how


def test_it_is_told_how_a_saving_was_computed() -> None:
    result = examine(states("fault", part(30, "a"), part(10, "b")))["fault"]
    assert result.saving
    assert "100 ms" in result.saving.how
    assert "two parts of the device work" in result.saving.how
    assert "60.0 ms" in result.saving.how


def test_a_grave_fault_without_a_figure_stands_before_a_small_one_with_a_figure() -> None:
    """Compiling that took most of the traced time saves nothing of the usual step."""
    small = states("small", part(8))
    grave = states("grave", severity=Severity.CRITICAL)
    results = engine.examine(chart_of(**COMPUTE), [small, grave])
    assert [one.rule.name for one in results] == ["grave", "small"]


# How a saving was computed


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (Effect(Stage.DEVICE, 0.76), "the step model shortens the device work by 24 % and predicts"),
        (Effect(Stage.DEVICE, 0.0), "the step model removes the device work and predicts"),
        (Effect(Stage.DEVICE, 0.5, why="it shares 2 cores"), "by 50 % (it shares 2 cores) and"),
    ],
    ids=["less", "none", "why"],
)
def test_a_change_of_a_whole_stage_is_a_sentence(effect: Effect, words: str) -> None:
    found = examine(states("slow", effect), chart=chart_of(**COMPUTE))["slow"]
    assert found.saving
    assert words in found.saving.how


def test_a_general_finding_takes_what_its_summary_states() -> None:
    stated = replace(finding(part(8)), takes=ms(3.0))
    asks = replace(rule(lambda: stated, "asks"), general=True)
    takes = examine(asks, chart=chart_of(**COMPUTE))["asks"].takes
    assert takes == Takes(3.0, 3.0 / sum(COMPUTE.values()))


# What hides what


def bound_by_input() -> Chart:
    """Input made beside the step takes 50 ms, the compute 10."""
    return chart_of(PipelineSegment({"map": 50.0}, overlapped=True), input=40.0, device=10.0)


INPUT = states("input-bound", Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST))
MATMUL = states("float32-matmul", part(4))


def test_a_saving_behind_the_input_says_what_to_mend_first() -> None:
    found = examine(INPUT, MATMUL, chart=bound_by_input())
    hidden = found["float32-matmul"]
    assert isinstance(hidden.outcome, Finding)
    assert hidden.saving
    assert hidden.saving.after == ("input-bound",)
    assert hidden.saving.ms_per_step == 0
    assert hidden.severity is Severity.NOTE
    assert "4.00 ms" in hidden.saving.how
    assert "The step waits 40.0 ms for input" in hidden.saving.how
    assert found["input-bound"].saving
    assert found["input-bound"].saving.after == ()


def test_a_saving_that_a_huge_wait_dwarfs_says_so_too() -> None:
    """A minute's wait before 10 ms of compute, not made beside it: 4 ms are little of the step."""
    chart = chart_of(input=60_000.0, device=10.0)
    dwarfed = examine(INPUT, MATMUL, chart=chart)["float32-matmul"]
    assert isinstance(dwarfed.outcome, Finding)
    assert dwarfed.saving
    assert dwarfed.saving.after == ("input-bound",)
    assert dwarfed.saving.ms_per_step == pytest.approx(4)


def test_a_saving_that_nothing_will_ever_uncover_is_healthy() -> None:
    found = examine(MATMUL, chart=bound_by_input())
    assert isinstance(found["float32-matmul"].outcome, Healthy)


def test_a_trifle_stays_one_after_the_others() -> None:
    trifle = states("trifle", part(0.04))
    found = examine(INPUT, trifle, chart=bound_by_input())
    assert isinstance(found["trifle"].outcome, Healthy)


def test_only_what_hides_a_saving_is_named() -> None:
    elsewhere = states("between-steps", Effect(Stage.BETWEEN, 0.0))
    chart = chart_of(PipelineSegment({"map": 50.0}, overlapped=True), input=40.0, device=9.0, between=1.0)
    found = examine(INPUT, MATMUL, elsewhere, chart=chart)["float32-matmul"]
    assert found.saving
    assert found.saving.after == ("input-bound",)


def test_nothing_rests_on_what_turned_out_to_save_nothing() -> None:
    """Neither change of the input uncovers the product by itself; a trifle is no finding."""
    one = states("one", Effect(Stage.INPUT, 0.3, "map"))
    two = states("two", Effect(Stage.INPUT, 0.5, "map"))
    trifle = states("trifle", part(0.04, "bias"))
    found = examine(one, two, trifle, MATMUL, chart=bound_by_input())
    assert isinstance(found["trifle"].outcome, Healthy)
    assert found["float32-matmul"].saving
    assert set(found["float32-matmul"].saving.after) == {"one", "two"}


def test_of_several_findings_that_hide_a_saving_the_one_with_a_cause_is_named() -> None:
    cause = states("cause", Effect(Stage.INPUT, 0.01, "map"))
    found = examine(INPUT, cause, MATMUL, chart=bound_by_input())
    assert found["float32-matmul"].saving
    assert found["float32-matmul"].saving.after == ("cause",)


# All together


def test_all_changes_together_are_one_figure() -> None:
    both = followed(states("a", part(30, "x")), states("b", part(20, "y")))
    assert both
    assert both.ms_per_step == pytest.approx(50)
    assert both.share == pytest.approx(0.5)
    assert both.bound is Bound.EXPECTED
    assert set(both.rules) == {"a", "b"}


def test_two_names_for_one_change_are_one_change() -> None:
    ceiling = states("input-bound", Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST))
    exact = states("sequential-map", Effect(Stage.INPUT, 0.0, "map"))
    chart = chart_of(PipelineSegment({"map": 50.0}, overlapped=True), input=40.0, device=10.0)
    both = followed(ceiling, exact, chart=chart)
    assert both
    assert both.rules == ("sequential-map",)
    assert both.bound is Bound.EXPECTED
    assert both.ms_per_step == pytest.approx(40)


def test_a_ceiling_among_them_makes_the_sum_one() -> None:
    both = followed(states("a", part(30, "x", bound=Bound.AT_MOST)), states("b", part(20, "y")))
    assert both
    assert both.bound is Bound.AT_MOST


def test_nothing_to_follow_saves_nothing() -> None:
    assert followed(rule(fine), states("plain"), states("trifle", part(0.1))) is None


def test_what_overlaps_gains_only_together() -> None:
    """Input of 100 ms beside a compute of 90: either alone gains little or nothing."""
    chart = chart_of(PipelineSegment({"map": 100.0}, overlapped=True), device=90.0, input=10.0)
    quick = states("quick-input", Effect(Stage.INPUT, 0.1, "map"))
    light = states("light-model", Effect(Stage.DEVICE, 0.1))
    both = followed(quick, light, chart=chart)
    assert both is not None
    assert both.ms_per_step == pytest.approx(90)
    assert both.more_than_alone
    alone = followed(quick, chart=chart)
    assert alone is not None
    assert not alone.more_than_alone


def test_changes_that_add_up_are_not_said_to_gain_only_together() -> None:
    both = followed(states("a", part(10, "a")), states("b", part(20, "b")))
    assert both is not None
    assert not both.more_than_alone


def test_a_set_that_holds_a_ceiling_is_one_on_any_device() -> None:
    sure, ceiling = part(30, "a"), Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    for device in (DeviceKind.CPU, DeviceKind.GPU):
        exposed = dict.fromkeys(PARTS, 0.0) | {"device": 60.0, "input": 40.0}
        chart = Chart([StepModel(device=device, exposed=exposed)])
        both = followed(states("sure", sure), states("wait", ceiling), chart=chart)
        assert both is not None
        assert both.bound is Bound.AT_MOST
        results = examine(states("sure", sure), states("wait", ceiling), chart=chart)
        bounds = {name: r.saving.bound for name, r in results.items() if r.saving}
        assert bounds == {"sure": Bound.EXPECTED, "wait": Bound.AT_MOST}


effects = st.builds(
    Effect,
    stage=st.sampled_from([Stage.DEVICE, Stage.HOST, Stage.TRANSFER, Stage.BETWEEN]),
    scales=st.floats(0, 1),
    subject=st.sampled_from(["", "a", "b"]),
    of=st.floats(0, 40).map(ms),
    bound=st.sampled_from(Bound),
) | st.builds(
    Effect,
    stage=st.just(Stage.INPUT),
    scales=st.floats(0, 1),
    subject=st.sampled_from(["", "map"]),
    bound=st.sampled_from(Bound),
)
times = st.floats(0, 50).map(lambda value: round(value, 3))


@given(
    parts=st.fixed_dictionaries({str(one): times for one in PARTS}),
    made=times,
    stated=st.lists(st.lists(effects, min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_all_together_save_no_more_than_the_step_and_no_less_than_the_best(
    parts: dict[str, float], made: float, stated: list[list[Effect]]
) -> None:
    """Less only by what is not worth saying, where one change has two names."""
    chart = chart_of(PipelineSegment({"map": made}, overlapped=True), **{**parts, "unknown": 1.0})
    rules = [states(f"rule-{n}", *mine) for n, mine in enumerate(stated)]
    results = engine.examine(chart, rules)
    both = savings.together(chart, results)
    alone = [result.saving.ms_per_step for result in results if result.saving]
    step = chart.fact(StepModel).step_ms
    if both is None:
        assert not alone
        return
    assert both.ms_per_step <= step + 1e-6
    slack = savings.WORTH_SAYING * step * len(stated)
    assert both.ms_per_step >= max(alone, default=0.0) - slack
    assert both.share == pytest.approx(both.ms_per_step / step)


# Order


def test_findings_come_first_by_saving_then_health_then_the_rest() -> None:
    rules = [
        rule(broken),
        rule(fine),
        states("small", part(6, "x")),
        rule(lambda: NotApplicable(reason="no"), "absent"),
        states("large", part(30, "y")),
        states("grave", severity=Severity.WARNING),
        states("plain"),
    ]
    results = engine.examine(chart_of(**COMPUTE), rules)
    names = [result.rule.name for result in results]
    assert names == ["large", "small", "grave", "plain", "fine", "absent", "broken"]


def test_the_order_does_not_depend_on_that_of_the_rules() -> None:
    rules = [states(name, part(10, name)) for name in "abc"]
    assert list(examine(*rules)) == list(examine(*reversed(rules))) == ["a", "b", "c"]


# A rule as a module


def module(**parts: Any) -> ModuleType:
    made = ModuleType("tfdoctor.rules.slow_thing")
    sections = "".join(f"## {name}\n\nText.\n\n" for name in SECTIONS)
    made.__doc__ = f"The thing is slow.\n\n{sections}"
    vars(made).update(
        {"TOPIC": Topic.INPUT, "SINCE": "0.1.0", "check": missing, "sick": fine, "healthy": fine} | parts
    )
    return made


SECTIONS = ("What it checks", "Why it matters", "How to fix", "Holds for", "Sources")


def test_a_rule_is_read_out_of_its_module() -> None:
    read = Rule.from_module(module())
    assert (read.name, read.needs, read.doc.title) == ("slow-thing", ("Breakdown",), "The thing is slow")
    assert read.doc.sections["How to fix"] == "Text."


@pytest.mark.parametrize("lacking", SECTIONS)
def test_a_rule_without_a_section_is_no_rule(lacking: str) -> None:
    made = module()
    made.__doc__ = (made.__doc__ or "").replace(f"## {lacking}\n\nText.", f"## {lacking}\n")
    with pytest.raises(ValueError, match=lacking):
        Rule.from_module(made)


def test_a_module_that_lacks_a_part_is_no_rule() -> None:
    made = module()
    del made.check
    with pytest.raises(AttributeError, match="check"):
        Rule.from_module(made)


def test_nothing_is_promised_of_steps_that_are_mostly_the_profilers() -> None:
    exposed = dict.fromkeys(PARTS, 0.0) | {"device": 100.0}
    chart = Chart([StepModel(device=DeviceKind.GPU, exposed=exposed, slowdown=1.6)])
    result = examine(states("fault", part(50)), chart=chart)["fault"]
    assert isinstance(result.outcome, Finding)
    assert (result.saving, result.severity) == (None, Severity.NOTE)
    assert followed(states("fault", part(50)), chart=chart) is None


def ranked(chart: Chart, *rules: Rule) -> list[str]:
    return [result.rule.name for result in engine.examine(chart, rules)]


def test_severity_comes_before_time_whether_a_rule_is_general() -> None:
    """A general finding of half of the step precedes one of 5 %; a remark on the recording follows all."""
    effect = part(50.0, "hot")

    def hot(unexplained: Unexplained) -> Verdict:
        return finding(effect) if unexplained.parts_ms else finding()

    general = replace(rule(hot, "hot"), general=True)
    small, equal = states("small", part(4.0, "a")), states("equal", part(12.0, "b"))
    note = replace(states("recording", severity=Severity.CRITICAL), topic=Topic.RECORDING)
    given = chart_of(**COMPUTE), Breakdown.of(**COMPUTE)
    chart = Chart([given[0].fact(StepModel), given[1]])
    assert ranked(chart, note, small, general, equal) == ["hot", "equal", "small", "recording"]


@pytest.mark.parametrize(("extra_ms", "first"), [(90.0, "long"), (10.0, "saves")])
def test_long_steps_rank_by_what_they_add_to_the_mean_step(extra_ms: float, first: str) -> None:
    steps, at = [], 0
    for number in range(20):
        end = at + round((10.0 + extra_ms * (number in {5, 15})) * PS_PER_MS)
        steps.append(Step(number, at, end, end))
        at = end
    model = StepModel(device=DeviceKind.GPU, exposed=Breakdown.of(device=10.0).median)
    chart = Chart([model, Steps.of(steps)])
    verdict = replace(finding(severity=Severity.CRITICAL), concern=Concern.LONG_STEPS)
    assert ranked(chart, states("saves", part(4.0)), rule(lambda: verdict, "long"))[0] == first


def test_a_bound_of_a_whole_stage_is_no_lower_than_that_of_its_parts() -> None:
    """Python in the input keeps the loop from the interpreter: without any input, the loop has it too."""
    part = Effect(Stage.INPUT, 0.1, "a", ms(40.0), bound=Bound.AT_MOST)
    beside = Effect(Stage.HOST, 0.5, StepWork.INTERPRETER, ms(20.0), bound=Bound.AT_MOST)
    whole = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    chart = chart_of(PipelineSegment({"a": 100.0}, overlapped=True), input=60.0, host=20.0, device=20.0)
    found = examine(states("cause", part, beside), states("whole", whole), chart=chart)
    assert found["whole"].saving
    assert found["cause"].saving
    assert found["whole"].saving.ms_per_step >= found["cause"].saving.ms_per_step
    alone = examine(states("whole", whole), chart=chart)["whole"].saving
    assert alone
    assert alone.ms_per_step == 60.0


def without_python(chart: Chart) -> str:
    """How the saving is explained of Python in the input that keeps the loop from the interpreter as well."""
    python = Effect(Stage.INPUT, 0.0, "a", ms(40.0), bound=Bound.AT_MOST)
    loop = Effect(Stage.HOST, 0.5, StepWork.INTERPRETER, ms(20.0), bound=Bound.AT_MOST)
    saving = examine(states("python", python, loop), chart=chart)["python"].saving
    assert saving
    return saving.how


def test_what_a_saving_of_input_has_beyond_the_wait_is_explained_with_its_figure() -> None:
    """The wait is 60 ms, the saving 70 or, on a CPU whose two cores are crowded, 77.5."""
    ahead = PipelineSegment({"a": 100.0}, overlapped=True)
    chart = chart_of(ahead, input=60.0, host=20.0, device=20.0)
    (loop,) = (text for text in without_python(chart).split(". ") if "Of the saving" in text)
    assert loop == (
        "Of the saving, 60.0 ms are the wait for input; added to this are up to 10.0 ms because Python of the "
        "input no longer keeps the training loop from the interpreter."
    )
    model = savings.model_of(chart)
    assert model
    cores = Cores(2.0, 1.6)
    crowded = replace(model, device=DeviceKind.CPU, cores=cores, input_ms=100.0)
    both = without_python(Chart([crowded]))
    assert "60.0 ms are the wait for input; added to this are up to 7.50 ms because Python" in both
    assert "and up to 10.0 ms because work of the input leaves its cores to the rest" in both


def test_a_saving_within_the_wait_needs_no_such_explanation() -> None:
    ahead = PipelineSegment({"a": 100.0}, overlapped=True)
    chart = chart_of(ahead, input=60.0, device=40.0)
    assert "Of the saving" not in without_python(chart)
    elsewhere = examine(MATMUL, chart=chart_of(device=10.0))["float32-matmul"].saving
    assert elsewhere
    assert "Of the saving" not in elsewhere.how


def test_a_general_finding_names_no_more_than_is_left() -> None:
    def hot(unexplained: Unexplained) -> Verdict:
        return finding(part(60.0, "a"), part(60.0, "b")) if unexplained.parts_ms else finding()

    model = StepModel(device=DeviceKind.GPU, exposed=Breakdown.of(**COMPUTE).median)
    chart = Chart([model, Breakdown.of(**COMPUTE)])
    general = replace(rule(hot, "hot"), general=True)
    found = examine(states("known", part(COMPUTE["device"] / 2, "c")), general, chart=chart)
    outcome = found["hot"].outcome
    assert isinstance(outcome, Finding)
    times = [effect.of.value for effect in outcome.effects if effect.of]
    assert times == pytest.approx([COMPUTE["device"] / 4] * 2)


@pytest.mark.parametrize(
    ("saved", "bound", "kind"),
    [
        (3.0, Bound.AT_MOST, Finding),
        (2.9, Bound.AT_MOST, Healthy),
        (2.9, Bound.EXPECTED, Finding),
        (0.4, Bound.EXPECTED, Healthy),
    ],
)
def test_an_upper_bound_of_little_is_no_finding(saved: float, bound: Bound, kind: type) -> None:
    found = examine(states("fault", part(saved, bound=bound)), chart=chart_of(**COMPUTE))["fault"]
    assert isinstance(found.outcome, kind)
