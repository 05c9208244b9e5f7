"""The schedule of a trial and its result, with runs of a program whose savings are known."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trial.made import Machine, join, row, stage_of
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Saving
from tfdoctor.diagnosis.trials import Difference, TrainingState, Trials
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.verdict import Bound
from tfdoctor.trial import clock as clocks
from tfdoctor.trial import trial
from tfdoctor.trial.clock import Enough, TrialClock
from tfdoctor.trial.program import AS_IS, NotTried, Variant
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.schedule import LEAST_ROUNDS, Pairs, by_promise, first_rounds, narrow, rivals
from tfdoctor.trial.statistics import FEWEST_ROUNDS
from tfdoctor.trial.times import NoTimes, TrainedState
from tfdoctor.trial.trial_run import TrialRun


@contextmanager
def time_of_runs(machine: Machine) -> Iterator[list[float]]:
    """Let time pass only by the runs, slower ones longer; give when each began, in s."""
    now, began = [0.0], []

    def tick(seconds: float) -> None:
        began.append(now[0])
        now[0] += seconds * machine.factors.get(machine.order[-1], 1.0)

    machine.tick = tick
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: now[0]))
        yield began


def conduct(
    machine: Machine, names: list[str], minutes: float = 60.0, *, exact: bool = True
) -> tuple[Trials, list[str]]:
    return of_variants(machine, [Variant(name, exact=exact, rules=(name,)) for name in names], minutes)


def of_variants(
    machine: Machine, variants: list[Variant], minutes: float = 60.0, rivals: Pairs = frozenset()
) -> tuple[Trials, list[str]]:
    missing = [NotTried("late-shrink", "it moves code")]
    plan = trial.Agenda(variants, join, minutes, missing, rivals=rivals)
    trials, kept = trial.conduct(stage_of(machine.run, machine.at_once), plan)
    return trials, [variant.name for variant in kept]


def promising(name: str, share: float | None) -> Variant:
    saving = None if share is None else Saving(ms_per_step=10 * share, share=share, bound=Bound.EXPECTED, how="")
    return Variant(name, rules=(name,), promised=saving)


def test_each_round_begins_and_ends_as_it_is_and_turns_around(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.7, "b": 0.9}, tick=clock)
    conduct(machine, ["a", "b"])
    assert machine.order[:9] == [AS_IS, AS_IS, "a", "b", AS_IS, AS_IS, "b", "a", AS_IS]


def test_changes_that_help_are_kept_together(clock: Callable[[float], None]) -> None:
    trials, kept = conduct(Machine({"a": 0.7, "b": 1.0, "c": 0.8}, tick=clock), ["a", "b", "c"])
    assert kept == ["a", "c"]
    assert trials.together == "a + c"
    both = row(trials, "a + c").measured
    assert both is not None
    assert both.share == pytest.approx(1 - 0.56, abs=0.03)
    alone = row(trials, "b").measured
    assert alone is not None
    assert alone.difference is Difference.NONE


def test_a_clearly_worse_change_is_dropped_after_two_rounds(clock: Callable[[float], None]) -> None:
    machine = Machine({"worse": 1.5, "better": 0.9}, tick=clock)
    trials, kept = conduct(machine, ["worse", "better"])
    assert machine.order.count("worse") == 2
    assert kept == ["better"]
    measured = row(trials, "worse").measured
    assert measured is not None
    assert measured.difference is Difference.COSTS


def test_a_crash_is_a_result_and_not_run_again(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.8}, errors={"b": "MemoryError: no"}, tick=clock)
    trials, kept = conduct(machine, ["b", "a"])
    assert machine.order.count("b") == 1
    assert row(trials, "b").missing == "MemoryError: no"
    assert kept == ["a"]


@given(
    minutes=st.floats(0.5, 30),
    seconds=st.floats(5, 120),
    slower=st.lists(st.floats(0.2, 3), min_size=1, max_size=8),
    between=st.floats(0, 0.1),
)
@settings(deadline=None, max_examples=20)
def test_no_run_begins_after_the_minutes_are_over(
    minutes: float, seconds: float, slower: list[float], between: float
) -> None:
    factors = {f"v{n}": factor for n, factor in enumerate(slower)}
    machine = Machine(factors, seconds=seconds, between=between)
    with time_of_runs(machine) as began:
        conduct(machine, list(factors), minutes)
    assert all(start <= 60 * minutes for start in began)


@dataclass(slots=True)
class Watched(Runs):
    """Runs that check each round before it begins: nobody is ahead of one who still could get a figure."""

    all: Sequence[Variant] = ()
    begun: list[str] = field(default_factory=list)

    def round(self, variants: Sequence[Variant]) -> None:
        waiting = [one for one in self.all if not self.done(one.name) and one.name not in self.why]
        two_rounds = FEWEST_ROUNDS * (AROUND + 1)
        if self.clock.affordable() >= two_rounds:
            for one in variants:
                behind = [other for other in waiting if bool(other.model) <= bool(one.model)]
                assert not (self.done(one.name) and behind), f"{one} has a round before {behind}"
        if any(one.model for one in variants):
            assert not [one for one in waiting if not one.model]
        self.begun += [one.name for one in variants if one.name not in self.begun]
        Runs.round(self, variants)


@given(
    kinds=st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 0.9)), st.booleans()), min_size=1, max_size=12),
    slower=st.lists(st.floats(0.2, 3), min_size=12, max_size=12),
    failing=st.sets(st.integers(0, 11), max_size=3),
    runs=st.floats(2, 60),
    seconds=st.floats(5, 60),
)
@settings(deadline=None, max_examples=20)
def test_no_change_gets_a_second_round_while_another_has_none(
    kinds: list[tuple[float | None, bool]], slower: list[float], failing: set[int], runs: float, seconds: float
) -> None:
    """Those that change the model have none before all others had one, whatever runs take and however many fail."""
    variants = [
        replace(promising(f"v{n}", share), model="a wider layer" if model else "")
        for n, (share, model) in enumerate(kinds)
    ]
    errors = {f"v{n}": "MemoryError" for n in failing}
    factors = {f"v{n}": factor for n, factor in enumerate(slower)}
    machine = Machine(factors, seconds=seconds, errors=errors)
    with time_of_runs(machine):
        clock = TrialClock(runs * seconds / 60)
        stage = stage_of(machine.run)
        watched = Watched(stage, clock, lambda _: None, all=variants)
        watched.first()
        first_rounds(watched, variants, lambda _: False)
        narrow(watched, variants, lambda _: False)
    ordered = [one.name for one in by_promise(variants)]
    assert watched.begun == ordered[: len(watched.begun)]


@given(
    promises=st.lists(st.one_of(st.none(), st.floats(0, 0.9)), min_size=1, max_size=12),
    seconds=st.floats(5, 60),
    spare=st.floats(0, 5),
)
@settings(deadline=None, max_examples=20)
def test_time_for_two_rounds_gives_each_change_a_figure(
    promises: list[float | None], seconds: float, spare: float
) -> None:
    """The plan of a run is 6 s of steps or more, so the first estimates of its time are too long by up to that."""
    variants = [promising(f"v{n}", share) for n, share in enumerate(promises)]
    needed_s = (seconds + 6.3) * (1 + 2 * (len(variants) + 2) + 1)
    machine = Machine({}, seconds=seconds)
    with time_of_runs(machine):
        trials, _ = of_variants(machine, variants, needed_s / 60 + spare)
    assert all(one.measured for one in trials.rows if not one.parts)


def test_three_minutes_are_shared_by_two_changes(clock: Callable[[float], None]) -> None:
    """The runs of the tutorial, of 12 s: what promises nothing gets a figure beside what promises most."""
    machine = Machine({"large": 0.3}, seconds=12, tick=clock)
    trials, _ = of_variants(machine, [promising("none", None), promising("large", 0.67)], 3.0)
    assert machine.order[:5] == [AS_IS, AS_IS, "large", "none", AS_IS]
    assert all(one.measured for one in trials.rows)


def test_an_edit_that_is_promised_comes_before_larger_batches(clock: Callable[[float], None]) -> None:
    """`--only small-batch`: the edit gets its rounds, the batches what time is left."""
    larger = [Variant(f"batch {n}", model="larger batches", may_keep=False) for n in (2, 4)]
    edit = promising("small-batch", 0.69)
    machine = Machine({"small-batch": 0.4}, seconds=12, tick=clock)
    trials, kept = of_variants(machine, [*larger, edit], 2.5)
    assert machine.order[:4] == [AS_IS, AS_IS, "small-batch", AS_IS]
    assert row(trials, "small-batch").measured is not None
    assert kept == ["small-batch"]
    machine = Machine({"small-batch": 0.4}, seconds=12, tick=clock)
    trials, _ = of_variants(machine, [*larger, edit], 6.0)
    assert all(one.measured for one in trials.rows)


def test_why_a_change_has_no_figure_is_true(clock: Callable[[float], None]) -> None:
    machine = Machine({}, seconds=12, tick=clock)
    names = [f"v{n}" for n in range(9)]
    short, _ = conduct(machine, names, 1)
    assert any("did not fit into one minute:" in one.missing for one in short.rows)
    third, _ = conduct(machine, names, 4 / 3)
    assert any("did not fit into the 1.33 minutes:" in one.missing for one in third.rows)
    trials, _ = conduct(machine, names, 2.5)
    without = {one.missing for one in trials.rows if not one.measured}
    assert without == {
        "only one round fitted into the 2.5 minutes, and a figure needs two: allow more with --minutes",
        "its two rounds did not fit into the 2.5 minutes: allow more with --minutes",
    }


def test_what_the_user_names_comes_before_what_the_report_promises() -> None:
    variants = [promising("unknown", None), promising("large", 0.6), Variant("mine.diff")]
    assert [one.name for one in by_promise(variants)] == ["mine.diff", "large", "unknown"]


def test_of_changes_that_exclude_each_other_the_faster_one_is_kept(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.8, "b": 0.7, "c": 0.9}, tick=clock)
    variants = [Variant(name, rules=(name,)) for name in "abc"]
    order = Order(relations=(Relation(Relationship.INSTEAD, "a", ("b",)),))
    trials, kept = of_variants(machine, variants, rivals=rivals(order))
    assert kept == ["b", "c"]
    assert trials.together == "b + c"
    assert "a + b" not in machine.order
    beside = row(trials, "a").beside
    assert beside is not None
    assert beside.instead
    assert beside.others == ("b",)
    assert beside.measured.difference is Difference.COSTS


def test_an_excluding_change_that_is_better_beside_the_others_replaces_one(clock: Callable[[float], None]) -> None:
    """Alone `a` saves more than `b`, together with `c` less: the sets decide."""
    machine = Machine({"a": 0.6, "b": 0.65, "c": 0.9, "a + c": 0.8, "b + c": 0.6}, tick=clock)
    variants = [Variant(name, rules=(name,)) for name in "abc"]
    trials, kept = of_variants(machine, variants, rivals=frozenset({frozenset("ab")}))
    assert kept == ["a"]
    assert row(trials, "b").beside is not None


def test_a_set_that_trains_otherwise_is_not_kept(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.6, "b": 0.7}, digests={"a + b": "other"}, tick=clock)
    trials, kept = conduct(machine, ["a", "b"])
    training = row(trials, "a + b").training
    assert training is not None
    assert training.state is TrainingState.DIFFERENT
    assert kept == ["a"]


def test_a_change_that_adds_nothing_beside_another_is_not_kept(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.6, "b": 0.8, "b + a": 0.6}, tick=clock)
    trials, kept = conduct(machine, ["b", "a"])
    assert kept == ["a"]
    assert trials.together == ""
    beside = row(trials, "b").beside
    assert beside is not None
    assert not beside.instead
    assert beside.measured.difference is Difference.NONE


@pytest.mark.parametrize("exact", [True, False])
def test_a_crash_in_a_later_run_leaves_no_figure(clock: Callable[[float], None], *, exact: bool) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, tick=clock)
    machine.late["a"] = TrialRun(NoTimes("x"), exit_code=1, error="MemoryError: no", seconds=15)
    trials, kept = conduct(machine, ["a", "b"], exact=exact)
    assert row(trials, "a").measured is None
    assert row(trials, "a").missing == "run 2 failed: MemoryError: no"
    assert machine.order.count("a") == 2
    assert kept == ["b"]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"finite": False}, TrainingState.NOT_FINITE),
        ({"state": TrainedState(20, "same", {1: 2.0, 2: math.nan, 3: 1.2})}, TrainingState.NOT_FINITE),
        ({"state": TrainedState(20, "other", {1: 2.0, 2: 1.6, 3: 1.2})}, TrainingState.DIFFERENT),
    ],
)
def test_one_run_of_several_that_trains_otherwise_shows(
    clock: Callable[[float], None], changes: dict[str, Any], state: TrainingState
) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, tick=clock)
    machine.late["a"] = replace(Machine({"a": 0.5}).run(Variant("a"), Enough(), 1), **changes)
    trials, kept = conduct(machine, ["a", "b"])
    training = row(trials, "a").training
    assert training is not None
    assert training.state is state
    assert kept == ["b"]


def test_nan_of_the_program_as_it_is_is_no_fault_of_a_change(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5}, tick=clock, finite=False)
    trials, kept = conduct(machine, ["a"])
    training = row(trials, "a").training
    assert training is not None
    assert training.state is TrainingState.EQUAL
    assert kept == ["a"]


def test_equal_programs_are_not_claimed_to_differ_by_a_whole_trial() -> None:
    """The schedule looks at the figures to decide on further rounds; that must not make claims."""
    claims = 0
    for seed in range(40):
        machine = Machine({}, between=0.02, random=np.random.default_rng(seed))
        with time_of_runs(machine):
            trials, _ = conduct(machine, ["a", "b", "c"], 15)
        claims += any(one.measured and one.measured.difference is not Difference.NONE for one in trials.rows)
    assert claims <= 2


def test_other_weights_are_never_a_saving(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, digests={"a": "other"}, tick=clock)
    trials, kept = conduct(machine, ["a", "b"])
    training = row(trials, "a").training
    assert training is not None
    assert training.state is TrainingState.DIFFERENT
    assert kept == ["b"]


def test_a_change_that_trains_otherwise_is_timed_to_the_end(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, digests={"a": "other"}, between=0.1, tick=clock)
    trials, kept = conduct(machine, ["a", "b"], 10)
    found = row(trials, "a")
    assert found.measured is not None
    assert len(found.measured.rounds) == trials.rounds > LEAST_ROUNDS
    assert kept == ["b"]


def test_nan_gets_no_more_rounds(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5}, between=0.1, tick=clock)
    lost = replace(Machine({"a": 0.5}).run(Variant("a"), Enough(), 1), finite=False)
    machine.late["a"] = lost
    conduct(machine, ["a"])
    assert machine.order.count("a") == 2


def test_random_numbers_in_another_order_are_kept(clock: Callable[[float], None]) -> None:
    """A parallel map: the program repeats bit by bit, the change does not, and its losses hardly move."""
    machine = Machine({"map": 0.6, "b": 0.8}, digests={"map": "*", "map + b": "*"}, tick=clock)
    variants = [Variant("map", rules=("map",), exact=True, reorders=True), Variant("b", exact=True)]
    trials, kept = of_variants(machine, variants)
    training = row(trials, "map").training
    assert training is not None
    assert training.state is TrainingState.REORDERED
    assert kept == ["map", "b"]


def test_a_change_of_the_arithmetic_shows_its_losses(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5}, digests={"a": "other"}, tick=clock)
    trials, kept = conduct(machine, ["a"], exact=False)
    training = row(trials, "a").training
    assert training is not None
    assert training.state is TrainingState.LOSSES
    assert training.losses[0] == (1, 2.0, 2.1)
    assert training.usual == 0.0
    assert kept == ["a"]


def test_a_program_that_fails_as_it_is_stops_the_trial() -> None:
    with pytest.raises(CaptureError, match="ValueError: x"):
        conduct(Machine({}, errors={AS_IS: "ValueError: x"}), ["a"])


def test_the_first_run_may_take_as_long_as_the_trial(clock: Callable[[float], None]) -> None:
    limits = []

    def run(_: Variant, enough: Enough, _number: int) -> TrialRun:
        limits.append(enough.limit_s)
        clock(enough.limit_s)
        why = "the run took too long"
        return TrialRun(NoTimes(why), exit_code=-1, error=why, seconds=enough.limit_s)

    plan = trial.Agenda([Variant("a")], join, 20.0)
    with pytest.raises(CaptureError, match=r"within 20 minutes: allow more with --minutes\.$"):
        trial.conduct(stage_of(run), plan)
    assert limits == [1200.0]


def test_a_program_that_asks_for_input_is_said_so() -> None:
    with pytest.raises(CaptureError, match="without a terminal"):
        conduct(Machine({}, errors={AS_IS: "EOFError: EOF when reading a line"}), ["a"])


def test_ctrl_c_returns_what_was_measured(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.7}, tick=clock)

    def tick(seconds: float) -> None:
        clock(seconds)
        if len(machine.order) == 8:
            raise KeyboardInterrupt

    machine.tick = tick
    trials, _ = conduct(machine, ["a"])
    assert trials.ended_early
    assert trials.rounds == 2
    measured = row(trials, "a").measured
    assert measured is not None
    assert measured.share == pytest.approx(0.3, abs=0.05)


def test_ctrl_c_before_a_round_has_ended_is_an_error(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.7}, tick=clock)

    def tick(seconds: float) -> None:
        clock(seconds)
        if len(machine.order) == 3:
            raise KeyboardInterrupt

    machine.tick = tick
    with pytest.raises(InterruptedTrialError) as caught:
        conduct(machine, ["a"])
    assert caught.value.exit_code == 130


def test_an_interrupted_trial_blames_no_time(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.7, "b": 0.8}, tick=clock)

    def tick(seconds: float) -> None:
        clock(seconds)
        if len(machine.order) == 7:
            raise KeyboardInterrupt

    machine.tick = tick
    trials, _ = conduct(machine, ["a", "b"])
    why = "the trial was interrupted before its second round had ended"
    assert [one.missing for one in trials.rows] == [why, why]


def test_what_was_not_tried_says_why(clock: Callable[[float], None]) -> None:
    trials, _ = conduct(Machine({"a": 0.7}, tick=clock), ["a"])
    assert trials.not_tried == (("late-shrink", "it moves code"),)


def test_the_step_that_is_shown_is_that_of_the_program(clock: Callable[[float], None]) -> None:
    """A step of a GAN updates weights twice: half of its time is not its step."""
    trials, _ = conduct(Machine({"a": 0.5}, updates=2, tick=clock), ["a"])
    assert trials.as_is_ms == pytest.approx(10.0, rel=0.05)
    assert row(trials, "a").step_ms == pytest.approx(5.0, rel=0.05)


def test_too_few_minutes_are_told_before_the_rounds_with_how_many_would_do(clock: Callable[[float], None]) -> None:
    def told(minutes: float) -> list[str]:
        machine, said = Machine({}, seconds=12, tick=clock), list[str]()
        stage = stage_of(machine.run)
        variants = [Variant(name, rules=(name,)) for name in ("a", "b")]
        trial.conduct(stage, trial.Agenda(variants, join, minutes, say=said.append))
        assert not any("unlikely" in one for one in said[2:])
        return said[1:2]  # after the first run, which shows how long a run is

    (short,) = told(1.5)
    start, _, advice = short.partition("so a result is unlikely: ")
    assert start == "1.5 minutes allow five more runs, and three rounds of each of two changes need 12, "
    assert "so a clear result is unlikely" in told(2.6)[0]
    enough = float(advice.removeprefix("--minutes ").removesuffix(" would do"))
    assert "unlikely" not in told(enough)[0]
    assert "unlikely" in told(enough / 2)[0]


def test_where_there_is_room_the_runs_of_a_round_take_turns(clock: Callable[[float], None]) -> None:
    """The first run shows what a run takes; of a set of changes that help, there is room as well."""
    machine = Machine({"a": 0.7, "b": 0.8}, tick=clock, at_once=4)
    trials, kept = conduct(machine, ["a", "b"])
    assert machine.order[:9] == [AS_IS, AS_IS, "a", "b", AS_IS, AS_IS, "b", "a", AS_IS]
    assert trials.rounds_by_turns == trials.rounds > 0
    assert trials.runs == len(machine.order)
    assert kept == ["a", "b"]


def test_a_round_without_room_for_all_its_runs_has_one_after_another(clock: Callable[[float], None]) -> None:
    trials, _ = conduct(Machine({"a": 0.7, "b": 0.9}, tick=clock, at_once=3), ["a", "b"])
    assert row(trials, "a").measured is not None
    assert trials.rounds_by_turns < trials.rounds


def beside_itself(machine: Machine, failing: str, why: str) -> tuple[Trials, list[int]]:
    """Try a change of a program of which some run fails as long as others go on."""
    stage, sizes = stage_of(machine.run, at_once=9), list[int]()

    def by_turns(variants: Sequence[Variant], enough: Enough, number: int) -> list[TrialRun]:
        sizes.append(len(variants))
        failed = TrialRun(NoTimes(why), exit_code=1, error=why, seconds=2.0)
        runs = [failed if one.name == failing else None for one in variants]
        return [run or machine.run(one, enough, number) for one, run in zip(variants, runs, strict=True)]

    there: Any = SimpleNamespace(**{**vars(stage), "by_turns": by_turns})
    return trial.conduct(there, trial.Agenda([Variant("a")], join, 60.0))[0], sizes


def test_a_program_that_fails_beside_itself_runs_alone(clock: Callable[[float], None]) -> None:
    """It needs a port, or a file that it locks."""
    found, sizes = beside_itself(Machine({"a": 0.7}, tick=clock), AS_IS, "Address already in use")
    assert sizes == [3]
    assert (found.rounds_by_turns, found.rounds > 1) == (0, True)
    assert row(found, "a").measured is not None


def test_a_change_that_fails_beside_others_is_run_alone(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.7}, tick=clock)
    found, _ = beside_itself(machine, "a", "it was killed")
    assert row(found, "a").measured is not None
    assert found.rounds_by_turns == found.rounds


def test_a_round_by_turns_without_a_figure_counts_as_none(clock: Callable[[float], None]) -> None:
    """The program as it is trains too few steps in its second round."""
    few = TrialRun(NoTimes("only 3 steps came after the warm-up"), seconds=15.0)
    machine = Machine({"a": 0.7}, tick=clock, at_once=9, late={AS_IS: few})
    trials, _ = conduct(machine, ["a"])
    assert machine.order[:4] == [AS_IS, AS_IS, "a", AS_IS]
    assert trials.rounds_by_turns == trials.rounds > 0
