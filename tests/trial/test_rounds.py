"""The schedule of a trial and its result, with runs of a program whose savings are known."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.trial.made import Machine, join
from tfdoctor.diagnosis import Difference, TrainingState, Trial, Trials
from tfdoctor.errors import CaptureError
from tfdoctor.trial import rounds, trial
from tfdoctor.trial.running import Runner
from tfdoctor.trial.variants import AS_IS, NotTried, Variant


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass only by the runs."""
    now = [0.0]
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def tick(seconds: float) -> None:
        now[0] += seconds

    return tick


def conduct(
    machine: Machine, names: list[str], minutes: float = 60.0, *, exact: bool = True
) -> tuple[Trials, list[str]]:
    stage = SimpleNamespace(run=machine.run, layer=True)
    plan = trial.Agenda(
        [Variant(name, exact=exact, rules=(name,)) for name in names],
        join,
        minutes,
        [NotTried("late-shrink", "it moves code")],
    )
    trials, kept = trial.conduct(stage_of(stage), plan)
    return trials, [variant.name for variant in kept]


def stage_of(stage: SimpleNamespace) -> Runner:
    made: Runner = stage  # type: ignore[assignment] # only its run and its layer are used
    return made


def row(trials: Trials, name: str) -> Trial:
    return next(one for one in trials.rows if one.name == name)


def test_each_round_begins_and_ends_as_it_is_and_turns_around(
    clock: Callable[[float], None],
) -> None:
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


def test_the_minutes_are_kept_to_within_one_run(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.99, "b": 0.985, "c": 0.98}, seconds=30.0, tick=clock)
    conduct(machine, ["a", "b", "c"], minutes=5)
    assert len(machine.order) * 30 <= 5 * 60 + 30


def test_other_weights_are_never_a_saving(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5, "b": 0.8}, digests={"a": "other"}, tick=clock)
    trials, kept = conduct(machine, ["a", "b"])
    training = row(trials, "a").training
    assert training is not None
    assert training.state is TrainingState.DIFFERENT
    assert kept == ["b"]


def test_a_change_of_the_arithmetic_shows_its_losses(clock: Callable[[float], None]) -> None:
    machine = Machine({"a": 0.5}, digests={"a": "other"}, tick=clock)
    trials, kept = conduct(machine, ["a"], exact=False)
    training = row(trials, "a").training
    assert training is not None
    assert training.state is TrainingState.LOSSES
    assert training.losses[0] == (2.0, 2.1)
    assert training.usual == 0.0
    assert kept == ["a"]


def test_a_program_that_fails_as_it_is_stops_the_trial() -> None:
    with pytest.raises(CaptureError, match="ValueError: x"):
        conduct(Machine({}, errors={AS_IS: "ValueError: x"}), ["a"])


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


def test_what_was_not_tried_says_why(clock: Callable[[float], None]) -> None:
    trials, _ = conduct(Machine({"a": 0.7}, tick=clock), ["a"])
    assert trials.not_tried == (("late-shrink", "it moves code"),)
