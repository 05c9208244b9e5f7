"""The calls of a run by the line that makes them."""

from dataclasses import replace

import pytest

from tests.builders import recording
from tests.run_logs import Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_calls import NUMBERED, ChangingNumber, MadeCall, RunCalls, RunTraces
from tfdoctor.recording.agent import StepsSeen, TracedFunction
from tfdoctor.recording.program import ProgramRecord, RunSettings
from tfdoctor.recording.run_log import AssignedNumber, FunctionTrace, TracedNumber
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location


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


def compiled_in_each_epoch() -> Run:
    run = Run()
    for number in range(4):
        with run.fit("train.py:9"), run.epoch("train.py:9"):
            run.trace(1.0 if number else 2.0, "train.py:9", "step", trains=True, made=2 * number)
            run.steps(50, 4.0, "train.py:9")
            with run.call(RunCall.EVALUATE, "train.py:9", "Model.evaluate"):
                run.trace(0.5, "train.py:9", "step", made=2 * number + 1)
    return run


def test_new_function_objects_of_a_line_are_one_function() -> None:
    found = RunTraces.measure(compiled_in_each_epoch().recording())

    training, evaluation = found.functions
    assert (training.at, training.tracings, training.made) == (Location("train.py", 9), 4, 4)
    assert (training.within, evaluation.within) == (RunCall.STEP, RunCall.EVALUATE)
    assert training.ms == pytest.approx(5000 - 4 * 4)  # each call is a step as well
    assert training.first_ms == pytest.approx(1996)
    assert training.again_ms == pytest.approx(3000 - 12)
    assert len(training.starts_s) == 4
    assert evaluation.ms == pytest.approx(2000)


def test_graphs_of_as_many_operations_and_weights_are_the_same_graph() -> None:
    run = Run()
    for made, (operations, variables) in enumerate([(318, 192), (318, 192), (318, 768), (0, 0), (0, 0)]):
        run.traces.append(FunctionTrace("step", None, float(made), 500.0, made, 0, operations, variables))
    run.python(9.0, "tune.py:7")

    (found,) = RunTraces.measure(run.recording()).functions

    assert found.alike_ms == pytest.approx(500)
    assert found.alike == 1


def changing(*traces: dict[str, str]) -> tuple[ChangingNumber, ...]:
    """Return what is told of a function that is traced with these values of its parameters."""
    run = Run()
    for number, given in enumerate(traces):
        numbers = tuple(
            TracedNumber(name, value, ("/job/tune.py", 61) if name == "lr" else None)
            for name, value in given.items()
        )
        trace = FunctionTrace("step", None, float(number), 500.0, 0, numbers=numbers)
        run.traces.append(replace(trace, defined=("/job/tune.py", 36)))
    run.python(9.0, "tune.py:7")
    (found,) = RunTraces.measure(run.recording()).functions
    assert found.defined == Location("tune.py", 36)
    return found.numbers


RATES = [f"0.{number}" for number in range(1, 8)]
LR = ChangingNumber("lr", tuple(RATES), Location("tune.py", 61))


def test_python_numbers_that_change_are_told_with_their_line() -> None:
    assert changing(*({"lr": rate, "kind": "'a'"} for rate in RATES)) == (LR,)


def test_the_source_says_which_line_assigned_a_number() -> None:
    run, call = Run(), ("/job/tune.py", 70)
    for number, rate in enumerate(RATES):
        given = (TracedNumber("lr", rate),)
        run.traces.append(FunctionTrace("step", call, float(number), 500.0, 0, numbers=given))
    run.python(9.0, "tune.py:7")
    known, at = run.recording(), ("/job/tune.py", 61)
    assert known.run is not None
    others = AssignedNumber("other", "lr", call, call), AssignedNumber("step", "lr", at, call)
    assigned = AssignedNumber("step", "lr", call, at), *others
    (found,) = RunTraces.measure(replace(known, run=replace(known.run, assigned=assigned))).functions
    assert found.numbers == (LR,)


def test_numbers_are_the_cause_where_each_is_traced_for_two_shapes() -> None:
    assert changing(*({"lr": rate} for rate in RATES for _ in range(2))) == (LR,)


def test_numbers_are_no_cause_where_most_traces_have_the_old_values() -> None:
    assert changing(*({"lr": rate} for rate in ("0.1", "0.2") for _ in range(4))) == ()
    assert changing(*({"lr": "0.1"} for _ in range(8))) == ()
    assert changing(*({} for _ in range(30)), *({"lr": rate} for rate in RATES)) == ()


def test_truth_values_are_no_cause() -> None:
    assert changing(*({"training": truth} for truth in ("True", "False"))) == ()
    both = [{"training": truth, "lr": rate} for rate in RATES for truth in ("True", "False")]
    assert changing(*both) == (LR,)


def test_a_definition_is_run_again_where_its_python_functions_are_new() -> None:
    for kept, redefined in ((False, True), (True, False)):
        run = Run()
        for made in range(3):
            run.traces.append(FunctionTrace("step", None, float(made), 9.0, made, kept=kept and made > 0))
        run.python(9.0, "gan.py:7")
        (found,) = RunTraces.measure(run.recording()).functions
        assert (found.made, found.redefined) == (3, redefined)


def test_traces_without_numbers_after_the_first_50_count_for_nothing() -> None:
    many = [str(number) for number in range(NUMBERED)]
    (found,) = changing(*({"lr": value} for value in many), *({} for _ in range(500)))
    assert found.values == tuple(many)


def test_a_function_that_is_traced_within_another_one_is_part_of_it() -> None:
    run = Run()
    run.trace(1.0, "p.py:3", "outer")
    run.traces.append(FunctionTrace("inner", None, run.now - 0.6, 300.0))

    assert [one.name for one in RunTraces.measure(run.recording()).functions] == ["outer"]


def test_the_usual_call_of_another_function_is_as_the_recorder_timed_it() -> None:
    run = Run()
    run.trace(1.0, "p.py:3", "serve")
    timed = StepsSeen(functions=(TracedFunction("serve", ("/job/p.py", 3), call_ms=200.0),))

    (found,) = RunTraces.measure(run.recording(steps=timed)).functions

    assert found.ms == pytest.approx(800)


def test_without_a_log_no_tracing_is_known() -> None:
    with pytest.raises(Unavailable, match="not recorded"):
        RunTraces.measure(recording())
