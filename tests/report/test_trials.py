"""What was measured, in every format: beside what was promised, with whether it trains the same."""

import json
from dataclasses import replace

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
    trial,
    tried,
)
from tfdoctor.diagnosis import Beside, Measured, Saving, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.report import terminal, trials
from tfdoctor.report.formats import html, md
from tfdoctor.report.formats import json as json_format
from tfdoctor.report.page import page
from tfdoctor.report.trial_scale import SavingScale
from tfdoctor.report.trial_words import against, against_itself, beside, saved, trained

ADVICE = ": compare the accuracy"


def test_the_page_shows_intervals_and_hides_no_markup() -> None:
    page = html.render_without_plotly(tried())
    assert "Measured by running the changes" in page
    assert page.count('<div class="scale" role="img"') == 11  # in the list alone
    assert "<b>no library</b>" not in page
    assert "Losses of the first steps" in page


def test_a_change_shows_its_rounds_interval_and_promise_and_its_finding_what_they_say() -> None:
    page = html.render_without_plotly(tried())
    change = page.split('<ul class="trials"')[1].split("</li>")[1]
    assert change.count('class="point"') == 3
    assert change.count('class="promise"') == 1
    assert (
        'aria-label="Saving in each round: 30 %, 31 %, 33 %. 95 % interval: 28 to 34 %. Promised: 40 %."'
        in change
    )
    finding = page.split('<article id="finding-1"')[1].split("</article>")[0]
    assert "promise too high by 6\N{NO-BREAK SPACE}% of the step" in finding


def test_a_finding_whose_change_trains_something_else_has_no_saving() -> None:
    diagnosis = tried()
    third = diagnosis.results[2]
    assert third.measured is None
    page = html.render_without_plotly(diagnosis)
    finding = page.split('<article id="finding-3"')[1].split("</article>")[0]
    assert "but no saving: it does not train the same" in finding


def test_a_report_without_trials_has_no_section() -> None:
    assert "Measured by running" not in html.render_without_plotly(full())
    assert "Measured by running" not in md.render(full())


def test_markdown_has_the_table() -> None:
    text = md.render(tried())
    assert "### Measured by running the changes" in text
    assert "| saves 31 % (28 to 34 %); promise too high by 6 % of the step |" in text
    assert "NO: other weights after 20 steps" in text
    assert "| small-batch | no promise | saves 31 % (28 to 34 %) per example |" in text
    assert "| 13.8 ms with 2 times the examples |" in text


@pytest.mark.parametrize("width", [40, 80, 100])
def test_the_terminal_keeps_long_names_whole_and_within_the_width(width: int) -> None:
    text = terminal.render(tried(), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "change" in text
    assert "trains the same?" in " ".join(text.split()) or width == 40


def test_the_contract_has_trials_and_the_findings_figure() -> None:
    contract = json.loads(json_format.render(tried()))
    assert contract["results"][0]["measured"]["share"] == 0.31
    variants = {row["name"]: row for row in contract["trials"]["variants"]}
    assert variants["tcmalloc"]["missing"] == "OSError: <b>no library</b>"
    assert variants["half-the-batch.diff"]["training"]["state"] == "different"
    assert contract["trials"]["writes_thrown_away"] is False


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (HELPS, "saves 31 % (28 to 34 %)"),
        (replace(HELPS, share=0.03, low=0.005, high=0.055), "saves 3.0 % (0.5 to 5.5 %)"),
        (replace(HELPS, share=0.303, low=0.296, high=0.311), "saves 30.3 % (29.6 to 31.1 %)"),
        (NOTHING, "no measurable difference (\N{MINUS SIGN}2 to 3 %)"),
        (HURTS, "costs time: \N{MINUS SIGN}26 % (\N{MINUS SIGN}29 to \N{MINUS SIGN}24 %)"),
        (NOISY, "unknown, because two rounds are too few: allow more minutes"),
        (
            replace(NOISY, rounds=(0.1, -0.4, 0.4, 0.0), low=-5.1, high=0.42),
            "unknown, because its rounds differ too much: use an idle machine, or allow more minutes",
        ),
        (None, ""),
    ],
)
def test_a_measured_saving_in_words(measured: Measured | None, words: str) -> None:
    assert saved(measured) == words


