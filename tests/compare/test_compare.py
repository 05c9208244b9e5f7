"""What a comparison says of two runs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare.made import MACHINE, SUBJECT, cured, finding, report, series, with_outcome, with_work
from tfdoctor.compare.compare import compare
from tfdoctor.compare.differences import carried
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import (
    WIDEST,
    Direction,
    FindingState,
    PartChange,
    RunComparison,
    StepFigure,
    Undecided,
)
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Takes
from tfdoctor.report import comparison as words
from tfdoctor.terms.verdict import Errored, NotApplicable, Outcome


def compared(before: Diagnosis, after: Diagnosis, most: float | None = None) -> RunComparison:
    return compare([before], [after], most_regression=most)


def test_a_faster_run_is_called_faster_with_its_parts() -> None:
    before = report(series(0), {"input": 0.6, "device": 0.4})
    after = report(series(1, step_ms=8.0), {"device": 1.0})
    result = compared(before, after)
    assert result.step is not None
    assert result.step.direction is Direction.FASTER
    assert result.step.change == pytest.approx(-0.6, abs=0.02)
    assert result.step.low < result.step.change < result.step.high < 0
    changed = {part.part: part.changed for part in result.parts}
    assert changed == {"input": True, "device": False}


def test_a_run_compared_with_itself_has_no_difference() -> None:
    one = report(series(0))
    result = compared(one, one, most=0.001)
    assert result.step is not None
    assert result.step.direction is Direction.NONE
    assert result.gate is not None
    assert not result.gate.failed


def test_a_side_states_its_step_without_tracing_where_that_is_clearly_shorter() -> None:
    traced = [report(series(seed)) for seed in range(3)]
    untraced = [
        replace(one, conditions=replace(one.conditions, untraced_ms=ms))
        for one, ms in zip(traced, (15.0, 16.0, 17.0), strict=True)
    ]
    result = compare(untraced, traced)
    assert result.before.untraced_ms == pytest.approx(16.0, abs=0.1)
    assert result.after.untraced_ms is None
    alike = replace(traced[0], conditions=replace(traced[0].conditions, untraced_ms=19.5))
    assert compared(alike, alike).before.untraced_ms is None


def test_the_gate_fails_on_the_lower_end_of_the_interval() -> None:
    before, after = report(series(0)), report(series(1, step_ms=22.0))
    passes, fails = compared(before, after, most=0.099), compared(before, after, most=0.05)
    assert passes.gate is not None
    assert fails.gate is not None
    assert (passes.gate.failed, fails.gate.failed) == (False, True)


@settings(max_examples=20)
@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5), st.integers(0, 30))
def test_a_gate_that_allows_more_never_fails_where_a_stricter_one_passes(
    one: float, other: float, seed: int
) -> None:
    before, after = report(series(seed)), report(series(seed + 1, step_ms=23.0))
    strict, lax = (compared(before, after, most=most).gate for most in sorted((one, other)))
    assert strict is not None
    assert lax is not None
    assert strict.failed or not lax.failed


def test_steps_that_are_missing_or_few_show_nothing() -> None:
    good, none, few = report(series(0)), report([]), report(series(0, steps=5))
    assert compared(good, none).missing == "the step after the change is unknown: no steps"
    assert compared(few, good).missing.startswith("the run before the change has five traced steps")
    assert compared(few, good).step is None


def test_load_of_other_programs_widens_the_side_that_it_slows() -> None:
    busy = replace(MACHINE, cores_run=1.2, cores_other=0.5)
    quiet = replace(MACHINE, cores_run=1.2, cores_other=0.0)
    before = report(series(0), conditions=quiet)
    alone = compared(before, report(series(1), conditions=quiet)).step
    loaded = compared(before, report(series(1), conditions=busy))
    assert alone is not None
    assert loaded.step is not None
    assert loaded.step.low == pytest.approx((1 + alone.low) * 0.75 - 1)
    assert loaded.step.high == pytest.approx(alone.high)
    assert loaded.wider == ("Other programs used 25 % of the cores while the steps after the change were traced.",)


def test_programs_on_spare_cores_widen_nothing() -> None:
    spare = replace(MACHINE, cores_usable=16.0, cores_run=2.0, cores_other=2.0)
    before, after = report(series(0), conditions=spare), report(series(1), conditions=spare)
    assert compared(before, after).wider == ()


def test_a_lower_clock_widens_the_interval() -> None:
    fast, slow = replace(MACHINE, gpu_mhz=1980.0), replace(MACHINE, gpu_mhz=1500.0)
    before, after = (report(series(0), conditions=fast), report(series(1, step_ms=26.4), conditions=slow))
    result = compared(before, after)
    assert result.step is not None
    assert result.step.direction is Direction.UNKNOWN
    assert result.wider == ("The clock of the GPUs was 32 % lower after the change.",)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (report(series(1), subject=replace(SUBJECT, hosts=("other",))), "host"),
        (report(series(1), subject=replace(SUBJECT, command=("python", "x.py"))), "command"),
        (report(series(1), subject=replace(SUBJECT, framework={"tensorflow": "2.18"})), "versions"),
        (report(series(1), conditions=replace(MACHINE, batch_size=64)), "batch size"),
        (report(series(1), conditions=replace(MACHINE, cpu_model="Xeon")), "CPU"),
    ],
)
def test_runs_that_are_not_alike_say_how(after: Diagnosis, what: str) -> None:
    assert [mismatch.what for mismatch in compared(report(series(0)), after).mismatches] == [what]


def test_what_is_unknown_of_one_run_is_no_mismatch() -> None:
    unknown = report(series(1), conditions=replace(MACHINE, batch_size=None, cpu_model=""))
    assert compared(report(series(0)), unknown).mismatches == ()


def test_findings_are_matched_by_rule_and_file() -> None:
    before = report(
        series(0),
        results=[
            finding("gone", "a.py", 3.0),
            finding("moved", "a.py", 3.0, line=3),
            finding("worse", "a.py", 3.0),
            finding("better", "a.py", 9.0),
            finding("elsewhere", "a.py", 3.0),
        ],
    )
    after = report(
        series(1),
        results=[
            finding("moved", "a.py", 3.1, line=90),
            finding("worse", "a.py", 9.0),
            finding("better", "a.py", 3.0),
            finding("elsewhere", "b.py", 3.0),
            cured(finding("gone", "a.py", 3.0)),
        ],
    )
    found = [(change.rule, change.state) for change in compared(before, after).findings]
    assert found == [
        ("elsewhere", FindingState.NEW),
        ("worse", FindingState.WORSE),
        ("moved", FindingState.SAME),
        ("better", FindingState.BETTER),
        ("gone", FindingState.GONE),
        ("elsewhere", FindingState.GONE),
    ]


@pytest.mark.parametrize(
    "outcome",
    [NotApplicable(reason="no steps"), Errored(error="KeyError", traceback=""), None],
    ids=["not-applicable", "errored", "unknown"],
)
def test_what_the_other_run_did_not_check_is_neither_new_nor_gone(outcome: Outcome | None) -> None:
    found = report(series(0), results=[finding("input-bound", "a.py", 3.0)])
    other = finding("input-bound", "a.py", 3.0)
    results = [with_outcome(other, outcome)] if outcome else []
    unchecked = report(series(1), results=results)
    (gone,) = compared(found, unchecked).findings
    (new,) = compared(unchecked, found).findings
    assert (gone.state, new.state) == (FindingState.UNCHECKED_AFTER, FindingState.UNCHECKED_BEFORE)


def test_a_symptom_is_shown_by_its_cause_unless_it_stands_alone_in_a_run() -> None:
    cause, symptom = finding("python-input", "a.py", 3.0), finding("input-bound", "a.py", 4.0)
    ceiling = Relation(Relationship.CEILING, "input-bound", ("python-input",), "input")
    both = replace(report(series(0), results=[cause, symptom]), order=Order(relations=(ceiling,)))
    neither, alone = (
        report(series(1), results=[cured(cause), cured(symptom)]),
        report(series(1), results=[cured(cause), symptom]),
    )
    shown = [
        {change.rule: change.shown_by for change in compared(both, after).findings} for after in (neither, alone)
    ]
    assert shown[0] == {"python-input": "", "input-bound": "python-input"}
    assert shown[1] == {"python-input": "", "input-bound": ""}


def test_a_saving_is_not_compared_with_a_cost() -> None:
    saves = finding("hot-operation", "a.py", 3.0)
    takes = replace(saves, saving=None, takes=Takes(9.0, 0.45))
    (change,) = compared(report(series(0), results=[saves]), report(series(1), results=[takes])).findings
    assert change.state is FindingState.SAME
    assert (change.before_kind, change.after_kind) == ("saving", "cost")


def test_what_moved_most_comes_first_and_noise_is_left_out() -> None:
    before = with_work(report(series(0)), {"MatMul": 9.0, "Mul": 3.0, "Add": 0.1}, {"Map": 4.0})
    after = with_work(report(series(1)), {"MatMul": 4.0, "Mul": 3.05, "Add": 0.2}, {"Map": 1.0})
    moved = [(mover.kind, mover.name) for mover in compared(before, after).movers]
    assert moved == [("operation", "MatMul (dense)"), ("stage", "Map")]


def test_shares_are_compared_where_times_cannot_be() -> None:
    before = report(series(0), {"input": 0.5, "device": 0.5})
    after = report(series(1, step_ms=200.0), {"input": 0.1, "device": 0.9})
    result = compare([before], [after], in_ms=False)
    assert result.step is None
    assert {part.part: round(part.after, 3) for part in result.parts} == {"input": 0.1, "device": 0.9}


def test_the_run_in_the_middle_stands_for_its_side() -> None:
    runs = [report(series(seed, step_ms=ms)) for seed, ms in enumerate((30.0, 20.0, 25.0))]
    runs = [replace(one, subject=replace(one.subject, title=str(at))) for at, one in enumerate(runs)]
    side = compare(runs, runs).before
    assert side.recordings == 3
    assert side.steps == 180
    assert sum(side.parts_ms.values()) == pytest.approx(side.step_ms)
    assert side.title == "2"


def test_a_step_with_the_profilers_cost_is_not_compared_with_one_without() -> None:
    """One run was slowed by half as it was traced, the other a little less: each report decides alone."""
    slowed = report(series(0))
    slowed = replace(slowed, steps=replace(slowed.steps, untraced_ms=12.0))
    result = compared(slowed, report(series(1)))
    assert (result.before.step_ms, result.after.step_ms) == pytest.approx((20.0, 20.0), rel=0.02)
    assert result.step is not None
    assert result.step.direction is Direction.NONE


def test_steps_with_no_noticeable_cost_of_the_profiler_are_compared_with_those_without() -> None:
    """Tracing made one run 10 % slower, whose report leaves that out, and the other hardly."""
    slowed, even = report(series(0)), report(series(1, step_ms=18.0))
    slowed = replace(slowed, steps=replace(slowed.steps, untraced_ms=18.0))
    even = replace(even, conditions=replace(even.conditions, untraced_ms=17.9))
    result = compared(slowed, even)
    assert (result.before.step_ms, result.after.step_ms) == pytest.approx((18.0, 18.0), rel=0.02)
    assert result.step is not None
    assert result.step.direction is Direction.NONE


def test_savings_are_of_the_steps_that_are_compared() -> None:
    """One report left the profiler's cost out of step and saving, the other has no untraced steps."""
    of_traced = finding("input-bound", "train.py", 10.0)
    assert of_traced.saving
    of_untraced = replace(of_traced, saving=replace(of_traced.saving, ms_per_step=5.0))
    traced = report(series(0), results=[of_traced])
    untraced = report(series(0), results=[of_untraced])
    untraced = replace(untraced, steps=replace(untraced.steps, untraced_ms=10.0))
    (change,) = compared(untraced, traced).findings
    assert change.state is FindingState.SAME
    assert (change.before_ms, change.after_ms) == pytest.approx((10.0, 10.0), rel=0.01)


