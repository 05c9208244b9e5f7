"""The parts of a run that can be taken out, with the time and the line of each."""

from tests.facts.kit import *
from tests.rules.test_hot_operation import one_group as group
from tests.run_logs import place
from tfdoctor.facts.run_work.line_groups import called_work, line_groups

SAVING = {"work": RunWork.SAVING}


def parts_of(run: Run, *traced: object) -> dict[str, RunPart]:
    chart = Chart([run.recording(), Trace(()), *traced])
    return {one.name: one for one in chart.fact(RunParts).parts}


def trained(epochs: int = 4, saves: int = 1) -> Run:
    """Return a run that evaluates and saves at the end of each epoch."""
    run = Run()
    with run.fit("t.py:5"):
        for number in range(epochs):
            with run.epoch("t.py:5", number):
                run.steps(100, 5.0, "t.py:5")
                run.during(RunCall.EVALUATE, 0.5, "t.py:5", "Model.evaluate")
                for _ in range(saves):
                    run.during(RunCall.SAVE, 0.3, "t.py:40", "save_model")
    return run


def test_calls_between_epochs_are_parts_at_their_line() -> None:
    parts = parts_of(trained())
    evaluation = parts["Model.evaluate"]
    assert evaluation.part is Part.EVALUATION
    assert evaluation.at == Location("t.py", 5)
    assert evaluation.line == place("t.py:5")
    assert evaluation.in_step is False
    assert parts["save_model"].part is Part.SAVING


def test_calls_after_every_few_steps_are_in_the_step() -> None:
    assert parts_of(trained(saves=20))["save_model"].in_step


def test_calls_before_and_after_the_training_are_none() -> None:
    run = Run()
    for _ in range(3):
        run.during(RunCall.EVALUATE, 0.5, "t.py:2", "Model.evaluate")
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(100, 5.0, "t.py:5")
    for _ in range(3):
        run.during(RunCall.PREDICT, 0.5, "t.py:9", "Model.predict")
    assert not parts_of(run)


def test_what_a_callback_of_keras_saves_at_the_line_of_fit_is_the_callbacks() -> None:
    run = Run()
    with run.fit("t.py:5"):
        for number in range(3):
            with run.epoch("t.py:5", number):
                run.steps(100, 5.0, "t.py:5")
                with run.call(RunCall.SAVE, "t.py:5", "save_model"):
                    run.python(1.0, "t.py:5", callback="ModelCheckpoint.on_epoch_end")
    assert list(parts_of(run)) == ["ModelCheckpoint"]


def test_the_input_and_the_metrics_have_their_shares_of_the_traced_steps() -> None:
    run, at = Run(), Location("t.py", 4)
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(400, 10.0, "t.py:5")
    metrics = group("Mul", 1.0, at=at, only_metrics=True)
    breakdown = Breakdown.of(input=5.0 * metrics.ms, device=5.0 * metrics.ms)
    parts = parts_of(run, breakdown, OperationGroups((metrics,)))
    assert 1500 < parts["input"].ms < 2100
    assert parts["input"].length == 400
    assert 300 < parts["metrics"].ms < 420
    assert parts["metrics"].at == at


def called_back(*stacks: dict[str, object]) -> list[RunPart]:
    run = Run()
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(100, 5.0, "t.py:5")
        for stack in stacks:
            run.python(2.0, **{"at": "t.py:5", **stack})  # type: ignore[arg-type]  # fields of a stack
    return [one for one in parts_of(run).values() if one.part is Part.CALLBACK]


def test_classes_of_callbacks_are_told_apart_the_largest_first() -> None:
    found = called_back(
        {"callback": "CSVLogger.on_epoch_end"},
        {"callback": "Snapshot.on_epoch_end", "at": "t.py:90"},
        {"callback": "Snapshot.on_epoch_begin", "at": "t.py:95"},
    )
    assert [one.name for one in found] == ["Snapshot", "CSVLogger"]
    assert found[0].ms == pytest.approx(4000, rel=0.05)
    assert found[0].line in {place("t.py:90"), place("t.py:95")}
    assert found[0].in_step is False
    assert found[1].line == place("t.py:5")


