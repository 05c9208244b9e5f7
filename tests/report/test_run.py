"""The account of the run: its sentences, its bar, its shares, and what changes save of it."""

from tests.report.kit import *


def shown(run: RunAccount) -> RunSection:
    made = section(run)
    assert made
    return made


def test_the_verdict_counts_the_entries_of_the_sum_of_the_run() -> None:
    base = diagnoses.run()
    assert [entry.in_run_sum for entry in base.entries][:4] == [True, True, True, False]
    assert base.run_together
    fewer = replace(base.run_together, rules=("slow-preparation", "compile-in-loop"))
    short = replace(base, run_together=fewer, order=None)
    words = " ".join(terminal.render(short, width=100, color=False).split())
    assert "included in input-bound, float32-matmul and between-steps" in words
    assert json_format.contract(short)["entries"][1]["in_run_together"] is False


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
    text = " ".join(terminal.render(of_run(run), width=width, color=False).split())
    assert ".py:12 · 9 s (90 %) · tracing and compiling · " in text
    assert re.search(r"compiling · keras\S* … \S*fit\b", text)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_unknown_numbers_break_no_report(number: float) -> None:
    base = account()
    rows = (base.rows[0], *(replace(row, ms=number) for row in base.rows[1:]))
    pieces = tuple(replace(one, end_ms=number) for one in base.segments)
    broken = of_run(replace(base, rows=rows, segments=pieces, step_median_ms=number, window_share=number))
    for text in (md.render(broken), html.render_without_plotly(broken), json_format.render(broken)):
        assert "nan" not in text.lower()
    assert terminal.render(broken, width=80, color=False)


def test_an_account_of_nothing_is_not_drawn() -> None:
    assert section(None) is None
    assert section(RunAccount(total_ms=0.0, rows=())) is None
    assert section(spent({Phase.STEPS: 1.0}, whole=False)) is None
    assert section(spent({Phase.STEPS: 1.0})) is not None


def test_a_page_without_an_account_has_nothing_of_it() -> None:
    page = html.render_without_plotly(diagnoses.full())
    assert "run-bar" not in page
    assert "phase-" not in page