def test_a_gate_that_the_steps_cannot_decide_says_so() -> None:
    gate = compared(report(series(0, 0.03)), report(series(1, 0.03)), 0.005).gate
    assert gate is not None
    assert (gate.failed, gate.unclear) == (False, True)


def test_the_profilers_cost_is_left_out_where_the_report_leaves_it_out() -> None:
    traced = report(series(0))
    corrected = replace(
        traced, steps=replace(traced.steps, step_ms=20.0, untraced_ms=10.0, untraced_breakdown_ms={"device": 10.0})
    )
    result = compared(corrected, corrected)
    assert result.before.step_ms == pytest.approx(10.0)
    assert result.parts[0].before == pytest.approx(10.0)


def test_what_became_slower_or_faster_by_as_much_is_listed_alike() -> None:
    """Of steps that can show 100 %, an operation of half the time is as certain as one of twice the time."""
    many = report(series(0, 0.4))
    less, more = (with_work(many, {"MatMul": ms}, {}) for ms in (2.0, 9.0))
    step = compared(less, more).step
    assert step is not None
    assert 0.5 < step.least < 3.0
    for before, after in ((less, more), (more, less)):
        assert [mover.name for mover in compared(before, after).movers] == ["MatMul (dense)"]


# What the verdict, the interval and the parts say must agree