@cases(
    ({"callback": "Norms.on_train_batch_end"}, True),
    ({"callback": "Norms.on_train_batch_end", "long": True}, None),  # it makes some steps long
    ({"function": "make.<locals>.Norms.on_batch_end"}, True),  # of an earlier recording
)
def test_functions_of_batches_are_in_the_step(stack: dict[str, object], *, in_step: bool | None) -> None:
    (found,) = called_back(stack)
    assert (found.name, found.in_step) == ("Norms", in_step)


@each(
    {"callback": "History.on_epoch_end"},
    {"callback": "ProgbarLogger.on_train_batch_end"},
    {"function": "Server.on_request"},
    {"function": "on_epoch_end"},
)
def test_what_keras_adds_itself_and_other_functions_are_no_callbacks(stack: dict[str, object]) -> None:
    assert not called_back(stack)


def test_saves_and_summaries_that_only_samples_show_come_nobody_knows_how_often() -> None:
    run = Run()
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(100, 5.0, "t.py:5")
        run.python(1.0, "t.py:30", calls="tensorflow.train.CheckpointManager.save", **SAVING)
        run.python(1.0, "t.py:31", calls="tensorflow.summary.histogram", **SAVING)
        run.python(3.0, "t.py:32", calls="keras.Model.summary", **SAVING)
    parts = parts_of(run)
    assert parts["CheckpointManager.save"].line == place("t.py:30")
    assert parts["CheckpointManager.save"].in_step is None
    assert parts["tf.summary"].part is Part.SUMMARIES
    assert parts["tf.summary"].at == Location("t.py", 31)


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


def grouped(*lines: RunLine) -> list[set[int]]:
    return [{one.at.line for one in group.lines if one.at} for group in line_groups(lines)]


def called(at: int) -> RunLine:
    """A line of a function that is called there."""
    return sample(5, function="f", caller=at)


@cases(
    ([called(40), sample(40)], [{5, 40}]),  # the loop that calls it
    ([called(41), sample(40)], [{5, 40}]),  # or that begins above the call
    ([called(40), sample(42)], [{5, 42}]),
    ([called(46), sample(40)], [{5}, {40}]),
    ([called(40), sample(40, repeats=False, ms=50.0)], [{5}, {40}]),  # called once it stands alone
    ([sample(10), sample(11, exact=True, ms=50.0), sample(12)], [{10, 12}, {11}]),  # timed calls are no Python
    ([RunLine(phase=Phase.PREPARING, at=None, ms=5.0, samples=9)], []),
)
def test_a_function_belongs_to_the_loop_that_calls_it(lines: list[RunLine], groups: list[set[int]]) -> None:
    assert grouped(*lines) == groups


@each(
    sample(11, exact=True, calls="Model.predict"),  # a timed call is one whatever repeats it
    # Trap: a tuning loop calls clear_session on purpose, which collects Python's garbage for a second.
    sample(6, calls="keras.src.backend.common.global_state.clear_session"),
)
def test_what_is_no_python_of_a_loop(one: RunLine) -> None:
    assert [group.work for group in line_groups([one])] == [CalledWork.BULK]


def test_the_lines_of_a_comprehension_are_called_by_what_calls_its_function() -> None:
    inner = sample(5, function="f.<locals>.<listcomp>", caller=5)
    (group,) = line_groups([inner, sample(5, function="f", caller=60, ms=9.0)])
    assert group.caller == Location("a.py", 60)
    assert group.function == "f"


def test_a_function_belongs_to_the_library_call_for_each_row() -> None:
    applied = sample(40, repeats=False, calls="pandas.core.frame.DataFrame.apply")
    groups = line_groups([sample(5, function="f", caller=40), applied])
    assert len(groups) == 1
    assert groups[0].work is CalledWork.ROWS
    assert groups[0].at == Location("a.py", 40)


# What a line has a library do: item by item, or all at once.


def called_line(calls: str, *, loops: int = 0, repeats: bool = True, at: int = 29) -> RunLine:
    of: Any = {"phase": Phase.BOUNDARIES, "ms": 900.0, "samples": 18, "calls": calls, "loops": loops}
    return sample(at, function="make_epoch", repeats=repeats, **of)


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
