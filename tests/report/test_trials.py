"""What was measured, in every format: beside what was promised, with whether it trains the same."""

from tests.report.kit import *
from tfdoctor.report.page import page

REORDERED = replace(DIFFERENT, state=TrainingState.REORDERED)
SLOWER = replace(NOISY, dropped=True, rounds=(-0.4, -0.35))
BURSTS = replace(NOTHING, why="the work comes in bursts")  # so that a shorter typical step is not the saving
SPREAD = replace(NOISY, rounds=(0.1, -0.4, 0.4, 0.0), low=-5.1, high=0.42)
NOT_FINITE = TrainingMatch(state=TrainingState.NOT_FINITE)


def helps(low: float, share: float, high: float) -> Measured:
    return replace(HELPS, share=share, low=low, high=high)


def promised(share: float, measured: Measured | None = HELPS, of: Saving = PROMISED) -> str:
    return against(replace(of, share=share), measured)


def beside_others(*, instead: bool) -> str:
    return beside(Trial(name="c", beside=Beside(others=("a", "b"), instead=instead, measured=HELPS)))


WORDS = {
    "saves": saved(HELPS, None),
    "saves little": saved(helps(0.005, 0.03, 0.055), None),
    "saves, within a point": saved(helps(0.296, 0.303, 0.311), None),
    "saves, and trains otherwise": saved(HELPS, DIFFERENT),
    "nothing": saved(NOTHING, None),
    "nothing, in bursts": saved(BURSTS, None),
    "costs": saved(HURTS, None),
    "noisy": saved(NOISY, None),
    "noisy, and trains otherwise: it is timed like any other": saved(NOISY, DIFFERENT),
    "noisy in four rounds": saved(SPREAD, None),
    "not measured": saved(None, None),
    "dropped as clearly slower": saved(SLOWER, None),
    "dropped as not finite": saved(NOISY, NOT_FINITE),
    "dropped without a round": saved(replace(NOISY, dropped=True, rounds=()), None),
    "promised 40 %, saves": promised(0.4),
    "promised 20 %, saves": promised(0.2),
    "promised 30 %, saves": promised(0.3),
    "promised 40 %, costs": promised(0.4, HURTS),
    "at most 4 %, saves": promised(0.04, of=AT_MOST),
    "at most 30 %, saves": promised(0.3, of=AT_MOST),
    "at most 50 %, saves": promised(0.5, of=AT_MOST),
    "at most 4 %, costs": promised(0.04, HURTS, AT_MOST),
    "promised, noisy": promised(0.4, NOISY),
    "promised an unknown share": promised(float("nan")),
    "promised, not measured": promised(0.4, None),
    "nothing promised": against(None, HELPS),
    "beside others": beside_others(instead=False),
    "in place of others": beside_others(instead=True),
    "other losses": trained(LOSSES, 0),
    "other losses, the program's are equal": trained(replace(LOSSES, usual=0.0), 0),
    "other losses, the program's are unknown": trained(replace(LOSSES, usual=None), 0),
    "losses like the program's": trained(replace(LOSSES, usual=0.06), 0),
    "infinite": trained(NOT_FINITE, 0),
    "other weights": trained(DIFFERENT, 0),
    "other weights and losses": trained(replace(DIFFERENT, apart=0.04), 0),
    "another order": trained(REORDERED, 0),
    "another order, and its losses": trained(replace(REORDERED, apart=0.04, own=0.03), 0),
    "not comparable": trained(CHANGED, 0),
    "did not run": trained(None, 0),
    "the control shows nothing": against_itself(NOTHING),
    "the control is noisy": against_itself(NOISY),
    "the control costs": against_itself(HURTS),
    # A regression: a report of the gallery said "no difference (0.2 to 3.6 %)".
    "a stored control excludes zero": against_itself(replace(NOTHING, share=0.019, low=0.002, high=0.036)),
    "a stored control includes zero": against_itself(replace(NOTHING, share=0.019, low=-0.001, high=0.036)),
    "without a part: nothing": less(NOTHING),
    "without a part: longer": less(HURTS),
    "without a part: noisy": less(NOISY),
}


def test_words_of_a_trial(golden: Compare) -> None:
    golden("trial-words.txt", "".join(f"{name} | {said}\n" for name, said in WORDS.items()))