@settings(max_examples=25)
@given(
    st.integers(0, 20),
    st.floats(0.3, 4.0),
    st.floats(0.002, 0.8),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.5, 1.9]),
)
def test_verdict_interval_and_parts_never_contradict(
    seed: int, slower: float, jitter: float, share: float, other: float
) -> None:
    busy = replace(MACHINE, cores_run=0.1, cores_other=other)
    before = report(series(seed, jitter), {"input": share, "device": 1.0 - share})
    parts = {"input": share / slower, "device": 1.0 - share / slower}
    after = report(series(seed + 1, jitter, step_ms=20 * slower), parts, conditions=busy)
    result = compared(before, after)
    step = result.step
    assert step is not None
    assert step.low <= step.change <= step.high
    excludes_zero = step.low > 0 or step.high < 0
    assert (step.direction in (Direction.FASTER, Direction.SLOWER)) == excludes_zero
    assert (step.doubt is not None) == (step.direction is Direction.UNKNOWN)
    if step.direction is Direction.NONE:
        assert step.least <= WIDEST
        changed = sum(part.after - part.before for part in result.parts if part.changed)
        whole = sum(part.after - part.before for part in result.parts)
        assert not changed or changed * whole < changed**2 / 2


@settings(max_examples=25)
@given(st.integers(0, 20), st.floats(1.03, 100.0), st.floats(0.01, 1.5), st.floats(1.0, 20.0))
def test_steps_that_do_not_overlap_are_a_change(seed: int, gap: float, jitter: float, burst: float) -> None:
    first = np.array(series(seed, jitter, steps=40))
    first[:15] *= burst
    last = np.array(series(seed + 1, jitter, steps=40))
    last *= gap * first.max() / last.min()
    there, back = (
        compared(report(list(first)), report(list(last))),
        compared(report(list(last)), report(list(first))),
    )
    assert there.step is not None
    assert back.step is not None
    assert (there.step.direction, back.step.direction) == (Direction.SLOWER, Direction.FASTER)