def test_the_words_say_why_a_variant_got_no_more_rounds() -> None:
    costs = replace(NOISY, rounds=(-0.4, -0.35), dropped=True)
    assert saved(costs).startswith("at least 35 % slower in each of two rounds, so it got no more")
    lost = TrainingMatch(state=TrainingState.NOT_FINITE)
    assert saved(NOISY, lost).startswith(
        "unknown, because it got no more rounds: its weights became infinite or NaN"
    )
    assert saved(NOISY, DIFFERENT) == saved(NOISY)  # it is timed like any other


def test_too_short_a_trial_says_how_long_is_enough() -> None:
    short = Trials(rows=(UNTRIED,), needed_minutes=2.2)
    assert " ".join(trials.verdict(short)).endswith(
        "a figure needs two rounds, which take about 2.2 minutes; allow them with --minutes 3."
    )


def test_the_words_say_why_a_shorter_typical_step_is_not_the_saving() -> None:
    words = saved(replace(NOTHING, why="the work comes in bursts"))
    assert words.startswith("no measurable difference")
    assert words.endswith("; the work comes in bursts")


def test_a_change_that_does_not_train_the_same_is_never_a_saving() -> None:
    assert (
        saved(HELPS, DIFFERENT)
        == "step 31 % shorter (28 to 34 %), but no saving: it does not train the same"
    )


@pytest.mark.parametrize(
    ("promised", "measured", "words"),
    [
        (PROMISED, HELPS, "promise too high by 6 % of the step"),
        (replace(PROMISED, share=0.2), HELPS, "promise too low by 8 % of the step"),
        (replace(PROMISED, share=0.3), HELPS, "promise within the interval"),
        (PROMISED, HURTS, "promise too high by 64 % of the step"),
        (AT_MOST, HELPS, "upper bound exceeded by at least 24 % of the step"),
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
    [
        (False, "beside a and b: saves 31 % (28 to 34 %)"),
        (True, "in place of a and b: saves 31 % (28 to 34 %)"),
    ],
)
def test_a_change_beside_others_in_words(*, instead: bool, words: str) -> None:
    assert beside(Beside(others=("a", "b"), instead=instead, measured=HELPS)) == words


def test_the_contract_says_how_a_change_does_beside_others() -> None:
    variants = json.loads(json_format.render(tried()))["trials"]["variants"]
    assert variants[0]["beside"] is None
    assert variants[1]["beside"]["others"] == ["input-bound"]
    assert variants[1]["beside"]["measured"]["share"] == 0.08


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (
            LOSSES,
            "losses differ by up to 5 %, those of two unchanged runs differ by less than 0.1 %"
            + ADVICE,
        ),
        (
            replace(LOSSES, usual=0.0),
            "losses differ by up to 5 %, those of two unchanged runs are equal: compare the accuracy",
        ),
        (replace(LOSSES, usual=None), "losses differ by up to 5 %: compare the accuracy"),
        (
            replace(LOSSES, usual=0.06),
            "losses differ no more than those of two unchanged runs (up to 6 %)",
        ),
        (TrainingMatch(state=TrainingState.NOT_FINITE), "NO: weights became infinite or NaN"),
        (
            DIFFERENT,
            "NO: other weights after 20 steps, although all runs as it is have equal weights",
        ),
        (
            replace(DIFFERENT, apart=0.04),
            (
                "NO: other weights after 20 steps, although all runs as it is have equal weights; losses differ "
                "by up to 4 %"
            ),
        ),
        (
            replace(DIFFERENT, state=TrainingState.REORDERED, apart=0.04, own=0.03),
            (
                "random numbers in another order: other weights after 20 steps; losses differ by up to 4 %, those "
                "of its own runs by up to 3 %"
            ),
        ),
        (
            replace(DIFFERENT, state=TrainingState.REORDERED),
            "random numbers in another order: other weights after 20 steps",
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
        (NOTHING, "no measurable difference (\N{MINUS SIGN}2 to 3 %)"),
        (NOISY, "unknown, because two rounds are too few: allow more minutes"),
        (
            HURTS,
            (
                "\N{MINUS SIGN}26 % (\N{MINUS SIGN}29 to \N{MINUS SIGN}24 %) from the first run of a round to the "
                "last, so the machine changed meanwhile: all intervals are wider by that; use an idle machine"
            ),
        ),
    ],
)
def test_the_control_in_words(measured: Measured, words: str) -> None:
    assert against_itself(measured) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (
            0.002,
            0.036,
            "1.9 % (0.2 to 3.6 %) from the first run of a round to the last, so the machine changed",
        ),
        (-0.001, 0.036, "no measurable difference ("),
    ],
)
def test_a_stored_control_that_excludes_zero_is_not_called_no_difference(
    low: float, high: float, words: str
) -> None:
    """A regression: a report of the gallery said "no difference (0.2 to 3.6 %)"."""
    stored = replace(NOTHING, share=0.019, low=low, high=high)
    assert against_itself(stored).startswith(words)
    assert "all intervals are wider" not in against_itself(stored)


