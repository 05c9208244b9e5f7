"""slow-preparation: loops over items are found by line, one call for all data is not."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_preparation import check

ITERROWS = "pandas.core.frame.DataFrame.iterrows"


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


def prepares(number: int, ms: float, calls: str = "", *, caller: int | None = None, **more: Any) -> RunLine:
    called = script(caller) if caller else None
    given = {"samples": int(ms / 50), "caller": called} | more
    return run_line(Phase.PREPARING, script(number), ms, calls, **given)


def adapted(batches: float, rows: float, ms: float) -> Verdict:
    given = {"name": "Normalization.adapt", "batches": batches, "examples": batches * rows}
    call = made_call(RunCall.ADAPT, script(22), 1, ms, **given)
    return example(calls=(call,), total_ms=24_000.0)


judged = partial(example, total_ms=60_000.0)


@golden_cases
def test_adapt(told: Cases) -> None:
    told["adapt on single examples is priced by its batches"] = adapted(40_000, 1, 16_000.0)
    for name, batches, rows in (
        ("two examples", 40_000, 2),
        ("large batches: necessary work", 40_000, 128),
        ("few batches", 150, 1),
        ("3.2 ms for each example: costly work, such as decoding, not its dispatch", 5_000, 1),
        ("eight examples", 20_000, 8),
        ("unknown batches", 0, 1),
    ):
        told[f"adapt on {name}"] = adapted(batches, rows, 16_000.0)


@golden_cases
def test_loops(told: Cases) -> None:
    for calls, repeats in (
        (ITERROWS, True),
        ("pandas.core.frame.DataFrame.apply", False),
        ("numpy.append", True),
        ("numpy.append", None),
        ("pandas.concat", True),
        ("PIL.Image.open", True),
        ("keras.src.utils.image_utils.load_img", True),
        ("tensorflow.io.decode_jpeg", True),
        ("tensorflow.cast", True),
        ("keras.src.layers.layer.Layer.__call__", True),
        ("nltk.tokenize.word_tokenize", True),
        ("numpy.loadtxt", False),
        ("urllib.request.urlopen", False),
        ("", True),
        ("re.sub", True),
        ("somebody.elses.clean", True),
        # One call for all data is necessary
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
        repeated = {True: "in a loop", False: "once", None: "perhaps in a loop"}[repeats]
        told[f"{calls or 'Python'} {repeated} takes 21 s"] = judged(prepares(33, 21_000.0, calls, repeats=repeats))
    for in_steps in (6_001.0, 5_999.0):
        step = run_line(Phase.STEPS, script(9), in_steps, "tensorflow.matmul")
        told[f"operations of a step that take {in_steps:,.0f} ms in the steps and 6,000 before"] = judged(
            prepares(9, 6_000.0, "tensorflow.matmul"), step
        )


@golden_cases
def test_verdicts(told: Cases) -> None:
    for name, ms, total in (
        ("3 s", 3_000.0, 60_000.0),
        ("less than 3 s", 2_999.0, 60_000.0),
        ("a tenth of the run", 1_000.0, 10_000.0),
        ("less than a tenth of the run", 999.0, 10_000.0),
    ):
        told[f"a loop of {name}"] = judged(prepares(3, ms, ITERROWS, samples=100), total_ms=total)
    told["four samples name no line"] = judged(prepares(3, 20_000.0, ITERROWS, samples=4))
    told["the lines of a loop and its function are one finding"] = judged(
        prepares(40, 3_000.0, ITERROWS),
        prepares(41, 500.0),
        prepares(20, 9_000.0, "pandas.core.series.Series.__getitem__", function="parse", caller=41),
        prepares(22, 6_000.0, function="parse", caller=41),
    )
    told["two loops are two effects, and the longer comes first"] = judged(
        prepares(10, 6_000.0, "numpy.append"), prepares(80, 9_000.0, "PIL.Image.open")
    )
    steps = partial(run_line, Phase.STEPS, script(40), 26_000.0, samples=400, function="add")
    told["an array that grows in each step"] = judged(steps("numpy.concatenate", around=(script(61), script(90))))
    told["other Python in steps may be the training"] = judged(steps("numpy.sum"))
    told["a read beside a loop is not counted with it"] = judged(
        prepares(30, 20_000.0, "pandas.read_csv", repeats=False), prepares(31, 5_000.0, ITERROWS)
    )
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["a part of the run"] = applied(check, part)
    told["what a program of another framework prepares"] = check(divided_run(60_000.0, {Phase.OWN: 30_000.0}), None)
