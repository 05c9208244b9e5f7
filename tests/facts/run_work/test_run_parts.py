"""The parts of a run that can be taken out, with the time and the line of each."""

from tests.facts.kit import *
from tests.rules.test_hot_operation import one_group as group
from tests.run_logs import Act, during, epoch, fit, made, python, steps, within

told = Told()
SAVING = {"work": RunWork.SAVING}


def parts_of(run: Run, *traced: object) -> dict[str, RunPart]:
    chart = Chart([run.recording(), Trace(()), *traced])
    return {one.name: one for one in chart.fact(RunParts).parts}


def parts(*acts: Act) -> object:
    return list(parts_of(made(*acts)).values())


def trained(saves: int = 1) -> Act:
    """A run that evaluates and saves at the end of each of four epochs."""
    evaluates = during(RunCall.EVALUATE, 0.5, "t.py:5", "Model.evaluate")
    each = steps(100, 5.0, "t.py:5"), evaluates, *saves * [during(RunCall.SAVE, 0.3, "t.py:40", "save_model")]
    return fit("t.py:5", *(epoch("t.py:5", *each) for _ in range(4)))


def after_steps(*acts: Act) -> Act:
    return fit("t.py:5", epoch("t.py:5", steps(100, 5.0, "t.py:5"), *acts))


def called_back(*stacks: dict[str, Any]) -> Act:
    return after_steps(*(python(2.0, **{"at": "t.py:5", **stack}) for stack in stacks))


EVALUATES = during(RunCall.EVALUATE, 0.5, "t.py:2", "Model.evaluate")
PREDICTS = during(RunCall.PREDICT, 0.5, "t.py:9", "Model.predict")
CHECKPOINT = within(
    RunCall.SAVE, "t.py:5", "save_model", python(1.0, "t.py:5", callback="ModelCheckpoint.on_epoch_end")
)

told[parts] = {
    "calls between epochs are parts at their line": trained(),
    "calls after every few steps are in the step": trained(saves=20),
    "calls before and after the training are none": (*3 * [EVALUATES], after_steps(), *3 * [PREDICTS]),
    "what a callback of Keras saves at the line of fit is the callbacks": fit(
        "t.py:5", *(epoch("t.py:5", steps(100, 5.0, "t.py:5"), CHECKPOINT) for _ in range(3))
    ),
    "classes of callbacks are told apart, the largest first": called_back(
        {"callback": "CSVLogger.on_epoch_end"},
        {"callback": "Snapshot.on_epoch_end", "at": "t.py:90"},
        {"callback": "Snapshot.on_epoch_begin", "at": "t.py:95"},
    ),
    "functions of batches are in the step": called_back({"callback": "Norms.on_train_batch_end"}),
    "of those that make some steps long": called_back({"callback": "Norms.on_train_batch_end", "long": True}),
    "functions of batches of an earlier recording": called_back({"function": "make.<locals>.Norms.on_batch_end"}),
    "the history of Keras is no callback": called_back({"callback": "History.on_epoch_end"}),
    "nor is its progress bar": called_back({"callback": "ProgbarLogger.on_train_batch_end"}),
    "nor are other methods with such names": called_back({"function": "Server.on_request"}),
    "nor functions": called_back({"function": "on_epoch_end"}),
    "saves and summaries that only samples show come nobody knows how often": after_steps(
        python(1.0, "t.py:30", calls="tensorflow.train.CheckpointManager.save", **SAVING),
        python(1.0, "t.py:31", calls="tensorflow.summary.histogram", **SAVING),
        python(3.0, "t.py:32", calls="keras.Model.summary", **SAVING),
    ),
}


@told
def the_input_and_the_metrics_have_their_shares_of_the_traced_steps() -> object:
    metrics = group("Mul", 1.0, at=Location("t.py", 4), only_metrics=True)
    breakdown = Breakdown.of(input=5.0 * metrics.ms, device=5.0 * metrics.ms)
    run = made(fit("t.py:5", epoch("t.py:5", steps(400, 10.0, "t.py:5"))))
    return list(parts_of(run, breakdown, OperationGroups((metrics,))).values())


def test_shares_are_of_what_recurs() -> None:
    found = RunParts((RunPart(part=Part.INPUT, name="input", ms=300.0),), recurring_ms=1000.0)
    assert found.share(found.parts[0]) == 0.3
    assert RunParts(found.parts, recurring_ms=0.0).share(found.parts[0]) == 0.0


# Lines of the run are put into groups: none is lost, none is counted twice.

