"""What a comparison says of two runs and of their phases, and what can be compared."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases, each
from tests.compare.made import MACHINE, SUBJECT, finding, report, series, with_outcome, with_work
from tests.report import diagnoses
from tests.report.diagnoses import saving as run_saving
from tfdoctor.compare.compare import compare
from tfdoctor.compare.differences import carried, run_change
from tfdoctor.compare.reports import load
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import (
    WIDEST,
    ChangeOfStep,
    Direction,
    FindingState,
    PartChange,
    RunComparison,
    StepFigure,
    Undecided,
)
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Takes
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report import comparison as words
from tfdoctor.report.formats.json import contract
from tfdoctor.stored.files import of_text
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Errored, NotApplicable, Outcome, Recurrence


def compared(before: Diagnosis, after: Diagnosis, most: float | None = None) -> RunComparison:
    return compare([before], [after], most_regression=most)


def stepped(before: Diagnosis, after: Diagnosis) -> ChangeOfStep:
    step = compared(before, after).step
    assert step
    return step


def gated(before: Diagnosis, after: Diagnosis, most: float) -> tuple[bool, bool]:
    """Return whether a gate fails, and whether it is unclear."""
    gate = compared(before, after, most).gate
    assert gate
    return gate.failed, gate.unclear


def states(before: Diagnosis, after: Diagnosis) -> list[tuple[str, FindingState]]:
    return [(change.rule, change.state) for change in compared(before, after).findings]


def changed(before: Diagnosis, after: Diagnosis) -> dict[str, bool | None]:
    return {part.part: part.changed for part in compared(before, after).parts}


def plain(seed: int = 0, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60, **more: Any) -> Diagnosis:
    """A report of a made-up run; `more` differs in its conditions."""
    return report(series(seed, jitter, step_ms=step_ms, steps=steps), conditions=replace(MACHINE, **more))


def of(*results: Result, seed: int = 0) -> Diagnosis:
    return report(series(seed), results=results)


def untraced(made: Diagnosis, untraced_ms: float) -> Diagnosis:
    """A report that leaves the profiler's cost out."""
    parts = {"device": untraced_ms}
    return replace(made, steps=replace(made.steps, untraced_ms=untraced_ms, untraced_breakdown_ms=parts))


def test_a_faster_run_is_called_faster_with_its_parts() -> None:
    before = report(series(0), {"input": 0.6, "device": 0.4})
    after = report(series(1, step_ms=8.0), {"device": 1.0})
    step = stepped(before, after)
    assert step.direction is Direction.FASTER
    assert step.change == pytest.approx(-0.6, abs=0.02)
    assert step.low < step.change < step.high < 0
    assert changed(before, after) == {"input": True, "device": False}


def checkpoints(seed: int, every: int, cost_ms: float, first: int = 0) -> Diagnosis:
    times = np.array(series(seed))
    times[first::every] += cost_ms
    return report(list(times))


def loaded(times: list[float], run: float, between_ms: float) -> Diagnosis:
    """Return a report of steps that mostly wait between the calls, while other programs use all cores."""
    busy = replace(MACHINE, cores_run=run, cores_other=2.0 - run)
    share = between_ms / float(np.median(times))
    return report(times, {"host": 1 - share, "between": share}, conditions=busy)


def with_burst() -> Diagnosis:
    times = np.array(series(0, 0.03, step_ms=5.2, steps=40))
    times[12:19] *= 3.0
    return loaded(list(times), 0.15, 2.3)


def with_waits(device_ms: float) -> Diagnosis:
    """Return a report of even work on the device, and of two bursts of input waits."""
    wait = np.zeros(60)
    wait[5:13] = wait[40:49] = 80.0
    made = report([device_ms + float(time) for time in wait])
    return replace(made, steps=replace(made.steps, breakdown_ms={"device": device_ms, "input": 1.0}))


AT_WORK = loaded(series(1, 0.03, step_ms=23.3, steps=40), 0.1, 20.0)
Gates = dict[float, tuple[bool, bool]]  # By the most that is allowed: whether it fails, and is unclear
BUSY = report([2 * time for time in series(1)], conditions=replace(MACHINE, cores_run=0.5, cores_other=1.7))


