"""What was measured, in every format: beside what was promised, with whether it trains the same."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.report.diagnoses import (
    AT_MOST,
    CHANGED,
    DIFFERENT,
    HELPS,
    HURTS,
    LOSSES,
    NOISY,
    NOTHING,
    PROMISED,
    SLOW,
    full,
    saving,
    trial,
    tried,
)
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rank import with_measured_bounds
from tfdoctor.diagnosis.savings import RunTogether, Saving, Together
from tfdoctor.diagnosis.trials import Beside, Measured, PartTrial, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.report import terminal, trials
from tfdoctor.report.formats import html, llm, md
from tfdoctor.report.formats import json as json_format
from tfdoctor.report.page import page
from tfdoctor.report.pictures.step_bars import step_bars
from tfdoctor.report.trial_words import against, against_itself, beside, less, saved, trained
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.verdict import Bound, Location, Recurrence

ADVICE = ": compare the accuracy"
MINUS = "\N{MINUS SIGN}"


FEW = "unknown, because two rounds are too few: allow more minutes"
UNLIKE = "unknown, because its rounds differ too much: use an idle machine, or allow more minutes"
DRIFT = " from the first run of a round to the last, so the machine changed meanwhile"
REORDERED = replace(DIFFERENT, state=TrainingState.REORDERED)
OTHER_WEIGHTS = "NO: other weights after 20 steps, although all runs as it is have equal weights"
OTHER_ORDER = "random numbers in another order: other weights after 20 steps"


def finding_of(page: str, number: int) -> str:
    return page.split(f'<article id="finding-{number}"')[1].split("</article>", maxsplit=1)[0]


def proved(*rows: Trial, **more: Any) -> str:
    return " ".join(trials.proved(Trials(rows=rows, **more)))


def with_trials(*rows: Trial, **more: Any) -> Diagnosis:
    """Return the full report with these trials."""
    return replace(full(), trials=Trials(rows=rows), **more)


def helps(low: float, share: float, high: float) -> Measured:
    return replace(HELPS, share=share, low=low, high=high)


def test_the_page_shows_what_was_measured_and_hides_no_markup() -> None:
    page = html.render_without_plotly(tried())
    assert "Measured by running the changes" in page
    assert page.count('<div class="scale" role="img"') == 11  # in the list alone
    assert "<b>no library</b>" not in page
    assert "Losses of the first steps" in page
    change = page.split('<ul class="trials"')[1].split("</li>")[1]
    assert change.count('class="point"') == 3
    assert change.count('class="promise"') == 1
    assert (
        'aria-label="Saving in each round: 30 %, 31 %, 33 %. 95 % interval: 28 to 34 %. Promised: 40 %."' in change
    )
    assert "promise too high by 6\N{NO-BREAK SPACE}% of the step" in finding_of(page, 1)
    assert tried().results[2].measured is None
    assert "but no saving: it does not train the same" in finding_of(page, 3)
    for renders in (html.render_without_plotly, md.render):
        assert "Measured by running" not in renders(full())


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_the_terminal_keeps_long_names_whole_and_within_the_width(width: int) -> None:
    text = terminal.render(tried(), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "change" in text
    if width > 40:
        assert re.search(r"\bsame\?", text)
        assert re.search(r"^half-the-batch\.diff ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("measured", "training", "words"),
    [
        (HELPS, None, "saves 31 % (28 to 34 %)"),
        (helps(0.005, 0.03, 0.055), None, "saves 3.0 % (0.5 to 5.5 %)"),
        (helps(0.296, 0.303, 0.311), None, "saves 30.3 % (29.6 to 31.1 %)"),
        (HELPS, DIFFERENT, "step 31 % shorter (28 to 34 %), but no saving: it does not train the same"),
        (NOTHING, None, f"no measurable difference ({MINUS}2 to 3 %)"),
        (
            replace(NOTHING, why="the work comes in bursts"),  # so that a shorter typical step is not the saving
            None,
            f"no measurable difference ({MINUS}2 to 3 %); the work comes in bursts",
        ),
        (HURTS, None, f"costs time: {MINUS}26 % ({MINUS}29 to {MINUS}24 %)"),
        (NOISY, None, FEW),
        (NOISY, DIFFERENT, FEW),  # it is timed like any other
        (replace(NOISY, rounds=(0.1, -0.4, 0.4, 0.0), low=-5.1, high=0.42), None, UNLIKE),
        (None, None, ""),
    ],
)
def test_a_measured_saving_in_words(measured: Measured | None, training: TrainingMatch | None, words: str) -> None:
    assert saved(measured, training) == words


@pytest.mark.parametrize(
    ("changes", "training", "words"),
    [
        ({"rounds": (-0.4, -0.35)}, None, "at least 35 % slower in each of two rounds, so it got no more"),
        (
            {},
            TrainingMatch(state=TrainingState.NOT_FINITE),
            "unknown, because it got no more rounds: its weights became infinite or NaN",
        ),
        ({"rounds": ()}, None, "unknown, because no rounds are too few"),
    ],
)
def test_the_words_say_why_a_variant_got_no_more_rounds(
    changes: dict[str, Any], training: TrainingMatch | None, words: str
) -> None:
    assert saved(replace(NOISY, dropped=not training, **changes), training).startswith(words)


def test_too_short_a_trial_says_how_long_is_enough() -> None:
    assert proved(UNTRIED, needed_minutes=2.2).endswith(
        "a figure needs two rounds, which take about 2.2 minutes; allow them with --minutes 3."
    )


@pytest.mark.parametrize(
    ("promised", "measured", "words"),
    [
        (PROMISED, HELPS, "promise too high by 6 % of the step"),
        (replace(PROMISED, share=0.2), HELPS, "promise too low by 8 % of the step"),
        (replace(PROMISED, share=0.3), HELPS, "promise within the interval"),
        (PROMISED, HURTS, "promise too high by 64 % of the step"),
        (AT_MOST, HELPS, "more than predicted, by at least 24 % of the step"),
        (replace(AT_MOST, share=0.3), HELPS, "above the upper bound, which is within the interval"),
        (replace(AT_MOST, share=0.5), HELPS, "upper bound not exceeded"),
        (AT_MOST, HURTS, "upper bound not exceeded"),
        (PROMISED, NOISY, ""),
        (replace(PROMISED, share=float("nan")), HELPS, ""),
        (PROMISED, None, ""),
        (None, HELPS, ""),
    ],
)
def test_a_promise_is_compared_with_the_interval(
    promised: Saving | None, measured: Measured | None, words: str
) -> None:
    assert against(promised, measured) == words


@pytest.mark.parametrize(
    ("instead", "words"),
    [(False, "beside a and b: saves 31 % (28 to 34 %)"), (True, "in place of a and b: saves 31 % (28 to 34 %)")],
)
def test_a_change_beside_others_in_words(*, instead: bool, words: str) -> None:
    made = Beside(others=("a", "b"), instead=instead, measured=HELPS)
    assert beside(Trial(name="c", beside=made)) == words


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (LOSSES, "losses differ by up to 5 %, those of two unchanged runs differ by less than 0.1 %" + ADVICE),
        (
            replace(LOSSES, usual=0.0),
            "losses differ by up to 5 %, those of two unchanged runs are equal: compare the accuracy",
        ),
        (replace(LOSSES, usual=None), "losses differ by up to 5 %: compare the accuracy"),
        (replace(LOSSES, usual=0.06), "losses differ no more than those of two unchanged runs (up to 6 %)"),
        (TrainingMatch(state=TrainingState.NOT_FINITE), "NO: weights became infinite or NaN"),
        (DIFFERENT, OTHER_WEIGHTS),
        (replace(DIFFERENT, apart=0.04), OTHER_WEIGHTS + "; losses differ by up to 4 %"),
        (REORDERED, OTHER_ORDER),
        (
            replace(REORDERED, apart=0.04, own=0.03),
            OTHER_ORDER + "; losses differ by up to 4 %, those of its own runs by up to 3 %",
        ),
        (CHANGED, "not compared, because the batch is twice as large: compare the accuracy"),
        (None, "unknown: it did not run"),
    ],
)
def test_whether_it_trains_the_same_in_words(training: TrainingMatch | None, words: str) -> None:
    assert trained(training, runs=0) == words


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (NOTHING, f"no measurable difference ({MINUS}2 to 3 %)"),
        (NOISY, FEW),
        (
            HURTS,
            f"{MINUS}26 % ({MINUS}29 to {MINUS}24 %){DRIFT}: all intervals are wider by that; use an idle machine",
        ),
    ],
)
def test_the_control_in_words(measured: Measured, words: str) -> None:
    assert against_itself(measured) == words


@pytest.mark.parametrize(
    ("low", "words"), [(0.002, f"1.9 % (0.2 to 3.6 %){DRIFT}"), (-0.001, "no measurable difference (")]
)
def test_a_stored_control_that_excludes_zero_is_not_called_no_difference(low: float, words: str) -> None:
    """A regression: a report of the gallery said "no difference (0.2 to 3.6 %)"."""
    stored = replace(NOTHING, share=0.019, low=low, high=0.036)
    assert against_itself(stored).startswith(words)
    assert "all intervals are wider" not in against_itself(stored)


def test_an_interval_that_says_nothing_is_not_drawn() -> None:
    drawn, empty = trials.drawn([trial("a", HELPS), trial("b", NOISY)])[1]
    assert drawn
    assert empty
    assert (drawn.range is None, empty.range is None) == (False, True)
    assert (empty.below, empty.above) == (False, False)
    assert empty.words == "Saving in each round: 0 %, 1 %. No interval."


def test_the_headline_says_what_was_proved_and_what_does_not_count() -> None:
    found = tried().trials
    assert found
    assert " ".join(trials.proved(found)) == (
        "Measured: 1.59\N{MULTIPLICATION SIGN} as fast with two of the eleven changes tried: a step is 37 % "
        "shorter (36.0 to 39.0 %). small-batch (saves 31 % (28 to 34 %) per example) saves time and changes what "
        "is trained: compare the accuracy. half-the-batch.diff and float32-matmul make a step shorter, but do not "
        "train the same."
    )


def test_a_larger_batch_is_never_told_as_a_change_without_effect() -> None:
    larger = trial("batch", HELPS, training=CHANGED, examples=2.0)
    assert proved(larger) == (
        "Measured: batch (saves 31 % (28 to 34 %) per example) saves time and changes what is trained: "
        "compare the accuracy."
    )
    assert proved(replace(larger, kept=True)).endswith("an example takes 31 % less time (28 to 34 %).")


KEPT = trial("a", HELPS, kept=True)
LOST = trial("b", HURTS)
UNTRIED = Trial(name="c", missing="there was no time left for it")
SAME = trial("d", NOTHING)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((KEPT,), "with the one change tried: a step is 31 % shorter (28 to 34 %)."),
        ((KEPT, UNTRIED), "with the one change tried: a step is 31 % shorter (28 to 34 %)."),
        ((KEPT, LOST), "with one of the two changes tried: a step is 31 % shorter (28 to 34 %)."),
        ((LOST, UNTRIED), "Measured: the one change tried was not shown to save time."),
        # As no trial is stored: a variant with a figure ran, whatever the number of its runs says.
        ((replace(LOST, runs=0),), "Measured: the one change tried was not shown to save time."),
        ((LOST, SAME), "Measured: neither of the two changes tried was shown to save time."),
        ((LOST, SAME, trial("e", NOISY)), "Measured: none of the three changes tried was shown to save time."),
        (
            (UNTRIED,),
            "Nothing was measured: the time was over before the first round ended; allow more with --minutes.",
        ),
    ],
)
def test_the_headline_counts_the_changes_that_ran(rows: tuple[Trial, ...], words: str) -> None:
    assert proved(*rows).endswith(words)


WIDE = replace(NOISY, rounds=(*NOISY.rounds, *NOISY.rounds))
NO_TIME = Trial(name="c", missing="its two rounds did not fit into one minute", promised=PROMISED)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ((trial("a", WIDE),), "its rounds differ too much."),
        ((trial("a", NOISY), trial("b", WIDE)), "two rounds are too few."),
        ((trial("a", WIDE, promised=PROMISED), LOST), "its rounds differ too much."),
        ((NO_TIME, LOST), "its two rounds did not fit into one minute."),
    ],
)
def test_the_headline_says_that_a_trial_of_what_it_predicts_has_no_clear_result(
    rows: tuple[Trial, ...], why: str
) -> None:
    shown = page(with_trials(*rows))
    assert len(shown.verdict) == 2
    assert shown.verdict[1].startswith("Three changes would")
    assert shown.verdict[1].endswith(f"; a trial has no clear result, because {why}")
    assert "trial has no clear result" not in " ".join(shown.remarks)
    for written in (html.render_without_plotly, md.render, llm.render):
        words = " ".join(written(with_trials(*rows)).replace("\N{NO-BREAK SPACE}", " ").split())
        assert "a trial has no clear result" in words.split("Three changes would")[1][:100]


def test_a_trial_that_tells_stands_in_place_of_the_prediction_and_one_without_figures_beside_it() -> None:
    tells = page(with_trials(trial("a", NOISY), trial("b", NOTHING)))
    assert tells.verdict[1].startswith("input-bound, which promises 80 % of the step, was not tried")
    assert "Measured: neither of the two changes tried was shown to save time." in tells.remarks
    assert any(one.startswith("Three changes would") for one in tells.remarks)
    nothing = page(with_trials(UNTRIED))
    assert nothing.verdict[1].startswith("Three changes would")
    assert "; nothing was measured:" in nothing.verdict[1]


BOUND = Together(ms_per_step=13.0, share=0.25, rules=("a",), after_ms={"device": 39.0}, bound=Bound.AT_MOST)


@pytest.mark.parametrize(
    ("share", "found"),
    [
        (0.25, ", more than predicted (at most 25 %)."),
        (0.3, ", more than predicted (at most 30 %, which is within the interval)."),
        (0.32, "."),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_a_saving_above_the_upper_bound_is_told_and_the_bound_is_none_any_more(
    share: float, found: str, *, own: bool
) -> None:
    promised = replace(AT_MOST, share=share) if own else None
    row = trial("a", HELPS, rules=("a",), promised=promised, kept=True)
    shown = page(with_trials(row, together=replace(BOUND, share=share)))
    assert f"31 % shorter (28 to 34 %){found}" in shown.verdict[1]
    predicted = next(bar for bar in step_bars(shown.diagnosis) if bar.label == "predicted")
    assert ("at best" in predicted.time) == (share > HELPS.share)
    assert ("at best" in " ".join(shown.remarks)) == (share > HELPS.share)


@pytest.mark.parametrize(
    "row",
    [
        trial("a", HELPS, rules=("a", "b")),  # more than these changes
        trial("a", HELPS, rules=("a",), training=DIFFERENT),
        trial("a", NOTHING, rules=("a",)),
        trial("a", replace(HELPS, of_run=True), rules=("a",)),
        trial("a", HELPS),
    ],
)
def test_a_bound_of_the_step_that_no_trial_of_its_changes_exceeds_stays_one(row: Trial) -> None:
    assert with_measured_bounds(with_trials(row, together=BOUND)).together == BOUND


@pytest.mark.parametrize(
    ("measured", "bounds"),
    [
        (HELPS, (Bound.EXPECTED, Bound.EXPECTED)),
        (replace(HELPS, of_run=True), (Bound.AT_MOST, Bound.EXPECTED)),
        (NOTHING, (Bound.AT_MOST, Bound.AT_MOST)),
    ],
)
def test_a_bound_of_the_run_goes_with_that_of_the_step_or_by_whole_runs(
    measured: Measured, bounds: tuple[Bound, Bound]
) -> None:
    of_run = RunTogether(ms=9.0, share=0.2, rules=("a",), bound=Bound.AT_MOST)
    told = with_measured_bounds(
        with_trials(trial("a", measured, rules=("a",)), together=BOUND, run_together=of_run)
    )
    assert told.together
    assert told.run_together
    assert (told.together.bound, told.run_together.bound) == bounds


def test_all_changes_that_help_are_counted_without_their_set() -> None:
    rows = (KEPT, trial("b", HELPS, kept=True), trial("a + b", HELPS, parts=("a", "b")))
    assert "with both changes tried:" in proved(*rows, together="a + b")


def test_a_plus_in_the_name_of_a_patch_makes_it_no_set() -> None:
    assert "with one of the three changes tried:" in proved(KEPT, trial("b", NOTHING), trial("a + b", NOTHING))


def test_the_scale_has_zero_and_every_promise_on_it() -> None:
    ticks, [picture] = trials.drawn([trial("a", HELPS, promised=PROMISED)])
    assert ticks == [(25.0 * at, f"{10 * at} %", at == 0) for at in range(5)]
    assert picture
    assert (picture.range, picture.promise) == ((70.0, 15.0), 100.0)
    assert picture.points == (75.0, 77.5, 82.5)


def test_a_change_that_takes_several_times_as_long_does_not_stretch_the_scale() -> None:
    ticks, (_, picture, _) = trials.drawn([trial("a", HELPS), trial("b", SLOW), trial("c", NOISY)])
    assert [label for _, label, _ in (ticks[0], ticks[-1])] == ["\N{MINUS SIGN}60 %", "40 %"]
    assert picture is not None
    assert (picture.below, picture.above, picture.points) == (True, False, ())


def test_a_scale_of_nothing_has_two_ends() -> None:
    ticks, pictures = trials.drawn([UNTRIED])
    assert [label for _, label, _ in ticks] == ["0 %", "1 %"]
    assert pictures == [None]


def test_the_headline_names_a_larger_promise_that_was_not_tried() -> None:
    told = trials.verdict(with_trials(KEPT))
    first = full().results[0].rule.name
    patch = f"; where a patch makes that change, give it as --patch {first}=FILE."
    assert told[-1].endswith(f"was not tried{patch}")
    within = trials.verdict(with_trials(replace(KEPT, promised=replace(PROMISED, share=0.99))))
    assert "not tried" not in " ".join(within)


def test_promises_are_compared_by_what_they_save_of_the_run() -> None:
    """The step of a run whose time passes between its steps is little of it."""
    first, *others, last = full().results
    of_run = replace(saving(40.0, Recurrence.PER_EPOCH, times=10), share=0.9, rated_share=0.9)
    last = replace(last, outcome=first.outcome, run=of_run)
    row = trial("a", NOTHING, promised=replace(PROMISED, share=0.85))
    told = trials.verdict(with_trials(row, results=(first, *others, last)))
    assert told[0].startswith(f"{last.rule.name}, which promises ")
    assert told[1].startswith("Measured: the one change tried was not shown")


# The program without its parts, in every format


CHECKPOINT = PartTrial(
    part=Part.CALLBACK,
    name="ModelCheckpoint",
    at=Location("train.py", 9),
    share=0.4,
    measured=replace(HELPS, share=0.47, low=0.44, high=0.5, of_run=True),
    as_is_ms=20_000.0,
    without_ms=10_600.0,
    runs=3,
)
INPUT = PartTrial(
    part=Part.INPUT,
    name="input",
    measured=replace(HELPS, share=0.38, low=0.33, high=0.42),
    rule="input-bound",
    promised=AT_MOST,
)
BROKEN = PartTrial(part=Part.SUMMARIES, name="tf.summary", missing="the program fails without it (KeyError: 'a')")


def without(*parts: PartTrial, diagnosis: Diagnosis | None = None) -> Diagnosis:
    diagnosis = diagnosis or full()
    known = diagnosis.trials or Trials(rows=(), runs=9, rounds=3, minutes=4.0)
    return replace(diagnosis, trials=replace(known, parts=parts))


def cells(part: PartTrial) -> tuple[str, ...]:
    return trials.parts_grid(Trials(rows=(), parts=(part,))).rows[0]


def test_a_part_is_told_with_its_line_and_its_interval() -> None:
    assert cells(CHECKPOINT) == (
        "Without ModelCheckpoint",
        "train.py:9",
        "40 % of what recurs",
        "47 % less of the whole run (44 to 50 %)",
        "20.0 s, then 10.6 s",
    )


def test_the_input_stands_beside_the_bound_of_its_rule() -> None:
    what, _, _, measured, _ = cells(INPUT)
    assert what == "Input always ready"
    assert measured.startswith("38 % less of the step (33 to 42 %); input-bound at most ")


def test_a_row_without_a_figure_says_why() -> None:
    assert cells(BROKEN)[3] == "no figure, because the program fails without it (KeyError: 'a')"


@pytest.mark.parametrize(
    ("measured", "told"), [(NOTHING, "no measurable difference"), (HURTS, "longer: "), (NOISY, "unknown, because ")]
)
def test_other_results_are_no_less(measured: Measured, told: str) -> None:
    assert less(measured).startswith(told)


@pytest.mark.parametrize("diagnosis", [full(), tried()])
def test_all_formats_have_the_experiments_and_call_none_a_saving(diagnosis: Diagnosis) -> None:
    shown = without(CHECKPOINT, INPUT, BROKEN, diagnosis=diagnosis)
    page, text = html.render_without_plotly(shown), terminal.render(shown, width=200)
    for rendered in (page, text, md.render(shown)):
        assert trials.PARTS_TITLE in rendered
        assert "no figure is a saving" in " ".join(rendered.split())
    written = json.loads(json_format.render(shown))["trials"]["without"]
    assert [row["part"] for row in written] == ["callback", "input", "summaries"]
    assert written[0]["measured"]["share"] == pytest.approx(0.47)


def test_a_trial_of_parts_alone_names_the_largest() -> None:
    assert trials.verdict(without(INPUT, CHECKPOINT)) == (
        "Measured: Without ModelCheckpoint, 47 % less of the whole run (44 to 50 %).",
    )


def test_a_trial_of_parts_alone_without_a_figure_says_so() -> None:
    assert trials.verdict(without(BROKEN)) == ("No part was shown to take time.",)


def test_parts_change_nothing_that_is_said_of_changes() -> None:
    assert trials.verdict(tried()) == trials.verdict(without(INPUT, diagnosis=tried()))
