"""The account of the run: its sentences, its bar, its shares, and what changes save of it."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.report import diagnoses
from tests.report.diagnoses import account, spent, told
from tests.report.diagnoses import saving as saves
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving
from tfdoctor.diagnosis.step import StepsSummary
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report import run as bar
from tfdoctor.report import sentences, terminal
from tfdoctor.report.formats import html, json, md, sarif
from tfdoctor.report.page import FEW_STEPS, prospects
from tfdoctor.report.run import GLYPHS, PHASE_COLOURS, PHASE_NOUNS, RunSection, section
from tfdoctor.report.sentences import ALIKE
from tfdoctor.report.words import joined, run_saving
from tfdoctor.terms.kinds import Phase, StepSource
from tfdoctor.terms.run_time import LongStepTime, PhaseLine, PhaseSegment
from tfdoctor.terms.verdict import Bound, Location, Recurrence


def of(run: RunAccount, **changes: Any) -> Diagnosis:
    return replace(diagnoses.full(), run=run, **changes)


def first(run: RunAccount, **changes: Any) -> str:
    return told(of(run, **changes))[0]


def all_told(run: RunAccount, **changes: Any) -> str:
    return " ".join(told(of(run, **changes)))


def shown(run: RunAccount) -> RunSection:
    made = section(run)
    assert made
    return made


def trained() -> tuple[Diagnosis, RunAccount, RunTogether]:
    """The report on a run that trains, its account, and what its changes save together."""
    base = diagnoses.run()
    assert base.run
    assert base.run_together
    return base, base.run, base.run_together


NO_STEPS = StepsSummary(source=StepSource.NONE, missing="nothing repeats")


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({Phase.PREPARING: 59.2, Phase.STEPS: 72.0}, "131 s: 72 s (55 %) are training steps, 59.2 s are not."),
        (
            {Phase.TRACING: 11.3, Phase.STEPS: 1.0},
            "12.3 s: 1 s (8 %) are training steps; 11.3 s (92 %) are tracing and compiling.",
        ),
        (
            {Phase.PREPARING: 23.0, Phase.IMPORTS: 27.0, Phase.STEPS: 20.0},
            "70 s: 20 s (29 %) are training steps; the largest other part is imports, 27 s (39 %).",
        ),
        ({Phase.STEPS: 72.0}, "72 s: 72 s (100 %) are training steps."),
        ({Phase.UNNAMED: 72.0}, "72 s."),
    ],
)
def test_the_first_sentence_says_what_the_run_took_and_what_for(times: dict[Phase, float], said: str) -> None:
    assert first(spent(times)) == f"The run took {said}"


def test_a_run_that_trains_nothing_is_reported_on_and_no_step_is_missed() -> None:
    run = spent({Phase.IMPORTS: 11.0, Phase.PREDICTION: 30.0})
    words = told(of(run, steps=NO_STEPS, results=(), together=None))
    assert words[0] == "The run took 41 s and trained nothing: 30 s (73 %) are prediction."
    assert "No training step" not in " ".join(words)


def test_a_run_is_not_said_to_train_nothing_where_that_may_have_gone_unseen() -> None:
    said = first(replace(spent({Phase.CHILDREN: 11.0}), unseen=True), steps=NO_STEPS)
    assert said == (
        "The run took 11 s, and no training step was seen: 11 s (100 %) are waiting for child processes."
    )


def test_steps_that_the_recorder_cannot_see_are_not_called_nothing() -> None:
    hidden = replace(NO_STEPS, source=StepSource.GRAPH_LOOP)
    said = first(spent({Phase.TRACING: 10.0, Phase.END: 2.0}), steps=hidden)
    assert said == "The run took 12 s: 10 s (83 %) are tracing and compiling."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 4220, "step_median_ms": 16.9}, "Each of 4,220 training steps takes 16.9 ms (median); its"),
        ({"steps": 1}, "The training step takes 39.0 ms; its"),
        # Two steps have no median: it is their mean, which neither may take.
        ({"steps": 2}, "The two training steps take 78.0 ms together; their"),
        ({"steps": 3}, "Each of 3 training steps takes 25.8 ms (median); its"),
        (
            {"steps": 500, "step_loops": 3},
            "Each of 500 training steps of the longest of 3 loops takes 25.8 ms (median); its",
        ),
    ],
)
def test_a_run_without_a_trace_tells_its_steps_and_why_their_parts_are_unknown(
    changes: dict[str, Any], said: str
) -> None:
    run = spent({Phase.STEPS: 72.0}, **({"step_mean_ms": 39.0, "step_median_ms": 25.8} | changes))
    assert f"{said} parts are unknown: nothing repeats." in told(of(run, steps=NO_STEPS))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "The run has no recorded end: it was killed, or is still running."),
        (137, "The run was ended by SIGKILL."),
        (128 + 99, "The run was ended by signal 99."),
        (3, "The run ended abruptly, with exit code 3."),  # by os._exit
    ],
)
def test_how_a_run_ended_that_recorded_no_end_is_known_by_its_exit_code(code: int | None, said: str) -> None:
    ended = of(spent({Phase.STEPS: 72.0}, finished=False))
    words = told(replace(ended, subject=replace(ended.subject, exit_code=code)))
    assert words[0].startswith("72 s of the run were recorded: ")
    assert words[1] == said


@pytest.mark.parametrize(("seconds", "said"), [(9.0, False), (12.0, True)])
def test_much_unnamed_time_is_in_the_verdict(seconds: float, said: bool) -> None:  # noqa: FBT001
    run = spent({Phase.STEPS: 100.0 - seconds, Phase.UNNAMED: seconds})
    assert (f"{seconds:.0f} s ({seconds:.0f} %) of the run are unnamed" in all_told(run)) is said


def test_the_profiler_is_no_work_of_the_script() -> None:
    words = told(of(spent({Phase.STEPS: 4.0, Phase.PROFILER: 6.0, Phase.END: 1.0})))
    assert words[0].endswith("4 s (36 %) are training steps, 7 s are not.")
    assert words[1] == (
        "6 s (55 %) of the run are tfdoctor's own: the profiler, and writing the recording (with --no-trace, less)."
    )


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.96, "The 20 traced steps stand for 96 % of the steps' time."),
        (0.08, "The 20 traced steps are like only 8 % of the steps by time."),
    ],
)
def test_the_traced_steps_say_what_they_stand_for(share: float, said: str) -> None:
    run = spent({Phase.STEPS: 72.0}, window_share=share, window_steps=20)
    assert said in told(of(run))


@pytest.mark.parametrize(
    ("unknown_ms", "cause"), [(13_000.0, "the cause is unknown."), (8000.0, "the cause of 8 s is unknown.")]
)
def test_long_steps_that_take_much_are_in_the_verdict_with_their_unknown_cause(
    unknown_ms: float, cause: str
) -> None:
    long = LongStepTime(count=3, ms=14_000.0, beyond_ms=13_000.0, unknown_ms=unknown_ms)
    run = spent({Phase.STEPS: 100.0}, long_steps=long)
    assert told(of(run))[1] == f"13 s (13 %) are what three long steps take beyond the usual time; {cause}"
    alone = unknown_ms == long.beyond_ms  # of which the time is said once
    assert shown(run).long.endswith(" beyond the usual time. The cause is unknown.") is alone


def test_a_traced_window_is_not_called_the_run() -> None:
    words = told(diagnoses.run_window())
    assert words[0].startswith("Each step takes 52.0 ms")
    assert sentences.trust(diagnoses.run_window())[-1] == (
        "The account of the run covers the traced window of 1.2 s; the rest of the run was not recorded: "
        "a trace contains the traced window only."
    )
    assert "the run from" not in " ".join(words)


def test_changes_save_of_the_run_then_of_a_step() -> None:
    assert " ".join(prospects(diagnoses.run())) == (
        "Three changes would reduce the run from 131 s to 85 s at best (1.55×), and a run of 90 epochs by 41 %. "  # noqa: RUF001 - as it is shown
        "Three changes would reduce a step to about 9 ms (5.8×)."  # noqa: RUF001 - as it is shown
    )


@pytest.mark.parametrize("share", [0.37, 0.79, 0.81])
def test_a_bound_says_which_steps_it_counts_where_the_traced_ones_are_few(share: float) -> None:
    """Trap: most steps are unlike the traced ones, so that more can be saved than "at best"."""
    base, account, together = trained()
    base = replace(base, run=replace(account, window_share=share))
    of_step = tuple(r.rule.name for r in base.results if r.saving and r.saving.ms_per_step > 0)
    of_run = tuple(r.rule.name for r in base.results if r.run and not r.saving)
    time = f"only the {100 * share:.0f} % of the steps' time that is like the traced steps."
    for rules, bound, said in (
        (of_step, Bound.AT_MOST, f", counting {time}"),
        (of_step + of_run, Bound.AT_MOST, f", counting for changes of the typical step {time}"),
        (of_run, Bound.AT_MOST, ""),  # such as of the long steps
        (of_step, Bound.EXPECTED, ""),
    ):
        sentence = prospects(replace(base, run_together=replace(together, rules=rules, bound=bound)))[0]
        assert ("counting" in sentence) is bool(said and share < ALIKE)
        assert sentence.endswith(said) or share >= ALIKE


def test_a_step_that_is_little_of_the_run_promises_nothing() -> None:
    base = diagnoses.run()
    little = spent({Phase.STEPS: 9.0, Phase.PREPARING: 91.0})
    assert "a step to" not in told(replace(base, run=little))[-1]
    unpriced = tuple(replace(result, run=None) for result in base.results)
    alone = replace(base, run=little, run_together=None, results=unpriced)
    assert told(alone)[-1] == ("Six problems found; what the changes save of the run could not be computed.")


def test_slow_steps_are_told_by_the_account() -> None:
    slow = diagnoses.slow_steps()
    words = told(replace(slow, run=spent({Phase.STEPS: 72.0})))
    assert not any("timed steps" in sentence for sentence in words)


def test_too_few_steps_forbid_savings_of_the_step_alone() -> None:
    base = diagnoses.run()
    first, *_, last = prospects(replace(base, steps=replace(base.steps, too_few=True)))
    assert first.startswith("Three changes would reduce the run")
    assert last == FEW_STEPS


def test_of_a_run_without_a_trace_no_traced_steps_are_missed() -> None:
    base = of(spent({Phase.STEPS: 10.0, Phase.IMPORTS: 2.0}))
    steps = replace(base.steps, too_few=True, rows=())
    words = " ".join(told(replace(base, steps=steps)))
    assert "fewer than five steps" not in words


def test_without_a_sum_the_largest_saving_of_the_run_is_named() -> None:
    said, *_ = prospects(replace(diagnoses.run(), run_together=None))
    assert "problems found; the largest saving is at most 19.8 s of the run (15 %)." in said


def test_the_verdict_counts_the_entries_of_the_sum_of_the_run() -> None:
    base, _, together = trained()
    assert [entry.in_run_sum for entry in base.entries][:4] == [True, True, True, False]
    fewer = replace(together, rules=("slow-preparation", "compile-in-loop"))
    short = replace(base, run_together=fewer, order=None)
    assert "Two changes would reduce the run" in prospects(short)[0]
    words = " ".join(terminal.render(short, width=100, color=False).split())
    assert "included in input-bound, float32-matmul and between-steps" in words
    assert json.contract(short)["entries"][1]["in_run_together"] is False


def test_a_run_is_not_said_to_become_longer() -> None:
    """Rounded to two digits, 10.5 s of 10.7 s is 11 s."""
    base, _, together = trained()
    said, *_ = prospects(replace(base, run_together=replace(together, share=0.04), order=None))
    assert said.startswith("Three changes would save at most ")
    assert said.endswith(" of the run (4 %), and 41 % of a run of 90 epochs.")


STEP = Saving(ms_per_step=4.1, share=0.24, bound=Bound.AT_MOST, how="")
ONCE, PER_EPOCH, PER_STEP, PER_CALL = Recurrence
OF_STEPS = saves(17.3, PER_STEP, each=0.0041, times=4220)
PER_CALLS = "26 s of the run (20 %), 2.6 ms in each of 10,000 calls"
RARE = replace(saves(13.0, ONCE), rated_share=0.03)


def words_of(saving: RunSaving | None, step: Saving | None, run: RunAccount | None) -> str | None:
    words = run_saving(saving, step, run)
    return joined(*words) if words else None


@pytest.mark.parametrize(
    ("saving", "step", "said"),
    [
        (saves(19.8, ONCE, bound=Bound.AT_MOST), None, "at most 19.8 s of the run (15 %), once"),
        (saves(9.4, PER_EPOCH, each=0.94, times=10), None, "9.4 s of the run (7 %), 0.94 s in each of 10 epochs"),
        (OF_STEPS, STEP, "17.3 s of the run (13 %), 4.10 ms of each step (24 %)"),
        (OF_STEPS, None, "17.3 s of the run (13 %), 4.10 ms in each of 4,220 steps"),
        (saves(26.0, PER_CALL, each=0.0026, times=10_000), None, PER_CALLS),
        (saves(26.0, PER_CALL), None, "26 s of the run (20 %), in one call"),
        (saves(26.0, PER_CALL, times=0), None, "26 s of the run (20 %)"),
        (saves(9.4, ONCE, extrapolated=0.31), None, "9.4 s of the run (7 %), once, 31 % of a run of 90 epochs"),
        (saves(0.0, ONCE), None, "nothing"),
        (None, STEP, "at most 4.10 ms of each step (24 %)"),
        # The share that gives the severity is told once.
        (RARE, None, "13 s of the run (10 %, 3 % of a longer run), once"),
        (replace(RARE, extrapolated_share=0.03), None, "13 s of the run (10 %), once, 3 % of a run of 90 epochs"),
        (saves(float("nan"), ONCE), None, None),
    ],
)
def test_a_saving_is_told_in_its_own_unit_and_of_the_run(
    saving: RunSaving | None, step: Saving | None, said: str | None
) -> None:
    assert words_of(saving, step, account()) == said


def test_savings_of_a_run_that_was_ended_early_are_those_of_the_step_and_the_planned_run() -> None:
    early = replace(account(), ended_early=True)
    saving = saves(9.4, PER_STEP, extrapolated=0.31)
    assert words_of(saving, STEP, early) == "at most 4.10 ms of each step (24 %), 31 % of a run of 90 epochs"
    assert words_of(saves(9.4, ONCE), None, early) == "9.4 s of the run (7 %), once"
    assert "The run was ended in epoch 10 of 90." in shown(early).notes
    milder = run_saving(replace(saving, extrapolated_share=0.04, rated_share=0.19), STEP, early)
    assert milder
    assert milder[1] == "4 % of a run of 90 epochs, 19 % of what recurs"  # which is a warning


def test_a_report_of_the_step_tells_savings_of_the_step() -> None:
    window = diagnoses.run_window().run
    assert words_of(saves(1.0, PER_STEP), STEP, None) is None
    assert words_of(saves(1.0, PER_STEP), STEP, window) is None
    assert words_of(saves(0.2, ONCE, whole=1.2), None, window) == "0.2 s of the traced window (17 %), once"


@given(st.dictionaries(st.sampled_from(list(Phase)), st.floats(0.001, 1e6), min_size=1))
def test_shown_shares_sum_to_the_whole_within_their_rounding(times: dict[Phase, float]) -> None:
    made = shown(spent({phase: times[phase] for phase in Phase if phase in times}))
    shares = [made.share(row) for row in made.phases]
    assert len(shares) == len(times)
    exact = [float(re.sub(r"[^\d]", "", share)) for share in shares]
    slack = sum(1.0 if share[0] in "<>" else 0.5 for share in shares)
    assert abs(sum(exact) - 100) <= slack + 1e-6


segment_lists = st.lists(
    st.tuples(st.sampled_from(list(Phase)), st.floats(-10, 1100), st.floats(-10, 1100)), max_size=40
)


def test_a_run_that_was_ended_early_is_about_its_steps_first() -> None:
    base, account, _ = trained()
    early = replace(base, run=replace(account, ended_early=True))
    assert told(base)[0].startswith("The run took ")
    first, *others = sentences.account(early)
    assert first.startswith("Each step takes ")
    assert any(one.startswith("The run was ended after its traced steps, as asked") for one in others)
    assert "a step" in prospects(early)[0]
    rows = (*account.rows, PhaseRow(phase=Phase.PREPARING, ms=1e8))
    longer = replace(account, total_ms=account.total_ms + 1e8, rows=rows)
    once = replace(longer, ended_early=True, for_epochs=2, for_times=2.0)
    assert sentences.account(replace(early, run=once))[0].startswith("The run was ended after")


@pytest.mark.parametrize(
    ("end_ms", "at", "told"),
    [(20_000.0, None, True), (20_000.0, Location("train.py", 9), False), (900.0, None, False)],
)
def test_a_long_end_without_a_line_is_explained(end_ms: float, at: Location | None, *, told: bool) -> None:
    end = PhaseRow(phase=Phase.END, ms=end_ms, lines=(PhaseLine(at=at, ms=end_ms),))
    rows = (PhaseRow(phase=Phase.STEPS, ms=10_000.0), end)
    notes = shown(RunAccount(total_ms=10_000.0 + end_ms, rows=rows)).notes
    assert any("pass after the last line" in note for note in notes) is told


@given(segment_lists)
def test_the_bar_is_in_order_without_overlaps_whatever_the_stretches(
    found: list[tuple[Phase, float, float]],
) -> None:
    stretches = tuple(PhaseSegment(phase=p, start_ms=s, end_ms=e) for p, s, e in found)
    run = spent({Phase.STEPS: 1.0}, segments=stretches)
    drawn = bar.stretches(run)
    assert all(0 <= one.start_ms < one.end_ms <= run.total_ms for one in drawn)
    assert all(a.end_ms <= b.start_ms for a, b in pairwise(drawn))
    assert len(list(bar.cells(run, 80))) == 80
    assert all(0 <= piece.left <= piece.left + piece.width <= 1 + 1e-9 for piece in bar.pieces(run))


def test_more_stretches_than_a_screen_has_pixels_become_cells() -> None:
    each = tuple(
        PhaseSegment(phase=Phase.STEPS if at % 4 else Phase.BOUNDARIES, start_ms=at, end_ms=at + 1.0)
        for at in range(20_000)
    )
    pieces = list(bar.pieces(spent({Phase.STEPS: 20.0}, segments=each)))
    assert len(pieces) <= bar.MOST_PIECES
    assert sum(piece.width for piece in pieces) == pytest.approx(1, abs=0.01)


def test_a_piece_says_phase_times_and_line() -> None:
    made = shown(account())
    assert list(bar.pieces(made.account))[2].words == "preparing data: 21.4 s, from 6.1 s to 27.5 s, prepare.py:33"
    assert [label for _, label in made.ticks] == ["0", "30 s", "60 s", "90 s"]


def with_summaries(step_mean_ms: float) -> RunAccount:
    """A run of 400 steps, 10 s of whose 85 s are the phase of steps; the profiler runs after them."""
    calls = PhaseLine(at=None, ms=70_000.0, calls="tensorflow.summary.histogram")
    times = ((Phase.STEPS, 0, 5), (Phase.SAVING, 5, 75), (Phase.STEPS, 75, 80), (Phase.PROFILER, 80, 155))
    pieces = tuple(PhaseSegment(phase=phase, start_ms=1e3 * at, end_ms=1e3 * end) for phase, at, end in times)
    made = spent({Phase.STEPS: 10.0, Phase.SAVING: 70.0, Phase.PROFILER: 75.0}, segments=pieces)
    steps, saving, profiler = made.rows
    rows = (steps, replace(saving, lines=(calls,)), profiler)
    return replace(made, rows=rows, steps=400, step_mean_ms=step_mean_ms)


def test_what_lies_between_steps_is_said_where_they_take_longer_than_their_phase() -> None:
    """Else the step times the number of steps contradicts the time of all steps."""
    made = shown(with_summaries(200.0))
    assert made.notes[0] == (
        "From each to the next, 400 training steps take 80 s; 10 s of that are the phase of training steps, and "
        "the rest is in other phases, mostly saving of summaries."
    )
    assert "80 s with the phases between them" in made.step_title
    unnamed = shown(replace(with_summaries(200.0), segments=()))
    assert unnamed.notes[0].endswith("and the rest is in other phases.")


def test_steps_that_take_as_long_as_their_phase_need_no_remark() -> None:
    made = shown(with_summaries(27.0))
    assert not any("From each" in note for note in made.notes)
    assert "between them" not in made.step_title


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (["tensorflow.summary.histogram", "TensorBoard.on_epoch_end"], "saving of summaries"),
        (["python.ops.summary_ops_v2.flush", "Model.save"], "saving of models, checkpoints and summaries"),
        (["Model.summary", "ModelCheckpoint.on_epoch_end"], "saving of models and checkpoints"),
        ([], "saving"),
    ],
)
def test_what_was_saved_is_named_by_what_its_lines_call(calls: list[str], words: str) -> None:
    lines = tuple(PhaseLine(at=None, ms=60_000.0, calls=one) for one in calls)
    row = PhaseRow(phase=Phase.SAVING, ms=120_000.0, lines=lines)
    assert f"120 s (100 %) are {words}." in first(RunAccount(total_ms=120_000.0, rows=(row,)))


def test_every_phase_has_a_label_a_noun_a_colour_and_a_glyph_of_its_own() -> None:
    for names in (PHASE_NOUNS, PHASE_COLOURS, GLYPHS):
        assert set(names) == set(Phase)
        assert len(set(names.values())) == len(Phase)
    assert all(cell_len(glyph) == 1 for glyph in GLYPHS.values())


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_bar_of_a_terminal_fills_its_width_and_no_phase_is_broken(width: int) -> None:
    lines = terminal.render(diagnoses.run(), width=width, color=False).splitlines()
    (drawn,) = [line for line in lines if "▓▓▓" in line]
    assert cell_len(drawn) == width
    assert "▓ preparing data 21.4 s" in "\n".join(lines)
    assert max(map(cell_len, lines)) <= width


LONG_NAME = "keras_long_name_training_script_for_convolutional_classifiers.py"


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_line_keeps_its_figures_however_narrow_the_terminal_is(width: int) -> None:
    calls = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.fit"
    line = PhaseLine(at=Location(LONG_NAME, 12), ms=9_000.0, calls=calls)
    run = spent({Phase.TRACING: 10.0})
    run = replace(run, rows=(replace(run.rows[0], lines=(line,)),))
    text = " ".join(terminal.render(of(run), width=width, color=False).split())
    assert ".py:12 · 9 s (90 %) · tracing and compiling · " in text
    assert re.search(r"compiling · keras\S* … \S*fit\b", text)


def test_the_colours_of_a_terminal_change_no_word() -> None:
    coloured = terminal.render(diagnoses.run(), width=80, color=True)
    plain = terminal.render(diagnoses.run(), width=80, color=False)
    bare = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_unknown_numbers_break_no_report(number: float) -> None:
    base = account()
    rows = (base.rows[0], *(replace(row, ms=number) for row in base.rows[1:]))
    pieces = tuple(replace(one, end_ms=number) for one in base.segments)
    broken = of(replace(base, rows=rows, segments=pieces, step_median_ms=number, window_share=number))
    for text in (md.render(broken), html.render_without_plotly(broken), json.render(broken)):
        assert "nan" not in text.lower()
    assert terminal.render(broken, width=80, color=False)


def test_an_account_of_nothing_is_not_drawn() -> None:
    assert section(None) is None
    assert section(RunAccount(total_ms=0.0, rows=())) is None
    assert section(spent({Phase.STEPS: 1.0}, whole=False)) is None
    assert section(spent({Phase.STEPS: 1.0})) is not None


def test_code_scanning_gets_the_saving_of_the_run() -> None:
    text = sarif.render(diagnoses.run())
    assert "Saves at most 19.8 s of the run (15 %), once, 2 % of a run of 90 epochs." in text
    assert '"savingMsOfRun": 19800.0' in text


def test_a_page_without_an_account_has_nothing_of_it() -> None:
    page = html.render_without_plotly(diagnoses.full())
    assert "run-bar" not in page
    assert "phase-" not in page


@pytest.mark.parametrize(
    ("count", "first", "said"),
    [
        (1, 1, "It is the first of an epoch or of a pass over the data."),
        (2, 2, "Each of them is the first of an epoch or of a pass over the data."),
        (3, 1, "1 of them is the first of an epoch or of a pass over the data: 0.9 s of that."),
        (3, 2, "2 of them are the first ones of an epoch or of a pass over the data: 0.9 s of that."),
    ],
)
def test_long_steps_that_are_the_first_are_told(count: int, first: int, said: str) -> None:
    long = LongStepTime(count=count, ms=1000.0, beyond_ms=950.0, first=first, first_beyond_ms=900.0)
    assert said in shown(spent({Phase.STEPS: 72.0}, long_steps=long)).long


def test_the_line_of_long_steps_is_listed() -> None:
    at = Location("train.py", 60)
    assert account().long_steps is not None
    assert f"`{at.path}:{at.line}` 2.8 s, `tf.summary.image`" in md.render(diagnoses.run())
