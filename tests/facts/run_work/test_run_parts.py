"""The parts of a run that can be taken out, with the time and the line of each."""

import pytest

from tests.rules.cases.hot_operation import group
from tests.run_logs import Run, place
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.kinds import Part, RunCall, RunWork
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Trace

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


def test_functions_of_batches_are_in_the_step_unless_they_make_some_steps_long() -> None:
    (found,) = called_back({"callback": "Norms.on_train_batch_end"})
    assert found.in_step is True
    (found,) = called_back({"callback": "Norms.on_train_batch_end", "long": True})
    assert found.in_step is None


def test_an_earlier_recording_tells_the_class_by_the_users_function() -> None:
    (found,) = called_back({"function": "make.<locals>.Norms.on_batch_end"})
    assert (found.name, found.in_step) == ("Norms", True)


@pytest.mark.parametrize(
    "stack",
    [
        {"callback": "History.on_epoch_end"},
        {"callback": "ProgbarLogger.on_train_batch_end"},
        {"function": "Server.on_request"},
        {"function": "on_epoch_end"},
    ],
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