def loaded(times: list[float], run: float, between_ms: float) -> Diagnosis:
    """Return a report of steps that mostly wait between the calls, while other programs use all cores."""
    busy = replace(MACHINE, cores_run=run, cores_other=2.0 - run)
    share = between_ms / float(np.median(times))
    return report(times, {"host": 1 - share, "between": share}, conditions=busy)


def test_a_step_four_times_as_long_is_slower_on_a_machine_that_others_use() -> None:
    """As in a run of the tests: 5.2 → 23.3 ms, and the other worker took the cores for a while."""
    before = np.array(series(0, 0.03, step_ms=5.2, steps=40))
    before[12:19] *= 3.0
    after = series(1, 0.03, step_ms=23.3, steps=40)
    result = compared(loaded(list(before), 0.15, 2.3), loaded(after, 0.1, 20.0), 0.1)
    assert result.step is not None
    assert result.step.direction is Direction.SLOWER
    assert {part.part: part.changed for part in result.parts}["between"]
    assert result.gate is not None
    assert result.gate.failed


def test_load_takes_no_more_than_a_run_computes() -> None:
    """A step that sleeps does not wait for the cores, however busy they are."""
    asleep, at_work = (compared(report(series(0)), loaded(series(1), run, 10.0)).step for run in (0.02, 1.0))
    assert asleep is not None
    assert at_work is not None
    assert asleep.low > -0.12
    assert at_work.low < -0.45