@cases(
    (plain(), plain(), Direction.NONE, None, {0.001: (False, True)}),  # compared with itself
    # The gate fails on the lower end of the interval, and says where the steps cannot decide:
    (plain(), plain(1, step_ms=22.0), Direction.SLOWER, None, {0.099: (False, True), 0.05: (True, False)}),
    (plain(0, 0.03), plain(1, 0.03), Direction.NONE, None, {0.005: (False, True)}),
    # As in a run of the tests: 5.2 → 23.3 ms, and the other worker took the cores for a while.
    (with_burst(), AT_WORK, Direction.SLOWER, None, {0.1: (True, False)}),
    (plain(0, 0.8), plain(1, 0.8), Direction.UNKNOWN, Undecided.WIDE, {0.05: (False, True)}),
    # A checkpoint after every fifth step, and long steps that are not certain:
    (plain(2), checkpoints(3, 5, 40.0), Direction.SLOWER, None, {0.05: (True, False)}),
    (plain(), checkpoints(1, 5, 40.0), Direction.UNKNOWN, Undecided.LONG_STEPS, {0.05: (False, True)}),
    (plain(), BUSY, Direction.UNKNOWN, Undecided.CONDITIONS, {}),
    # The device is a quarter faster in every step, and a burst of input waits hides it in the whole.
    (with_waits(106.0), with_waits(77.1), Direction.UNKNOWN, Undecided.WIDE, {}),
)
def test_what_two_runs_show(
    before: Diagnosis, after: Diagnosis, direction: Direction, doubt: Undecided | None, gate: Gates
) -> None:
    step = stepped(before, after)
    assert (step.direction, step.doubt) == (direction, doubt)
    assert {most: gated(before, after, most) for most in gate} == gate


def test_load_is_named_where_it_makes_the_change_unknown() -> None:
    assert "other programs" in words.headline(compared(plain(), BUSY))


def test_all_steps_are_compared_where_some_take_long() -> None:
    step = stepped(plain(2), checkpoints(3, 5, 40.0))
    assert step.figure is StepFigure.STRETCHES
    assert step.change == pytest.approx(0.4, abs=0.05)


def test_a_side_states_its_step_without_tracing_where_that_is_clearly_shorter() -> None:
    traced = [plain(seed) for seed in range(3)]
    result = compare([plain(seed, untraced_ms=15.0 + seed) for seed in range(3)], traced)
    assert result.before.untraced_ms == pytest.approx(16.0, abs=0.1)
    assert result.after.untraced_ms is None
    alike = plain(untraced_ms=19.5)
    assert compared(alike, alike).before.untraced_ms is None


@settings(max_examples=20)
@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5), st.integers(0, 30))
def test_a_gate_that_allows_more_never_fails_where_a_stricter_one_passes(
    one: float, other: float, seed: int
) -> None:
    before, after = plain(seed), plain(seed + 1, step_ms=23.0)
    strict, lax = (gated(before, after, most)[0] for most in sorted((one, other)))
    assert strict or not lax


def test_steps_that_are_missing_or_few_show_nothing() -> None:
    assert compared(plain(), report([])).missing == "the step after the change is unknown: no steps"
    few = compared(plain(steps=5), plain())
    assert few.missing.startswith("the run before the change has five traced steps")
    assert few.step is None


def test_load_of_other_programs_and_lower_clocks_widen_the_side_that_they_slow() -> None:
    quiet, alike, busy = (plain(n, cores_run=1.2, cores_other=used) for n, used in ((0, 0.0), (1, 0.0), (1, 0.5)))
    alone, loaded = stepped(quiet, alike), stepped(quiet, busy)
    assert loaded.low == pytest.approx((1 + alone.low) * 0.75 - 1)
    assert loaded.high == pytest.approx(alone.high)
    told = ("Other programs used 25 % of the cores while the steps after the change were traced.",)
    assert compared(quiet, busy).wider == told
    spare = [plain(seed, cores_usable=16.0, cores_run=2.0, cores_other=2.0) for seed in (0, 1)]
    assert compared(spare[0], spare[1]).wider == ()
    before, after = plain(gpu_mhz=1980.0), plain(1, step_ms=26.4, gpu_mhz=1500.0)
    assert stepped(before, after).direction is Direction.UNKNOWN
    assert compared(before, after).wider == ("The clock of the GPUs was 32 % lower after the change.",)