places = st.builds(Location, st.sampled_from(["a.py", "b.py"]), st.integers(1, 30))
lines = st.builds(
    RunLine,
    phase=st.sampled_from([Phase.PREPARING, Phase.BOUNDARIES]),
    at=places,
    ms=st.integers(1, 1000).map(float),
    samples=st.integers(1, 20),
    function=st.sampled_from(["<module>", "f", "g", "<lambda>"]),
    caller=st.none() | places,
    calls=st.sampled_from(["", "pandas.concat", "numpy.sort"]),
    repeats=st.sampled_from([True, False, None]),
    exact=st.booleans(),
)


@given(st.lists(lines, max_size=12))
def test_each_line_is_in_one_group(given_lines: list[RunLine]) -> None:
    groups = line_groups(given_lines)
    grouped = [line for group in groups for line in group.lines]
    assert sorted(map(repr, grouped)) == sorted(map(repr, given_lines))
    assert [group.ms for group in groups] == sorted((group.ms for group in groups), reverse=True)


@given(st.lists(lines, min_size=1, max_size=12))
def test_a_group_is_of_one_phase_and_names_a_sure_line(given_lines: list[RunLine]) -> None:
    for found in line_groups(given_lines):
        assert {line.phase for line in found.lines} == {found.phase}
        assert found.top is None or found.top.sure
        assert (found.top is None) == (not any(line.sure for line in found.lines))


def sample(number: int, *, function: str = "<module>", caller: int = 0, **given: Any) -> RunLine:
    known: dict[str, Any] = {"phase": Phase.PREPARING, "ms": 100.0, "samples": 9, "repeats": True} | given
    at = Location("a.py", caller) if caller else None
    return RunLine(at=Location("a.py", number), function=function, caller=at, **known)


def grouped(*lines: RunLine) -> object:
    found: Any = [fields(one, "phase work at caller function ms lines") for one in line_groups(lines)]
    return [one | {"lines": tuple(line.at and line.at.line for line in one["lines"])} for one in found]


def called(at: int) -> RunLine:
    """A line of a function that is called there."""
    return sample(5, function="f", caller=at)


COMPREHENSION = sample(5, function="f.<locals>.<listcomp>", caller=5)
APPLIES = sample(40, repeats=False, calls="pandas.core.frame.DataFrame.apply")

told[grouped] = {
    "a function belongs to the loop that calls it": (called(40), sample(40)),
    "or that begins above the call": (called(41), sample(40)),
    "or that goes on below it": (called(40), sample(42)),
    "not to one that is far above": (called(46), sample(40)),
    "called once it stands alone": (called(40), sample(40, repeats=False, ms=50.0)),
    "timed calls are no Python": (sample(10), sample(11, exact=True, ms=50.0), sample(12)),
    "time without a line is in no group": RunLine(phase=Phase.PREPARING, at=None, ms=5.0, samples=9),
    "a timed call is one whatever repeats it": sample(11, exact=True, calls="Model.predict"),
    # Trap: a tuning loop calls clear_session on purpose, which collects Python's garbage for a second.
    "clear_session is no Python of a loop": sample(6, calls="keras.src.backend.common.global_state.clear_session"),
    "a comprehension's lines are called by what calls its function": (COMPREHENSION, replace(called(60), ms=9.0)),
    "a function belongs to the library call for each row": (called(40), APPLIES),
}


# What a line has a library do: item by item, or all at once.


def called_line(calls: str, *, loops: int = 0, repeats: bool = True, at: int = 29) -> RunLine:
    of: Any = {"phase": Phase.BOUNDARIES, "ms": 900.0, "samples": 18, "calls": calls, "loops": loops}
    return sample(at, function="make_epoch", repeats=repeats, **of)


test_run_parts = told.test("run_parts")


@cases(
    ("numpy.random.choice", 1, CalledWork.BULK),  # may draw a whole epoch
    ("numpy.random.choice", 2, CalledWork.PYTHON),
    ("numpy.add", 1, CalledWork.PYTHON),
    ("sklearn.preprocessing.scale", 3, CalledWork.BULK),
    ("PIL.Image.open", 1, CalledWork.FILES),
    ("PIL.Image.Image.save", 1, CalledWork.BULK),  # what a run writes, it must write
)
def test_the_work_of_a_line_in_loops(calls: str, loops: int, work: CalledWork) -> None:
    assert called_work(called_line(calls, loops=loops)) is work
    assert called_work(called_line("numpy.random.choice", repeats=False)) is CalledWork.BULK


@cases((3, 1, CalledWork.PYTHON), (2, 1, CalledWork.BULK), (3, 0, CalledWork.BULK))
def test_several_lines_of_a_loop_work_item_by_item(lines: int, loops: int, work: CalledWork) -> None:
    body = [called_line("numpy.random.normal", loops=loops, at=20 + n) for n in range(lines)]
    assert [group.work for group in line_groups(body)] == [work]