def test_an_interval_that_is_too_wide_is_no_result() -> None:
    result = compared(report(series(0, 0.8)), report(series(1, 0.8)), 0.05)
    assert result.step is not None
    assert (result.step.direction, result.step.doubt) == (Direction.UNKNOWN, Undecided.WIDE)
    assert result.gate is not None
    assert (result.gate.failed, result.gate.unclear) == (False, True)


def test_a_change_of_a_part_is_one_of_the_step_though_the_step_varies() -> None:
    """The device is a quarter faster in every step, and a burst of input waits hides it in the whole."""
    wait = np.zeros(60)
    wait[5:13] = wait[40:49] = 80.0
    before, after = (
        with_parts([float(time) for time in device_ms + wait], float(device_ms)) for device_ms in (106.0, 77.1)
    )
    result = compared(before, after)
    assert result.step is not None
    assert result.step.direction is not Direction.NONE


def with_parts(times: list[float], device_ms: float) -> Diagnosis:
    made = report(times)
    parts = {"device": device_ms, "input": 1.0}
    return replace(made, steps=replace(made.steps, breakdown_ms=parts))


def checkpoints(seed: int, every: int, cost_ms: float, first: int = 0) -> Diagnosis:
    times = np.array(series(seed))
    times[first::every] += cost_ms
    return report(list(times))


def test_a_checkpoint_after_every_fifth_step_is_a_change_of_the_step() -> None:
    result = compared(report(series(2)), checkpoints(3, 5, 40.0), 0.05)
    assert result.step is not None
    assert result.step.figure is StepFigure.STRETCHES
    assert result.step.direction is Direction.SLOWER
    assert result.step.change == pytest.approx(0.4, abs=0.05)
    assert result.gate is not None
    assert result.gate.failed


def test_long_steps_that_are_not_certain_make_the_change_unknown() -> None:
    result = compared(report(series(0)), checkpoints(1, 5, 40.0), 0.05)
    assert result.step is not None
    assert (result.step.direction, result.step.doubt) == (Direction.UNKNOWN, Undecided.LONG_STEPS)
    assert result.gate is not None
    assert result.gate.unclear


def test_few_long_steps_change_no_verdict_and_are_told() -> None:
    result = compared(report(series(0)), checkpoints(1, 60, 600.0, first=20))
    assert result.step is not None
    assert (result.step.direction, result.step.figure) == (Direction.NONE, StepFigure.TYPICAL)
    assert result.long_steps
    assert result.after.mean_ms == pytest.approx(30.0, rel=0.05)
    assert not compared(report(series(0)), report(series(1))).long_steps


