"""What was measured, in every format: beside what was promised, with whether it trains the same."""

from tests.report.kit import *
from tfdoctor.report.page import page

MINUS = "\N{MINUS SIGN}"


FEW = "unknown, because two rounds are too few: allow more minutes"
UNLIKE = "unknown, because its rounds differ too much: use an idle machine, or allow more minutes"
DRIFT = " from the first run of a round to the last, so the machine changed meanwhile"
REORDERED = replace(DIFFERENT, state=TrainingState.REORDERED)
OTHER_WEIGHTS = "NO: other weights after 20 steps, although all runs as it is have equal weights"
OTHER_ORDER = "random numbers in another order: other weights after 20 steps"


def helps(low: float, share: float, high: float) -> Measured:
    return replace(HELPS, share=share, low=low, high=high)


def beside_others(*, instead: bool) -> str:
    return beside(Trial(name="c", beside=Beside(others=("a", "b"), instead=instead, measured=HELPS)))


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_the_terminal_keeps_long_names_whole_and_within_the_width(width: int) -> None:
    text = terminal.render(tried(), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "change" in text
    if width > 40:
        assert re.search(r"\bsame\?", text)
        assert re.search(r"^half-the-batch\.diff ", text, re.MULTILINE)


SLOWER = replace(NOISY, dropped=True, rounds=(-0.4, -0.35))
BURSTS = replace(NOTHING, why="the work comes in bursts")  # so that a shorter typical step is not the saving
SPREAD = replace(NOISY, rounds=(0.1, -0.4, 0.4, 0.0), low=-5.1, high=0.42)
NOT_FINITE = TrainingMatch(state=TrainingState.NOT_FINITE)
LOSSES_DIFFER = "losses differ by up to 5 %, those of two unchanged runs"


WORDS = [
    # What was measured
    (saved(HELPS, None), "saves 31 % (28 to 34 %)"),
    (saved(helps(0.005, 0.03, 0.055), None), "saves 3.0 % (0.5 to 5.5 %)"),
    (saved(helps(0.296, 0.303, 0.311), None), "saves 30.3 % (29.6 to 31.1 %)"),
    (saved(HELPS, DIFFERENT), "step 31 % shorter (28 to 34 %), but no saving: it does not train the same"),
    (saved(NOTHING, None), f"no measurable difference ({MINUS}2 to 3 %)"),
    (saved(BURSTS, None), f"no measurable difference ({MINUS}2 to 3 %); the work comes in bursts"),
    (saved(HURTS, None), f"costs time: {MINUS}26 % ({MINUS}29 to {MINUS}24 %)"),
    (saved(NOISY, None), FEW),
    (saved(NOISY, DIFFERENT), FEW),  # it is timed like any other
    (saved(SPREAD, None), UNLIKE),
    (saved(None, None), ""),
    (saved(SLOWER, None), "at least 35 % slower in each of two rounds, so it got no more"),
    (saved(NOISY, NOT_FINITE), "unknown, because it got no more rounds: its weights became infinite or NaN"),
    (
        saved(replace(NOISY, dropped=True, rounds=()), None),
        "unknown, because no rounds are too few: allow more minutes",
    ),
    # Beside what was promised
    (against(PROMISED, HELPS), "promise too high by 6 % of the step"),
    (against(replace(PROMISED, share=0.2), HELPS), "promise too low by 8 % of the step"),
    (against(replace(PROMISED, share=0.3), HELPS), "promise within the interval"),
    (against(PROMISED, HURTS), "promise too high by 64 % of the step"),
    (against(AT_MOST, HELPS), "more than predicted, by at least 24 % of the step"),
    (against(replace(AT_MOST, share=0.3), HELPS), "above the upper bound, which is within the interval"),
    (against(replace(AT_MOST, share=0.5), HELPS), "upper bound not exceeded"),
    (against(AT_MOST, HURTS), "upper bound not exceeded"),
    (against(PROMISED, NOISY), ""),
    (against(replace(PROMISED, share=float("nan")), HELPS), ""),
    (against(PROMISED, None), ""),
    (against(None, HELPS), ""),
    # Beside other changes
    (beside_others(instead=False), "beside a and b: saves 31 % (28 to 34 %)"),
    (beside_others(instead=True), "in place of a and b: saves 31 % (28 to 34 %)"),
    # Whether it trains the same
    (trained(LOSSES, 0), f"{LOSSES_DIFFER} differ by less than 0.1 %: compare the accuracy"),
    (trained(replace(LOSSES, usual=0.0), 0), f"{LOSSES_DIFFER} are equal: compare the accuracy"),
    (trained(replace(LOSSES, usual=None), 0), "losses differ by up to 5 %: compare the accuracy"),
    (trained(replace(LOSSES, usual=0.06), 0), "losses differ no more than those of two unchanged runs (up to 6 %)"),
    (trained(NOT_FINITE, 0), "NO: weights became infinite or NaN"),
    (trained(DIFFERENT, 0), OTHER_WEIGHTS),
    (trained(replace(DIFFERENT, apart=0.04), 0), OTHER_WEIGHTS + "; losses differ by up to 4 %"),
    (trained(REORDERED, 0), OTHER_ORDER),
    (
        trained(replace(REORDERED, apart=0.04, own=0.03), 0),
        OTHER_ORDER + "; losses differ by up to 4 %, those of its own runs by up to 3 %",
    ),
    (trained(CHANGED, 0), "not compared, because the batch is twice as large: compare the accuracy"),
    (trained(None, 0), "unknown: it did not run"),
    # The control
    (against_itself(NOTHING), f"no measurable difference ({MINUS}2 to 3 %)"),
    (against_itself(NOISY), FEW),
    (
        against_itself(HURTS),
        f"{MINUS}26 % ({MINUS}29 to {MINUS}24 %){DRIFT}: all intervals are wider by that; use an idle machine",
    ),
    # Without a part
    (less(NOTHING), f"no measurable difference ({MINUS}2 to 3 %)"),
    (less(HURTS), f"longer: {MINUS}26 % of the step ({MINUS}29 to {MINUS}24 %)"),
    (less(NOISY), FEW),
]


def test_words_of_a_trial() -> None:
    assert [row for row in WORDS if row[0] != row[1]] == []


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


UNTRIED = Trial(name="c", missing="there was no time left for it")


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
    shown = page(replace(with_trials(row), together=replace(BOUND, share=share)))
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
    assert with_measured_bounds(replace(with_trials(row), together=BOUND)).together == BOUND


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
    row = trial("a", measured, rules=("a",))
    told = with_measured_bounds(replace(with_trials(row), together=BOUND, run_together=of_run))
    assert told.together
    assert told.run_together
    assert (told.together.bound, told.run_together.bound) == bounds


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


# The program without its parts, in every format


def test_a_part_is_told_with_its_line_its_interval_and_the_bound_of_its_rule() -> None:
    with_line, with_rule, broken = trials.parts_grid(Trials(rows=(), parts=(CHECKPOINT, INPUT, BROKEN))).rows
    assert with_line == (
        "Without ModelCheckpoint",
        "train.py:9",
        "40 % of what recurs",
        "47 % less of the whole run (44 to 50 %)",
        "20.0 s, then 10.6 s",
    )
    assert with_rule[0] == "Input always ready"
    assert with_rule[3].startswith("38 % less of the step (33 to 42 %); input-bound at most ")
    assert broken[3] == "no figure, because the program fails without it (KeyError: 'a')"


@pytest.mark.parametrize("diagnosis", [full(), tried()])
def test_all_formats_have_the_experiments_and_call_none_a_saving(diagnosis: Diagnosis) -> None:
    shown = without(CHECKPOINT, INPUT, BROKEN, base=diagnosis)
    page, text = html.render_without_plotly(shown), terminal.render(shown, width=200)
    for rendered in (page, text, md.render(shown)):
        assert trials.PARTS_TITLE in rendered
        assert "no figure is a saving" in " ".join(rendered.split())
    written = json.loads(json_format.render(shown))["trials"]["without"]
    assert [row["part"] for row in written] == ["callback", "input", "summaries"]
    assert written[0]["measured"]["share"] == pytest.approx(0.47)