def test_an_interval_that_says_nothing_is_not_drawn() -> None:
    rows = [trial("a", HELPS), trial("b", NOISY)]
    drawn, empty = (SavingScale.of(rows).picture(row) for row in rows)
    assert drawn is not None
    assert empty is not None
    assert (drawn.range is None, empty.range is None) == (False, True)
    assert (empty.below, empty.above) == (False, False)
    assert empty.words == "Saving in each round: 0 %, 1 %. No interval."


def test_the_headline_says_what_was_proved_and_what_does_not_count() -> None:
    diagnosis = tried()
    assert diagnosis.trials is not None
    assert " ".join(trials.verdict(diagnosis.trials)) == (
        "Measured: 1.59\N{MULTIPLICATION SIGN} as fast with two of the eleven changes tried: a step is 37 % "
        "shorter (36.0 to 39.0 %). small-batch (saves 31 % (28 to 34 %) per example) saves time and changes what "
        "is trained: compare the accuracy. half-the-batch.diff and float32-matmul make a step shorter, but do not "
        "train the same."
    )


def test_a_larger_batch_is_never_told_as_a_change_without_effect() -> None:
    larger = replace(trial("batch", HELPS), training=CHANGED, examples=2.0)
    assert " ".join(trials.verdict(Trials(rows=(larger,)))) == (
        "Measured: batch (saves 31 % (28 to 34 %) per example) saves time and changes what is trained: "
        "compare the accuracy."
    )
    kept = replace(larger, kept=True)
    assert " ".join(trials.verdict(Trials(rows=(kept,)))).endswith(
        "an example takes 31 % less time (28 to 34 %)."
    )


KEPT = trial("a", HELPS, kept=True)
LOST = trial("b", HURTS)
UNTRIED = Trial(name="c", missing="there was no time left for it")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((KEPT,), "with the one change tried: a step is 31 % shorter (28 to 34 %)."),
        ((KEPT, UNTRIED), "with the one change tried: a step is 31 % shorter (28 to 34 %)."),
        ((KEPT, LOST), "with one of the two changes tried: a step is 31 % shorter (28 to 34 %)."),
        ((LOST, UNTRIED), "Measured: the one change tried was not shown to save time."),
        (
            (LOST, trial("d", NOTHING)),
            "Measured: neither of the two changes tried was shown to save time.",
        ),
        (
            (LOST, trial("d", NOTHING), trial("e", NOISY)),
            "Measured: none of the three changes tried was shown to save time.",
        ),
        (
            (UNTRIED,),
            "Nothing was measured: the time was over before the first round ended; allow more with --minutes.",
        ),
    ],
)
def test_the_headline_counts_the_changes_that_ran(rows: tuple[Trial, ...], words: str) -> None:
    assert " ".join(trials.verdict(Trials(rows=rows))).endswith(words)