@cases(
    (report(series(1), subject=replace(SUBJECT, hosts=("other",))), ["host"]),
    (report(series(1), subject=replace(SUBJECT, command=("python", "x.py"))), ["command"]),
    (report(series(1), subject=replace(SUBJECT, framework={"tensorflow": "2.18"})), ["versions"]),
    (plain(1, batch_size=64), ["batch size"]),
    (plain(1, cpu_model="Xeon"), ["CPU"]),
    (plain(1, batch_size=None, cpu_model=""), []),  # unknown
)
def test_runs_that_are_not_alike_say_how(after: Diagnosis, what: list[str]) -> None:
    assert [mismatch.what for mismatch in compared(plain(), after).mismatches] == what


def test_findings_are_matched_by_rule_and_file() -> None:
    before = [finding(name, "a.py", 3.0) for name in ("gone", "moved", "worse", "elsewhere")]
    after = [finding("moved", "a.py", 3.1, line=90), finding("worse", "a.py", 9.0), with_outcome(before[0])]
    before.append(finding("better", "a.py", 9.0))
    after += [finding("better", "a.py", 3.0), finding("elsewhere", "b.py", 3.0)]
    assert states(of(*before), of(*after, seed=1)) == [
        ("elsewhere", FindingState.NEW),
        ("worse", FindingState.WORSE),
        ("moved", FindingState.SAME),
        ("better", FindingState.BETTER),
        ("gone", FindingState.GONE),
        ("elsewhere", FindingState.GONE),
    ]


@each(
    NotApplicable(reason="no steps"),
    Errored(error="KeyError", traceback=""),
    None,
    ids=["not-applicable", "errored", "unknown"],
)
def test_what_the_other_run_did_not_check_is_neither_new_nor_gone(outcome: Outcome | None) -> None:
    one = finding("input-bound", "a.py", 3.0)
    found, unchecked = of(one), of(*[with_outcome(one, outcome)] if outcome else [], seed=1)
    assert states(found, unchecked) == [("input-bound", FindingState.UNCHECKED_AFTER)]
    assert states(unchecked, found) == [("input-bound", FindingState.UNCHECKED_BEFORE)]


@cases((False,), (True,))
def test_a_symptom_is_shown_by_its_cause_unless_it_stands_alone_in_a_run(*, alone: bool) -> None:
    cause, symptom = finding("python-input", "a.py", 3.0), finding("input-bound", "a.py", 4.0)
    ceiling = Relation(Relationship.CEILING, "input-bound", ("python-input",), "input")
    both = replace(of(cause, symptom), order=Order(relations=(ceiling,)))
    after = of(with_outcome(cause), symptom if alone else with_outcome(symptom), seed=1)
    shown = {change.rule: change.shown_by for change in compared(both, after).findings}
    assert shown == {"python-input": "", "input-bound": "" if alone else "python-input"}


def test_savings_are_of_the_steps_that_are_compared_and_not_compared_with_costs() -> None:
    """One report left the profiler's cost out of step and saving, the other has no untraced steps."""
    traced = finding("input-bound", "train.py", 10.0)
    assert traced.saving
    saves = replace(traced, saving=replace(traced.saving, ms_per_step=5.0))
    (change,) = compared(untraced(of(saves), 10.0), of(traced)).findings
    assert change.state is FindingState.SAME
    assert (change.before_ms, change.after_ms) == pytest.approx((10.0, 10.0), rel=0.01)
    takes = replace(traced, saving=None, takes=Takes(9.0, 0.45))
    (change,) = compared(of(traced), of(takes, seed=1)).findings
    assert (change.state, change.before_kind, change.after_kind) == (FindingState.SAME, "saving", "cost")


def test_what_moved_most_comes_first_and_noise_is_left_out() -> None:
    before = with_work(plain(), {"MatMul": 9.0, "Mul": 3.0, "Add": 0.1}, {"Map": 4.0})
    after = with_work(plain(1), {"MatMul": 4.0, "Mul": 3.05, "Add": 0.2}, {"Map": 1.0})
    moved = [(mover.kind, mover.name) for mover in compared(before, after).movers]
    assert moved == [("operation", "MatMul (dense)"), ("stage", "Map")]