def test_a_renamed_script_has_the_findings_it_had() -> None:
    def of(script: str, seed: int, *results: Result) -> Diagnosis:
        subject = replace(SUBJECT, command=("python", script))
        return report(series(seed), results=results, subject=subject)

    before = of("runs/train.py", 0, finding("slow", "runs/train.py", 3.0), finding("a", "x.py", 3.0))
    after = of("train2.py", 1, finding("slow", "train2.py", 3.0), finding("a", "y.py", 3.0))
    states = [(change.rule, change.state) for change in compared(before, after).findings]
    assert states == [("a", FindingState.NEW), ("slow", FindingState.SAME), ("a", FindingState.GONE)]


@pytest.mark.parametrize(("text", "same"), [("aa", True), ("bb", False)])
def test_a_line_in_a_renamed_module_is_the_same_by_its_text(text: str, *, same: bool) -> None:
    """A regression: what a helper module does was new and gone where only the module's name changed."""
    before = report(series(0), results=[finding("a", "helpers.py", 3.0, line=7)])
    after = report(series(1), results=[finding("a", "lib/data.py", 3.0, line=9)])
    before = replace(before, lines={"helpers.py:7": "aa"})
    after = replace(after, lines={"lib/data.py:9": text})

    states = [change.state for change in compared(before, after).findings]

    assert states == [FindingState.SAME] if same else states == [FindingState.NEW, FindingState.GONE]


def test_lines_of_unknown_text_are_not_the_same() -> None:
    before = report(series(0), results=[finding("a", "helpers.py", 3.0)])
    after = report(series(1), results=[finding("a", "data.py", 3.0)])
    states = [change.state for change in compared(before, after).findings]
    assert states == [FindingState.NEW, FindingState.GONE]


def test_the_change_of_all_steps_is_told_in_their_milliseconds() -> None:
    """Checkpoints of 40 ms after every fifth step are gone: 8 ms of the mean step, and none of the typical one."""
    result = compared(checkpoints(3, 5, 40.0), report(series(2)))
    assert result.step is not None
    assert result.step.figure is StepFigure.STRETCHES
    assert result.step.before_ms - result.step.after_ms == pytest.approx(8.0, abs=0.7)
    told = re.match(r"([\d.]+) ms faster per step", words.headline(result))
    assert told
    assert float(told[1]) == pytest.approx(8.0, abs=0.7)
    assert any("The mean of all traced steps is" in note for note in words.notes(result))


@pytest.mark.parametrize(
    ("device", "carries"), [(9.0, False), (5.0, True), (7.5, True)], ids=["as much", "not", "less"]
)
def test_work_that_moves_to_another_part_is_no_change_of_the_step(device: float, *, carries: bool) -> None:
    parts = (
        PartChange(part="input", before=5.0, after=1.0, changed=True),
        PartChange(part="device", before=5.0, after=device, changed=device != 5.0),
    )
    if device == 7.5:
        parts = (replace(parts[0], after=0.0), parts[1])
    assert bool(carried(parts)) is carries


def test_load_is_named_where_it_makes_the_change_unknown() -> None:
    busy = replace(MACHINE, cores_run=0.5, cores_other=1.7)
    result = compared(report(series(0)), report([2 * t for t in series(1)], conditions=busy))
    assert result.step is not None
    assert result.step.doubt is Undecided.CONDITIONS
    assert "other programs" in words.headline(result)


def test_a_step_that_clearly_changed_has_a_part_that_did() -> None:
    """Each step before is longer than any after, however much the steps before differ among themselves."""
    before = report([60.0, 150.0] * 8, {"input": 0.8, "device": 0.2})
    result = compared(before, report([19.0, 20.0] * 8, {"input": 0.05, "device": 0.95}))
    assert result.step is not None
    assert result.step.direction is Direction.FASTER
    assert {part.part: part.changed for part in result.parts}["input"]


def test_too_few_steady_steps_say_nothing_of_the_parts() -> None:
    before, after = report(series(0)), report(series(1, step_ms=8.0))
    rows = tuple(replace(row, steady=row.number < 3) for row in before.steps.rows)
    before = replace(before, steps=replace(before.steps, rows=rows))
    assert {part.changed for part in compared(before, after).parts} == {None}
