"""The account of the run: its sentences, its bar, its shares, and what changes save of it."""

from tests.report.kit import *
from tfdoctor.diagnosis.work import ImportedPackage


def shown(run: RunAccount) -> RunSection:
    return sure(section(run))


def test_the_verdict_counts_the_entries_of_the_sum_of_the_run() -> None:
    base = diagnoses.run()
    assert [entry.in_run_sum for entry in base.entries][:4] == [True, True, True, False]
    fewer = replace(sure(base.run_together), rules=("slow-preparation", "compile-in-loop"))
    short = replace(base, run_together=fewer, order=None)
    words = " ".join(terminal.render(short, width=100, color=False).split())
    assert "included in input-bound, float32-matmul and between-steps" in words
    assert json_format.contract(short)["entries"][1]["in_run_together"] is False


STEP = Saving(ms_per_step=4.1, share=0.24, bound=Bound.AT_MOST, how="")
ONCE, PER_EPOCH, PER_STEP, PER_CALL = Recurrence
OF_STEPS = saves(17.3, PER_STEP, each=0.0041, times=4220)
RARE = replace(saves(13.0, ONCE), rated_share=0.03)
EXTRAPOLATED = saves(9.4, PER_STEP, extrapolated=0.31)
OF_RUN = account()
EARLY, WINDOW = replace(OF_RUN, ended_early=True), diagnoses.run_window().run


def words_of(saving: RunSaving | None, step: Saving | None = None, run: RunAccount | None = OF_RUN) -> str | None:
    words = run_saving(saving, step, run)
    return joined(*words) if words else None


texts = Told()
texts[words_of] = {
    "once, at most": saves(19.8, ONCE, bound=Bound.AT_MOST),
    "per epoch": saves(9.4, PER_EPOCH, each=0.94, times=10),
    "of steps, with their saving": (OF_STEPS, STEP),
    "of steps": OF_STEPS,
    "per call": saves(26.0, PER_CALL, each=0.0026, times=10_000),
    "in one call": saves(26.0, PER_CALL),
    "in an unknown number of calls": saves(26.0, PER_CALL, times=0),
    "of a longer run": saves(9.4, ONCE, extrapolated=0.31),
    "nothing of the run": saves(0.0, ONCE),
    "of the step alone": (None, STEP),
    # The share that gives the severity is told once.
    "rare in a longer run": RARE,
    "rare in a run of known length": replace(RARE, extrapolated_share=0.03),
    "not a number": saves(float("nan"), ONCE),
    # Of a run that was ended early, those of the step and the planned run are told:
    "ended early: of steps": (EXTRAPOLATED, STEP, EARLY),
    "ended early: once": (saves(9.4, ONCE), None, EARLY),
    "ended early: a warning": (replace(EXTRAPOLATED, extrapolated_share=0.04, rated_share=0.19), STEP, EARLY),
    "no account: a saving of the step is told elsewhere": (saves(1.0, PER_STEP), STEP, None),
    "a window: a saving of the step is told elsewhere": (saves(1.0, PER_STEP), STEP, WINDOW),
    "a window: once": (saves(0.2, ONCE, whole=1.2), None, WINDOW),
}
PACKAGES = (
    ImportedPackage(package="tensorflow", at=Location("train.py", 3), ms=4e3),
    ImportedPackage(package="sklearn", at=Location("train.py", 5), ms=1.2e3, late="its name is not used"),
)
texts.add("imports by package", lambda: shown(replace(OF_RUN, imports=PACKAGES)).notes)
texts.add("notes of a run that was ended early", lambda: shown(EARLY).notes)
FED = {"ms": 12_000, "importing_ms": 5100, "waiting_ms": 3000, "working_ms": 3900, "most_working_ms": 1500}
READS = PhaseLine(at=Location("feed.py", 7), ms=3500, calls="numpy.load")
IMPORTS = replace(READS, ms=5e3, calls="tf")
WORKERS = WorkersTime(number=4, starts=("spawn",), lines=(READS,), imports=(IMPORTS,), **FED)
FEEDING = of_run(replace(OF_RUN, workers=WORKERS))
texts.add("worker processes", lambda: [line for line in md.render(FEEDING).splitlines() if "worker" in line])
test_a_saving_is_told_in_its_own_unit_and_of_the_run = texts.test("savings")


@given(st.dictionaries(st.sampled_from(list(Phase)), st.floats(0.001, 1e6), min_size=1))
def test_shown_shares_sum_to_the_whole_within_their_rounding(times: dict[Phase, float]) -> None:
    made = shown(spent({phase: times[phase] for phase in Phase if phase in times}))
    shares = [made.share(row) for row in made.phases]
    assert len(shares) == len(times)
    slack = sum(1.0 if share[0] in "<>" else 0.5 for share in shares)
    assert sum(float(re.sub(r"[^\d]", "", share)) for share in shares) == pytest.approx(100, abs=slack + 1e-6)


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


@each(40, 60, 100)
def test_the_bar_of_a_terminal_fills_its_width_and_no_phase_is_broken(width: int) -> None:
    lines = terminal.render(diagnoses.run(), width=width, color=False).splitlines()
    (drawn,) = [line for line in lines if "▓▓▓" in line]
    assert cell_len(drawn) == width
    assert "▓ preparing data 21.4 s" in "\n".join(lines)
    assert max(map(cell_len, lines)) <= width


LONG_NAME = "keras_long_name_training_script_for_convolutional_classifiers.py"


@each(40, 60, 80, 100)
def test_a_line_keeps_its_figures_however_narrow_the_terminal_is(width: int) -> None:
    calls = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.fit"
    line = PhaseLine(at=Location(LONG_NAME, 12), ms=9_000.0, calls=calls)
    run = spent({Phase.TRACING: 10.0})
    run = replace(run, rows=(replace(run.rows[0], lines=(line,)),))
    text = " ".join(terminal.render(of_run(run), width=width, color=False).split())
    assert ".py:12 · 9 s (90 %) · tracing and compiling · " in text
    assert re.search(r"compiling · keras\S* … \S*fit\b", text)


@each(float("nan"), float("inf"))
def test_unknown_numbers_break_no_report(number: float) -> None:
    base = account()
    rows = (base.rows[0], *(replace(row, ms=number) for row in base.rows[1:]))
    pieces = tuple(replace(one, end_ms=number) for one in base.segments)
    broken = of_run(replace(base, rows=rows, segments=pieces, step_median_ms=number, window_share=number))
    for text in (md.render(broken), html.render_without_plotly(broken), json_format.render(broken)):
        assert "nan" not in text.lower()
    assert terminal.render(broken, width=80, color=False)


def test_an_account_of_nothing_is_not_drawn() -> None:
    empty, window = RunAccount(total_ms=0.0, rows=()), spent({Phase.STEPS: 1.0}, whole=False)
    assert [section(one) for one in (None, empty, window)] == [None] * 3
    assert section(spent({Phase.STEPS: 1.0})) is not None