def test_shares_are_compared_where_times_cannot_be() -> None:
    before = report(series(0), {"input": 0.5, "device": 0.5})
    after = report(series(1, step_ms=200.0), {"input": 0.1, "device": 0.9})
    result = compare([before], [after], in_ms=False)
    assert result.step is None
    assert {part.part: round(part.after, 3) for part in result.parts} == {"input": 0.1, "device": 0.9}


def test_the_run_in_the_middle_stands_for_its_side() -> None:
    runs = [plain(seed, step_ms=ms) for seed, ms in enumerate((30.0, 20.0, 25.0))]
    runs = [replace(one, subject=replace(one.subject, title=str(at))) for at, one in enumerate(runs)]
    side = compare(runs, runs).before
    assert (side.recordings, side.steps, side.title) == (3, 180, "2")
    assert sum(side.parts_ms.values()) == pytest.approx(side.step_ms)


@cases(
    # One run was slowed by half as it was traced, the other a little less: each report decides alone.
    (untraced(plain(), 12.0), plain(1), 20.0),
    # Tracing made one run 10 % slower, whose report leaves that out, and the other hardly.
    (untraced(plain(), 18.0), plain(1, step_ms=18.0, untraced_ms=17.9), 18.0),
    (untraced(plain(), 10.0), untraced(plain(), 10.0), 10.0),  # both reports leave it out
)
def test_a_step_with_the_profilers_cost_is_not_compared_with_one_without(
    before: Diagnosis, after: Diagnosis, ms: float
) -> None:
    result = compared(before, after)
    assert (result.before.step_ms, result.after.step_ms) == pytest.approx((ms, ms), rel=0.02)
    assert result.parts[0].before == pytest.approx(ms, rel=0.02)
    assert stepped(before, after).direction is Direction.NONE


def test_what_became_slower_or_faster_by_as_much_is_listed_alike() -> None:
    """Of steps that can show 100 %, an operation of half the time is as certain as one of twice the time."""
    less, more = (with_work(plain(0, 0.4), {"MatMul": ms}, {}) for ms in (2.0, 9.0))
    assert 0.5 < stepped(less, more).least < 3.0
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
    first, last = (np.array(series(at, jitter, steps=40)) for at in (seed, seed + 1))
    first[:15] *= burst
    last *= gap * first.max() / last.min()
    less, more = report(list(first)), report(list(last))
    assert stepped(less, more).direction is Direction.SLOWER
    assert stepped(more, less).direction is Direction.FASTER


def test_load_takes_no_more_than_a_run_computes() -> None:
    """A step that sleeps does not wait for the cores, however busy they are."""
    asleep, at_work = (stepped(plain(), loaded(series(1), run, 10.0)).low for run in (0.02, 1.0))
    assert asleep > -0.12
    assert at_work < -0.45


def test_few_long_steps_change_no_verdict_and_are_told() -> None:
    result = compared(plain(), checkpoints(1, 60, 600.0, first=20))
    assert result.step
    assert (result.step.direction, result.step.figure) == (Direction.NONE, StepFigure.TYPICAL)
    assert result.long_steps
    assert result.after.mean_ms == pytest.approx(30.0, rel=0.05)
    assert not compared(plain(), plain(1)).long_steps


def test_a_renamed_script_has_the_findings_it_had() -> None:
    def of(script: str, seed: int, *results: Result) -> Diagnosis:
        subject = replace(SUBJECT, command=("python", script))
        return report(series(seed), results=results, subject=subject)

    before = of("runs/train.py", 0, finding("slow", "runs/train.py", 3.0), finding("a", "x.py", 3.0))
    after = of("train2.py", 1, finding("slow", "train2.py", 3.0), finding("a", "y.py", 3.0))
    expected = [("a", FindingState.NEW), ("slow", FindingState.SAME), ("a", FindingState.GONE)]
    assert states(before, after) == expected


