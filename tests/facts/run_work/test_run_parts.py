"""The parts of a run that can be taken out, with the time and the line of each."""

from tests.run_logs import Run, place
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts, TracedParts
from tfdoctor.terms.kinds import Part, RunCall, RunWork
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Trace

SAVING = {"work": RunWork.SAVING}


def parts_of(run: Run, traced: TracedParts | None = None) -> dict[str, RunPart]:
    chart = Chart([run.recording(), Trace(()), *([traced] if traced else ())])
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
    run = Run()
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(400, 10.0, "t.py:5")
    parts = parts_of(run, TracedParts(0.5, 0.1, Location("t.py", 4)))
    assert 1500 < parts["input"].ms < 2100
    assert parts["input"].length == 400
    assert 300 < parts["metrics"].ms < 420
    assert parts["metrics"].at == Location("t.py", 4)


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
