"""slow-preparation: loops over items are found by line, one call for all data is not."""

from tests.rules.kit import *
from tfdoctor.rules.run import slow_preparation
from tfdoctor.rules.run.slow_preparation import check


def example(*lines: RunLine, total_ms: float = 131_000.0, calls: tuple[MadeCall, ...] = ()) -> Verdict:
    """Judge a run that prepares data at these lines and in these calls, and trains otherwise."""
    preparing = sum(line.ms for line in lines) + sum(call.ms for call in calls)
    phases = divided_run(total_ms, {Phase.PREPARING: preparing}, *lines)
    return check(phases, RunCalls(calls))


def sick() -> Verdict:
    """A table of 100,000 rows is read by iterrows: 21 of 131 s."""
    at, calls = Location("prepare.py", 33), "pandas.core.frame.DataFrame.iterrows"
    saved = run_line(Phase.PREPARING, Location("prepare.py", 60), 400.0, "numpy.save", repeats=False)
    return example(run_line(Phase.PREPARING, at, 21_000.0, calls, samples=420, function="load_table"), saved)


def healthy() -> Verdict:
    """The same table is read by read_csv in 2 s, and used as columns."""
    at = Location("prepare.py", 12)
    line = run_line(Phase.PREPARING, at, 2_000.0, "pandas.read_csv", repeats=False)
    return example(line, total_ms=112_000.0)


def line(number: int, ms: float, calls: str = "", *, caller: int | None = None, **more: Any) -> RunLine:
    called = Location("train.py", caller) if caller else None
    given = {"samples": int(ms / 50), "caller": called} | more
    return run_line(Phase.PREPARING, Location("train.py", number), ms, calls, **given)


judged = partial(example, total_ms=60_000.0)


def found(*lines: RunLine) -> Finding:
    return as_finding(judged(*lines))


def adapted(batches: float, rows: float, ms: float) -> Verdict:
    given = {"name": "Normalization.adapt", "batches": batches, "examples": batches * rows}
    call = made_call(RunCall.ADAPT, Location("train.py", 22), 1, ms, **given)
    return example(calls=(call,), total_ms=24_000.0)


def test_adapt_on_single_examples_is_priced_by_its_batches() -> None:
    finding = as_finding(adapted(40_000, 1, 16_000.0))
    assert "Normalization.adapt reads 40,000 batches of one example at train.py:22: 16" in finding.summary
    (effect,) = finding.run_effects
    assert (effect.of.value, effect.scales, effect.bound) == (16_000.0, 1 / 4096, Bound.AT_MOST)
    assert finding.at == Location("train.py", 22)
    (table,) = (part for part in finding.evidence if isinstance(part, Table))
    assert [cell.value for cell in table.rows[0][2:] if isinstance(cell, Quantity)] == [
        1, 40_000, 1, near(0.4), 16_000, near(2 / 3),
    ]  # fmt: skip
    assert isinstance(adapted(40_000, 2, 16_000.0), Finding)


def test_adapt_that_works_on_much_data_is_necessary() -> None:
    for batches, rows in (
        (40_000, 128),  # large batches: necessary work
        (150, 1),  # few
        (5_000, 1),  # 3.2 ms for each example: costly work, such as decoding, not its dispatch
        (20_000, 8),
        (0, 1),  # unknown
    ):
        assert isinstance(adapted(batches, rows, 16_000.0), Healthy)


ITERROWS = "pandas.core.frame.DataFrame.iterrows"