@cases(("aa", "aa", True), ("aa", "bb", False), ("", "", False))
def test_a_line_in_a_renamed_module_is_the_same_by_its_text(
    before_text: str, after_text: str, *, same: bool
) -> None:
    """A regression: what a helper module does was new and gone where only the module's name changed."""
    before = of(finding("a", "helpers.py", 3.0, line=7))
    after = of(finding("a", "lib/data.py", 3.0, line=9), seed=1)
    if before_text:
        before = replace(before, lines={"helpers.py:7": before_text})
        after = replace(after, lines={"lib/data.py:9": after_text})
    expected = [FindingState.SAME] if same else [FindingState.NEW, FindingState.GONE]
    assert [state for _, state in states(before, after)] == expected


def test_the_change_of_all_steps_is_told_in_their_milliseconds() -> None:
    """Checkpoints of 40 ms after every fifth step are gone: 8 ms of the mean step, and none of the typical one."""
    result = compared(checkpoints(3, 5, 40.0), plain(2))
    assert result.step
    assert result.step.figure is StepFigure.STRETCHES
    assert result.step.before_ms - result.step.after_ms == pytest.approx(8.0, abs=0.7)
    told = re.match(r"([\d.]+) ms faster per step", words.headline(result))
    assert told
    assert float(told[1]) == pytest.approx(8.0, abs=0.7)
    assert any("The mean of all traced steps is" in note for note in words.notes(result))


@cases((1.0, 9.0, False), (1.0, 5.0, True), (0.0, 7.5, True), ids=["as much", "not", "less"])
def test_work_that_moves_to_another_part_is_no_change_of_the_step(
    wait: float, device: float, *, carries: bool
) -> None:
    parts = (
        PartChange(part="input", before=5.0, after=wait, changed=True),
        PartChange(part="device", before=5.0, after=device, changed=device != 5.0),
    )
    assert bool(carried(parts)) is carries


def test_a_step_that_clearly_changed_has_a_part_that_did() -> None:
    """Each step before is longer than any after, however much the steps before differ among themselves."""
    before = report([60.0, 150.0] * 8, {"input": 0.8, "device": 0.2})
    after = report([19.0, 20.0] * 8, {"input": 0.05, "device": 0.95})
    assert stepped(before, after).direction is Direction.FASTER
    assert changed(before, after)["input"]


def test_too_few_steady_steps_say_nothing_of_the_parts() -> None:
    steps = plain().steps
    rows = tuple(replace(row, steady=row.number < 3) for row in steps.rows)
    few = replace(plain(), steps=replace(steps, rows=rows))
    assert set(changed(few, plain(1, step_ms=8.0)).values()) == {None}


# The phases of two whole runs beside each other


def whole(times: dict[Phase, float], **more: Any) -> Diagnosis:
    """A report of a run of ten epochs, known whole."""
    rows = tuple(PhaseRow(phase=phase, ms=time) for phase, time in times.items())
    account = RunAccount(total_ms=sum(times.values()), rows=rows, epochs=10, steps=60)
    return replace(plain(), run=replace(account, **more))


times = st.dictionaries(st.sampled_from(Phase), st.floats(0.0, 1e8))


@given(times, times)
def test_phases_sum_to_the_runs_without_our_own_work(before: dict[Phase, float], after: dict[Phase, float]) -> None:
    change = run_change(whole(before), whole(after))
    assert change
    assert sum(one.before_ms for one in change.phases) == pytest.approx(change.before_ms)
    assert sum(one.after_ms for one in change.phases) == pytest.approx(change.after_ms)
    shown = [one.phase for one in change.phases]
    assert shown == [one for one in Phase if one in {*before, *after} - {Phase.PROFILER}]


def test_runs_are_compared_where_both_are_known_whole_and_told_to_have_ended_early() -> None:
    known, window, early = (
        whole({Phase.STEPS: 1_000.0}, **one) for one in ({}, {"whole": False}, {"ended_early": True})
    )
    assert run_change(known, plain()) is None
    assert run_change(window, known) is None
    assert compare([known], [known], in_ms=False).run is None
    told = [run_change(*pair) for pair in ((known, known), (known, early), (early, known))]
    assert [one and one.ended_early for one in told] == [False, True, True]