@each(40, 60, 80, 100)
def test_the_terminal_keeps_long_names_whole_and_within_the_width(width: int) -> None:
    text = terminal.render(tried(), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "change" in text
    if width > 40:
        assert re.search(r"\bsame\?", text)
        assert re.search(r"^half-the-batch\.diff ", text, re.MULTILINE)


texts = Told()
drawn = {
    "zero and every promise": trial("a", HELPS, promised=PROMISED),
    "an interval that says nothing": (trial("a", HELPS), trial("b", NOISY)),
    "several times as long does not stretch the scale": (trial("a", HELPS), trial("b", SLOW), trial("c", NOISY)),
    "a scale of nothing has two ends": Trial(name="c", missing="there was no time left for it"),
}
texts[lambda *rows: [one for part in trials.drawn(rows) for one in part]] = drawn


BOUND = Together(ms_per_step=13.0, share=0.25, rules=("a",), after_ms={"device": 39.0}, bound=Bound.AT_MOST)


@cases(
    *product(
        (
            (0.25, ", more than predicted (at most 25 %)."),
            (0.3, ", more than predicted (at most 30 %, which is within the interval)."),
            (0.32, "."),
        ),
        (AT_MOST, None),
    )
)
def test_a_saving_above_the_upper_bound_is_told_and_the_bound_is_none_any_more(
    told: tuple[float, str], own: Saving | None
) -> None:
    share, found = told
    row = trial("a", HELPS, rules=("a",), promised=own and replace(own, share=share), kept=True)
    shown = page(replace(with_trials(row), together=replace(BOUND, share=share)))
    assert f"31 % shorter (28 to 34 %){found}" in shown.verdict[1]
    predicted = next(bar for bar in step_bars(shown.diagnosis) if bar.label == "predicted")
    assert ("at best" in predicted.time) == ("at best" in " ".join(shown.remarks)) == (share > HELPS.share)


def bounds(measured: Measured, *rules: str, training: TrainingMatch | None = None) -> tuple[Bound, Bound]:
    """Return the bounds of the step and of the run that a trial of some rules' changes leaves."""
    of_run = RunTogether(ms=9.0, share=0.2, rules=("a",), bound=Bound.AT_MOST)
    row = trial("a", measured, rules=rules, training=training)
    told = with_measured_bounds(replace(with_trials(row), together=BOUND, run_together=of_run))
    return sure(told.together).bound, sure(told.run_together).bound


of_step = {
    "it helps": (HELPS, "a"),
    "of more changes": (HELPS, "a", "b"),
    "of no rule": HELPS,
    "of the whole run": (replace(HELPS, of_run=True), "a"),
    "it does nothing": (NOTHING, "a"),
}
texts[bounds] = {f"bounds of step and run: {name}": row for name, row in of_step.items()}
texts.add("bounds of step and run: it trains otherwise", lambda: bounds(HELPS, "a", training=DIFFERENT))
test_scales_and_bounds = texts.test("trial-scales")


# The program without its parts, in every format


def test_a_part_is_told_with_its_line_its_interval_and_the_bound_of_its_rule() -> None:
    with_line, with_rule, broken = trials.parts_grid(Trials(rows=(), parts=(CHECKPOINT, INPUT, BROKEN))).rows
    less = "47 % less of the whole run (44 to 50 %)"
    known = ("Without ModelCheckpoint", "train.py:9", "40 % of what recurs", less, "20.0 s, then 10.6 s")
    assert (with_line, with_rule[0]) == (known, "Input always ready")
    assert with_rule[3].startswith("38 % less of the step (33 to 42 %); input-bound at most ")
    assert broken[3] == "no figure, because the program fails without it (KeyError: 'a')"


@each(full(), tried())
def test_all_formats_have_the_experiments_and_call_none_a_saving(diagnosis: Diagnosis) -> None:
    shown = without(CHECKPOINT, INPUT, BROKEN, base=diagnosis)
    page, text = html.render_without_plotly(shown), terminal.render(shown, width=200)
    for rendered in (page, text, md.render(shown)):
        assert trials.PARTS_TITLE in rendered
        assert "no figure is a saving" in " ".join(rendered.split())
    written = json.loads(json_format.render(shown))["trials"]["without"]
    assert [row["part"] for row in written] == ["callback", "input", "summaries"]
    assert written[0]["measured"]["share"] == pytest.approx(0.47)