def test_each_kind_of_loop_is_named() -> None:
    for calls, repeats, says in (
        (ITERROWS, True, "Rows of a table"),
        ("pandas.core.frame.DataFrame.apply", False, "Rows of a table"),
        ("numpy.append", True, "is copied each time"),
        ("numpy.append", None, "is copied each time"),
        ("pandas.concat", True, "is copied each time"),
        ("PIL.Image.open", True, "Files are read"),
        ("keras.src.utils.image_utils.load_img", True, "Files are read"),
        ("tensorflow.io.decode_jpeg", True, "Files are read"),
        ("tensorflow.cast", True, "TensorFlow operations"),
        ("nltk.tokenize.word_tokenize", True, "Texts"),
        ("numpy.loadtxt", False, "A text file"),
        ("urllib.request.urlopen", False, "downloaded"),
        ("", True, "A loop in Python"),
        ("re.sub", True, "A loop in Python"),
        ("somebody.elses.clean", True, "A loop in Python"),
    ):
        finding = found(line(33, 21_000.0, calls, repeats=repeats))
        assert says in finding.summary
        assert "train.py:33" in finding.summary
        assert finding.remedies[0].at == Location("train.py", 33)
        effect = finding.run_effects[0]
        assert (effect.phase, effect.of.value, effect.bound) == (Phase.PREPARING, near(21_000.0), Bound.AT_MOST)


def test_one_call_for_all_data_is_necessary() -> None:
    for calls, repeats in (
        ("pandas.read_csv", False),
        ("pandas.read_csv", True),  # several files
        ("numpy.load", True),
        ("numpy.concatenate", False),
        ("numpy.concatenate", None),
        ("sklearn.feature_extraction.text.TfidfVectorizer.fit_transform", False),
        ("sklearn.decomposition._pca.PCA.fit_transform", True),
        ("numpy.linalg.svd", True),
        ("multiprocessing.pool.Pool.map", True),
        ("tensorflow.cast", False),
        ("", False),  # np.random.rand(10**9): a function of C has no frame
        ("", None),
    ):
        assert "train.py:12" in as_healthy(judged(line(12, 21_000.0, calls, repeats=repeats))).summary


def test_both_limits_count() -> None:
    cases = (3_000.0, 60_000.0), (2_999.0, 60_000.0), (1_000.0, 10_000.0), (999.0, 10_000.0)
    both = [judged(line(3, ms, ITERROWS, samples=100), total_ms=total) for ms, total in cases]
    assert kinds(*both) == [Finding, Healthy, Finding, Healthy]
    assert isinstance(judged(line(3, 20_000.0, ITERROWS, samples=4)), Healthy)  # name no line


def test_the_lines_of_a_loop_and_its_function_are_one_finding() -> None:
    finding = found(
        line(40, 3_000.0, ITERROWS),
        line(41, 500.0),
        line(20, 9_000.0, "pandas.core.series.Series.__getitem__", function="parse", caller=41),
        line(22, 6_000.0, function="parse", caller=41),
    )
    assert [effect.of.value for effect in finding.run_effects] == [near(18_500.0)]
    assert "Rows of a table" in finding.summary
    table = next(item for item in finding.evidence if isinstance(item, Table))
    assert {row[0] for row in table.rows} == {Location("train.py", number) for number in (20, 22, 40, 41)}


def test_two_loops_are_two_effects_and_the_longer_comes_first() -> None:
    finding = found(line(10, 6_000.0, "numpy.append"), line(80, 9_000.0, "PIL.Image.open"))
    assert [effect.subject for effect in finding.run_effects] == ["train.py:80", "train.py:10"]
    assert [remedy.at for remedy in finding.remedies[:2]] == [Location("train.py", 80), Location("train.py", 10)]
    assert "one more such place" in finding.summary


def test_a_read_beside_a_loop_is_not_counted_with_it() -> None:
    finding = found(line(30, 20_000.0, "pandas.read_csv", repeats=False), line(31, 5_000.0, ITERROWS))
    assert sum(effect.of.value for effect in finding.run_effects) == near(5_000.0)


def test_what_is_not_known_is_not_judged() -> None:
    """A part of the run, and what a program of another framework prepares."""
    phases = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(slow_preparation, phases) == NotApplicable(reason="only a window was traced")
    other = divided_run(60_000.0, {Phase.OWN: 30_000.0})
    assert isinstance(slow_preparation.check(other, None), NotApplicable)