def test_phases_and_the_whole_run_are_a_table_with_differences() -> None:
    before, after = (whole({Phase.PREPARING: ms, Phase.STEPS: 60_000.0}) for ms in (21_400.0, 1_400.0))
    comparison = compared(before, after)
    (title, grid), *_ = words.tables(comparison).items()
    assert title == "Phases of the run"
    assert grid.rows[0] == ("whole run", "81.4 s", "61.4 s", "20 s")
    assert grid.rows[1] == ("preparing data", "21.4 s", "1.4 s", "20 s")
    assert any("took 81.4 s before and 61.4 s after" in note for note in words.notes(comparison))
    longer = compared(before, whole({Phase.STEPS: 2.0}, epochs=20))
    assert any("have 10 and 20 epochs" in note for note in words.notes(longer))


def test_a_report_is_read_with_its_run_and_phases_of_a_later_version_are_unnamed() -> None:
    made = replace(diagnoses.full(), run=whole({Phase.IMPORTS: 6_000.0, Phase.STEPS: 60_000.0}).run)
    content = contract(made)
    assert of_text(json.dumps(content), PLACE).run == made.run
    content["run"]["phases"][0]["phase"] = "dreaming"
    later = of_text(json.dumps(content), PLACE)
    change = run_change(later, later)
    assert change
    assert Phase.UNNAMED in [one.phase for one in change.phases]


def of_run(time: float, share: float) -> Result:
    saving = replace(run_saving(time / 1000, Recurrence.ONCE), share=share, rated_share=share)
    return replace(finding("slow-prediction", "embed.py", 0.0), saving=None, run=saving)


@cases((0.7, FindingState.SAME), (0.5, FindingState.BETTER), (0.9, FindingState.WORSE))
def test_a_finding_about_the_run_changes_with_its_share(share: float, state: FindingState) -> None:
    found = compared(of(of_run(70_000.0, 0.69)), of(of_run(share * 1e5, share)))
    (row,) = words.tables(found)[words.FINDINGS].rows
    assert found.findings[0].state is state
    assert row[3] == "saves 70 s of the run"


# What can be compared, and how anything else is refused


PLACE = Path("report.json")
REPORT = contract(report([]))
STEPS = contract(report([1.0]))["steps"]
ROW = STEPS["rows"][0]


def with_steps(**changes: Any) -> dict[str, Any]:
    return {"steps": STEPS | changes}


@cases(
    ("<!DOCTYPE html><html></html>", "is an HTML report: name the report.json"),
    ("", "is not JSON"),
    ("[1, 2", "is not JSON"),
    ("[" * 100_000, "is not JSON"),
    ("[]", "is not a report of tfdoctor"),
    ('{"schema": 1}', "is not a report of tfdoctor"),
    ({"schema": True}, "is not a report of tfdoctor"),
    ({"schema": 2}, "has schema 2, and this tfdoctor reads schema 1"),
    ({"subject": 3}, "(subject: expected an object, not 3)"),
    ({"results": None}, "(results: expected a list, not null)"),
    ({"operations_omitted": -1}, "expected a whole number ≥ 0, not -1"),
    (with_steps(step_ms=-1), "is damaged (steps.step_ms: expected a number > 0, not -1)"),
    (with_steps(step_ms=1e300), "(steps.step_ms: expected a number ≤ 1e+15, not a larger one)"),
    (with_steps(step_ms=float("nan")), "is not JSON"),
    (with_steps(rows=[ROW | {"total_ms": 0}]), "(steps.rows[0].total_ms: expected a number > 0"),
    ({"operations": [{"operation": 1}]}, "(operations[0].layer: it is missing)"),
)
def test_what_is_no_report_is_refused_in_one_sentence(given: str | dict[str, Any], why: str) -> None:
    text = given if isinstance(given, str) else json.dumps(REPORT | given)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        of_text(text, PLACE)
    assert str(caught.value).count(". ") == 0


def test_a_report_without_newer_fields_is_read() -> None:
    first = ("schema", "tfdoctor", "subject", "steps", "trust", "results", "breakdown_ms")
    read = of_text(json.dumps({name: REPORT[name] for name in first}), PLACE)
    assert read.conditions.cpu_model == ""
    assert read.run is None


def test_a_report_is_read_without_a_diagnosis_and_refused_where_it_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    assert load(path, lambda *_: pytest.fail("no diagnosis is needed"), ()).subject.title == "train.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load(path, lambda *_: pytest.fail("not a recording"), ())
