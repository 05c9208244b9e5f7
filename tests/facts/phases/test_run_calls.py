"""The calls of a run by the line that makes them."""

from dataclasses import replace

import pytest

from tests.builders import recording
from tests.run_logs import Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.recording.program import ProgramRecord, RunSettings
from tfdoctor.terms.kinds import RunCall


def only(run: Run, kind: RunCall) -> MadeCall:
    (found,) = RunCalls.measure(run.recording()).of(kind)
    return found


def predicts(times: int) -> Run:
    run = Run()
    for number in range(times):
        with run.call(RunCall.PREDICT, "p.py:7", "Model.predict", examples=1, steps=1, model=0):
            if not number:
                run.trace(0.5, "p.py:7", "predict_function")
            run.python(0.1, "p.py:7")
    return run


def test_calls_of_a_line_are_one_row_without_what_they_trace() -> None:
    found = only(predicts(20), RunCall.PREDICT)

    assert (found.name, found.count, found.function) == ("Model.predict", 20, "<module>")
    assert found.each_ms == pytest.approx(100)
    assert found.nested_ms == pytest.approx(500)
    assert found.times_ms == pytest.approx([600] + 19 * [100])
    assert (found.examples, found.batches, found.models) == (1.0, 1.0, 1)


@pytest.mark.parametrize(("times", "looped"), [(1, False), (2, False), (3, True)])
def test_many_calls_of_a_line_are_made_by_a_loop(times: int, *, looped: bool) -> None:
    assert only(predicts(times), RunCall.PREDICT).looped is looped


def test_a_function_called_from_several_lines_is_no_loop() -> None:
    run = Run()
    for line in (10, 20, 30):
        with run.call(RunCall.EVALUATE, "p.py:7", "Model.evaluate"):
            run.python(0.5, "p.py:7", caller=f"p.py:{line}")

    assert not only(run, RunCall.EVALUATE).looped


def fits(epochs: int) -> Run:
    run = Run()
    run.during(RunCall.EVALUATE, 0.6, "t.py:2", "Model.evaluate")
    with run.fit("t.py:5"):
        for number in range(epochs):
            with run.epoch("t.py:5", number):
                run.steps(200, 5.0, "t.py:5")
                run.during(RunCall.EVALUATE, 0.4, "t.py:5", "Model.evaluate")
    run.during(RunCall.PREDICT, 0.6, "t.py:9", "Model.predict")
    return run


def test_validation_is_told_from_evaluation_by_what_is_around_it() -> None:
    found = RunCalls.measure(fits(4).recording())

    first, validation = sorted(found.of(RunCall.EVALUATE), key=lambda call: call.count)
    assert (first.within, first.count) == (RunCall.SCRIPT, 1)
    assert (validation.within, validation.count) == (RunCall.EPOCH, 4)
    assert not validation.looped
    assert (first.before_training, validation.before_training) == (True, False)
    (predict,) = found.of(RunCall.PREDICT)
    assert predict.after_training


def test_epochs_are_counted() -> None:
    found = RunCalls.measure(fits(4).recording())

    assert (found.epochs, found.fits, found.planned_epochs) == (4, 1, None)


def test_the_only_fit_plans_the_epochs() -> None:
    settings = ProgramRecord(run=RunSettings(epochs=90, steps_per_epoch=40))
    once = replace(fits(4).recording(), program=settings)
    twice = fits(2)
    twice.during(RunCall.FIT, 1.0, "t.py:30", "Model.fit")

    known = RunCalls.measure(once)
    assert (known.planned_epochs, known.epoch_steps) == (90, 40)
    unknown = RunCalls.measure(replace(twice.recording(), program=settings))
    assert (unknown.planned_epochs, unknown.epoch_steps) == (None, None)


def test_passes_of_a_loop_of_ones_own_are_epochs() -> None:
    run = Run()
    for _ in range(5):
        run.steps(100, 4.0, "t.py:8")
        run.pass_over()
        run.python(0.3, "t.py:10")

    assert RunCalls.measure(run.recording()).epochs == 5


def test_parts_of_loops_are_no_calls() -> None:
    run = fits(2)
    run.trace(1.0, "t.py:20", "step", trains=True)
    run.steps(10, 4.0, "t.py:20")

    kinds = {call.call for call in RunCalls.measure(run.recording()).calls}

    assert kinds == {RunCall.FIT, RunCall.EVALUATE, RunCall.PREDICT}


def test_without_a_log_nothing_is_known() -> None:
    with pytest.raises(Unavailable, match="not recorded"):
        RunCalls.measure(recording())


def test_calls_right_after_the_last_fit_come_after_training() -> None:
    run = Run()
    with run.fit("t.py:5"), run.epoch("t.py:5", 0):
        run.steps(200, 5.0, "t.py:5")
    for _ in range(4):
        run.during(RunCall.PREDICT, 0.01, "t.py:9", "Model.predict")  # in the bucket of the last steps

    assert only(run, RunCall.PREDICT).after_training


def test_calls_after_a_loop_of_ones_own_come_after_training() -> None:
    run = Run()
    run.trace(1.0, "t.py:20", "step", trains=True)
    run.steps(400, 5.0, "t.py:20")
    run.python(3.0, "t.py:30")
    for _ in range(4):
        run.during(RunCall.PREDICT, 0.5, "t.py:40", "Model.predict")

    assert only(run, RunCall.PREDICT).after_training