@pytest.mark.parametrize(
    ("rows", "first", "told"),
    [
        (
            (trial("a", NOISY),),
            "Three changes",
            "The trial does not tell what the change saves",
        ),
        (
            (trial("a", NOISY), trial("b", NOISY)),
            "Three changes",
            "The trial does not tell what the changes save",
        ),
        ((trial("a", NOISY), trial("b", NOTHING)), "Measured:", "neither of the two changes tried"),
        (
            (replace(trial("a", NOISY), promised=PROMISED), replace(LOST, promised=None)),
            "Three changes",
            "The trial does not tell what the change saves",
        ),
        ((UNTRIED,), "Three changes", "Nothing was measured:"),
    ],
)
def test_a_trial_that_tells_nothing_stands_behind_the_prediction(
    rows: tuple[Trial, ...], first: str, told: str
) -> None:
    shown = page(replace(full(), trials=Trials(rows=rows)))
    assert shown.verdict[1].startswith(first)
    assert told in " ".join((*shown.verdict, *shown.remarks))


def test_all_changes_that_help_are_counted_without_their_set() -> None:
    rows = (KEPT, trial("b", HELPS, kept=True), replace(trial("a + b", HELPS), parts=("a", "b")))
    assert "with both changes tried:" in " ".join(
        trials.verdict(Trials(rows=rows, together="a + b"))
    )


def test_a_plus_in_the_name_of_a_patch_makes_it_no_set() -> None:
    rows = (KEPT, trial("b", NOTHING), trial("a + b", NOTHING))
    assert "with one of the three changes tried:" in " ".join(trials.verdict(Trials(rows=rows)))


def test_the_scale_has_zero_and_every_promise_on_it() -> None:
    scale = SavingScale.of([trial("a", HELPS, promised=PROMISED)])
    assert [(tick.at, tick.label, tick.zero) for tick in scale.ticks] == [
        (0.0, "0 %", True),
        (25.0, "10 %", False),
        (50.0, "20 %", False),
        (75.0, "30 %", False),
        (100.0, "40 %", False),
    ]
    picture = scale.picture(trial("a", HELPS, promised=PROMISED))
    assert picture is not None
    assert (picture.range, picture.promise) == ((70.0, 15.0), 100.0)
    assert picture.points == (75.0, 77.5, 82.5)


def test_a_change_that_takes_several_times_as_long_does_not_stretch_the_scale() -> None:
    rows = [trial("a", HELPS), trial("b", SLOW), trial("c", NOISY)]
    scale = SavingScale.of(rows)
    assert (scale.low, scale.high) == pytest.approx((-0.6, 0.4))
    picture = scale.picture(rows[1])
    assert picture is not None
    assert (picture.below, picture.above, picture.points) == (True, False, ())


def test_a_scale_of_nothing_has_two_ends() -> None:
    scale = SavingScale.of([UNTRIED])
    assert [tick.label for tick in scale.ticks] == ["0 %", "1 %"]
    assert scale.picture(UNTRIED) is None


def test_the_headline_names_a_larger_promise_that_was_not_tried() -> None:
    diagnosis = full()
    first = diagnosis.results[0]
    rows = (trial("a", HELPS, kept=True),)
    told = trials.section(replace(diagnosis, trials=Trials(rows=rows)))
    assert told is not None
    assert told.verdict[-1].endswith("was not tried.")
    assert first.rule.name in " ".join(told.verdict)


def test_the_headline_names_no_promise_below_those_that_were_tried() -> None:
    diagnosis = full()
    promised = replace(PROMISED, share=0.99)
    rows = (trial("a", HELPS, kept=True, promised=promised),)
    told = trials.section(replace(diagnosis, trials=Trials(rows=rows)))
    assert told is not None
    assert "not tried" not in " ".join(told.verdict)
