"""Changes whose promise is about the whole run are measured by whole runs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.trial.made import Machine, join, row, stage_of
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import RunSaving
from tfdoctor.diagnosis.trials import Difference, Trials
from tfdoctor.terms.errors import CaptureError
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Recurrence, Verdict
from tfdoctor.trial import proposals, trial
from tfdoctor.trial.clock import NEVER, Enough
from tfdoctor.trial.program import AS_IS, Variant
from tfdoctor.trial.trial_run import TrialRun


@dataclass
class Program:
    """A program of 60 s, of which each variant takes a share."""

    shares: dict[str, float]
    errors: dict[str, str] = field(default_factory=dict)
    seconds: float = 60.0
    order: list[str] = field(default_factory=list)
    plans: list[Enough] = field(default_factory=list)
    tick: Callable[[float], object] = lambda _: None
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def run(self, variant: Variant, enough: Enough) -> TrialRun:
        self.order.append(variant.name)
        self.plans.append(enough)
        seconds = self.seconds * self.shares.get(variant.name, 1.0)
        seconds *= float(np.exp(self.random.normal(0, 0.003)))
        self.tick(seconds)
        error = self.errors.get(variant.name, "")
        return TrialRun(why="no loop", error=error, seconds=seconds)


def fine() -> Verdict:
    return Healthy(summary="All is well")


def variant(name: str, share: float = 0.3, recurs: Recurrence = Recurrence.PER_EPOCH) -> Variant:
    promised = RunSaving(
        ms=18_000.0, share=share, rated_share=share, recurs=recurs, each_ms=1_800.0, times=10, bound=Bound.EXPECTED
    )
    return Variant(name, promised_run=promised, rules=(name,))


def tried(
    program: Program, *variants: Variant, minutes: float = 60.0, say: Callable[[str], object] = str
) -> Trials:
    return trial.conduct(stage_of(program.run), trial.Agenda(variants, join, minutes, say=say))[0]


def test_what_a_change_saves_of_the_whole_run(clock: Callable[[float], None]) -> None:
    program = Program({"epoch-boundary": 0.7}, tick=clock)
    trials = tried(program, variant("epoch-boundary"), variant("nothing", 0.1))
    saved = row(trials, "epoch-boundary").measured
    assert saved
    assert saved.of_run
    assert saved.low < 0.3 < saved.high
    assert saved.difference is Difference.SAVES
    assert row(trials, "epoch-boundary").kept
    assert row(trials, "epoch-boundary").run_ms == pytest.approx(42_000.0, rel=0.02)
    other = row(trials, "nothing")
    assert not other.kept
    assert other.measured
    assert other.measured.difference is Difference.NONE
    assert trials.as_is_run_ms == pytest.approx(60_000.0, rel=0.02)


def test_rounds_alternate_and_begin_with_the_first_run(clock: Callable[[float], None]) -> None:
    program = Program({}, tick=clock)
    tried(program, variant("a", 0.5), variant("b", 0.4), minutes=9.5)
    assert program.order[:8] == [AS_IS, "a", "b", AS_IS, AS_IS, "b", "a", AS_IS]
    assert all(plan.steps == NEVER for plan in program.plans)


def test_what_does_not_fit_into_the_time_says_how_much_it_needs(clock: Callable[[float], None]) -> None:
    program = Program({"a": 0.5}, tick=clock)
    trials = tried(program, variant("a", 0.5), variant("b", 0.4), minutes=6.5)
    assert row(trials, "a").measured
    assert row(trials, "b").runs == 0
    assert "two rounds of whole runs take about" in row(trials, "b").missing
    said = list[str]()
    short = tried(Program({}, tick=clock), variant("a"), minutes=3.0, say=said.append)
    assert short.rounds == 0
    assert short.needed_minutes == pytest.approx(6.0, rel=0.05)
    assert "two rounds of whole runs take about 6 minutes" in row(short, "a").missing
    told, _, advice = said[1].partition("so a result is unlikely: ")
    assert told == "3 minutes allow one more run, and two rounds of whole runs need 5, "
    said.clear()
    tried(Program({}, tick=clock), variant("a"), minutes=float(advice.split()[1]), say=said.append)
    assert not any("unlikely" in one for one in said)


def test_a_change_that_fails_has_no_figure(clock: Callable[[float], None]) -> None:
    program = Program({}, {"a": "NameError: name 'x' is not defined"}, tick=clock)
    failed = row(tried(program, variant("a")), "a")
    assert failed.measured is None
    assert failed.missing == "NameError: name 'x' is not defined"


def test_a_program_that_fails_as_it_is_cannot_be_timed(clock: Callable[[float], None]) -> None:
    program = Program({}, {AS_IS: "ValueError: no data"}, tick=clock)
    with pytest.raises(CaptureError, match="ValueError: no data"):
        tried(program, variant("a"))


def test_a_promise_about_each_step_is_measured_by_steps() -> None:
    assert trial.is_about_run(variant("a", recurs=Recurrence.ONCE))
    assert not trial.is_about_run(variant("a", recurs=Recurrence.PER_STEP))
    assert not trial.is_about_run(Variant("patch.diff"))


def test_the_promise_is_of_the_run_that_the_trial_makes() -> None:
    """A recording that ended after the traced steps, of a program of many epochs."""
    told = variant("a", share=0.5).promised_run
    assert told
    rule = Rule("a", Topic.EXECUTION, "0.1.0", RuleDoc("A"), (), fine)
    outcome = Finding(summary="a", evidence=(), remedies=())
    result = Result(rule=rule, outcome=outcome, run=replace(told, extrapolated_share=0.02))
    promised = proposals.of_whole_run(result)
    assert promised
    assert promised.share == 0.02
    assert proposals.of_whole_run(replace(result, run=told)) == told


def test_both_kinds_of_trials_are_one_report(clock: Callable[[float], None]) -> None:
    machine = Machine({"prefetch": 0.7}, tick=clock)
    plan = trial.Agenda([variant("a"), Variant("prefetch")], join, 60.0)
    both, kept = trial.conduct(stage_of(machine.run), plan)
    assert [(one.name, bool(one.step_ms), bool(one.run_ms)) for one in both.rows] == [
        ("prefetch", True, False),
        ("a", False, True),
    ]
    assert both.as_is_ms == pytest.approx(10.0, rel=0.05)
    assert both.as_is_run_ms == pytest.approx(15_000.0)
    assert both.runs == len(machine.order)
    assert [one.name for one in kept] == ["prefetch"]
