"""Changes whose promise is about the whole run are measured by whole runs."""

from tests.trial.kit import *


def variant(name: str, share: float = 0.3, recurs: Recurrence = Recurrence.PER_EPOCH) -> Variant:
    promised = RunSaving(
        ms=18_000.0, share=share, rated_share=share, recurs=recurs, each_ms=1_800.0, times=10, bound=Bound.EXPECTED
    )
    return Variant(name, promised_run=promised, rules=(name,))


def test_what_a_change_saves_of_the_whole_run(clock: Tick) -> None:
    trials, kept = conduct(Program({"boundary": 0.7}, tick=clock), variant("boundary"), variant("nothing", 0.1))
    saved, other = measured(trials, "boundary"), measured(trials, "nothing")
    assert (saved.of_run, saved.low < 0.3 < saved.high) == (True, True)
    assert [saved.difference, other.difference] == [Difference.SAVES, Difference.NONE]
    assert kept == [one.name for one in trials.rows if one.kept] == ["boundary"]
    assert (row(trials, "boundary").run_ms, trials.as_is_run_ms) == pytest.approx((42e3, 60e3), rel=0.02)


def test_rounds_alternate_and_begin_with_the_first_run(clock: Tick) -> None:
    program = Program({}, tick=clock)
    conduct(program, variant("a", 0.5), variant("b", 0.4), minutes=9.5)
    assert program.order[:8] == [AS_IS, "a", "b", AS_IS, AS_IS, "b", "a", AS_IS]
    assert all(plan.steps == NEVER for plan in program.plans)


def test_what_does_not_fit_into_the_time_says_how_much_it_needs(clock: Tick) -> None:
    trials, _ = conduct(Program({"a": 0.5}, tick=clock), variant("a", 0.5), variant("b", 0.4), minutes=6.5)
    assert (bool(row(trials, "a").measured), row(trials, "b").runs) == (True, 0)
    assert "two rounds of whole runs take about" in row(trials, "b").missing
    said = list[str]()
    short, _ = conduct(Program({}, tick=clock), variant("a"), minutes=3.0, say=said.append)
    assert (short.rounds, short.needed_minutes) == pytest.approx((0, 6.0), rel=0.05)
    assert "two rounds of whole runs take about 6 minutes" in row(short, "a").missing
    told, _, advice = said[1].partition("so a result is unlikely: ")
    assert told == "3 minutes allow one more run, and two rounds of whole runs need 5, "
    said.clear()
    conduct(Program({}, tick=clock), variant("a"), minutes=float(advice.split()[1]), say=said.append)
    assert not any("unlikely" in one for one in said)


def test_a_change_that_fails_has_no_figure_and_a_program_that_fails_none_at_all(clock: Tick) -> None:
    fails = "NameError: name 'x' is not defined"
    trials, _ = conduct(Program({}, {"a": fails}, tick=clock), variant("a"))
    assert (row(trials, "a").measured, row(trials, "a").missing) == (None, fails)
    with pytest.raises(CaptureError, match=fails):
        conduct(Program({}, {AS_IS: fails}, tick=clock), variant("a"))


def test_a_promise_about_each_step_is_measured_by_steps() -> None:
    changes = variant("a", recurs=Recurrence.ONCE), variant("a", recurs=Recurrence.PER_STEP), Variant("patch.diff")
    assert [trial.is_about_run(one) for one in changes] == [True, False, False]


def test_the_promise_is_of_the_run_that_the_trial_makes() -> None:
    """A recording that ended after the traced steps, of a program of many epochs."""
    told = sure(variant("a", share=0.5).promised_run)
    result = replace(finding("a"), run=replace(told, extrapolated_share=0.02))
    assert proposals.of_whole_run(result) == replace(told, extrapolated_share=0.02, share=0.02)
    assert proposals.of_whole_run(replace(result, run=told)) == told


def test_both_kinds_of_trials_are_one_report(clock: Tick) -> None:
    machine = Machine({"prefetch": 0.7}, tick=clock)
    both, kept = conduct(machine, variant("a"), Variant("prefetch"))
    rows = [(one.name, bool(one.step_ms), bool(one.run_ms)) for one in both.rows]
    assert rows == [("prefetch", True, False), ("a", False, True)]
    assert (both.as_is_ms, both.as_is_run_ms) == pytest.approx((10.0, 15e3), rel=0.05)
    assert (both.runs, kept) == (len(machine.order), ["prefetch"])
