"""The lines that the host's time goes to: samples count where the trace shows nothing else at work."""

from typing import Any

import pytest

from tests.builders import Row, chart, executor, line, marker, trace
from tests.facts.step_time.sampled import place as seen_at
from tests.facts.step_time.sampled import sampled, traced
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.step_time.host_lines import HostLines, LongStepLines
from tfdoctor.facts.step_time.sampled_steps import StackSamples, sampling_began, times_of
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine, by_caller, shown, work_of
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording.agent import StepsSeen
from tfdoctor.recording.program import PythonRecord, SeenPlace
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace.events import LIMIT_PS
from tfdoctor.trace.xplane import measured

STEPS = 8
CALLS, RUNS = ("tensorflow.python.polymorphic_function.Function.__call__", "tensorflow.execute.quick_execute")


def step(n: int) -> list[Row]:
    """Ten ms: a call of 8 that computes from 2 to 4 and from 5 to 6."""
    at = 10.0 * n
    return [
        marker(n, at, at + 8),
        executor(at + 1.9, at + 6.1, n + 1),
        ("model/dense/MatMul:MatMul", at + 2, at + 4),
        ("model/loss/Mul:Mul", at + 5, at + 6),
    ]


def place(number: int, *offsets_ms: float, **more: Any) -> dict[str, Any]:
    """A place that was seen in each step, so many ms after the step began."""
    return seen_at(number, *(10 * n + ms for n in range(STEPS - 1) for ms in offsets_ms), **more)


def found(*places: dict[str, Any], **python: Any) -> HostLines:
    return sampled((row for n in range(STEPS) for row in step(n)), *places, **python).fact(HostLines)


def test_samples_count_where_the_device_is_idle() -> None:
    lines = found(place(3, 1.0, 7.0), place(4, 3.0, calls=CALLS, runs=RUNS, inside=True))
    (host,) = lines.parts[Stage.HOST]
    assert (host.at, host.seen) == (Location("train.py", 3), 14)
    assert host.ms == pytest.approx(5.0, rel=0.03)  # all: 2 + 1 + 2 ms; the last step has no end
    assert lines.parts[Stage.BETWEEN] == ()


SAMPLED_MS = (20, 20, 20, 400, 20, 20, 20, 20, 20)
"""The calls after the measured steps: the fourth is at the end of an epoch, the fifth was none."""


def sampled_calls(*places: dict[str, Any]) -> Chart:
    """The measured steps, the calls after them, and what was sampled in all of these."""
    end = at = 10.0 * STEPS
    rows = [row for n in range(STEPS) for row in step(n)] + [("tfdoctor_end", end, end)]
    for n, took in enumerate(SAMPLED_MS, STEPS):
        stats = {"step_num": n, "steps": 1}
        rows += [
            ("tfdoctor_sampled", at, at + 16, stats),
            executor(at + 3, at + 8, n + 1),
            ("model/dense/MatMul:MatMul", at + 4, at + 7),
        ]
        at += took
    recorded = measured(traced(*rows, ("tfdoctor_end", at, at)))
    return sampled(recorded, *places, steps=StepsSeen(discarded=(STEPS + 4,)))


def later(number: int, call: int, *offsets_ms: float) -> dict[str, Any]:
    """A place that was seen in one of those calls, so many ms after the call began."""
    began = 10 * STEPS + sum(SAMPLED_MS[:call])
    return seen_at(number, *(began + ms for ms in offsets_ms))


def numbers(lines: tuple[TimedLine, ...]) -> dict[int, int]:
    return {one.at.line: one.seen for one in lines if one.at}


def test_samples_of_calls_that_are_not_measured_count_too() -> None:
    """Lines are found in all samples, times in the measured steps alone."""
    known = sampled_calls(place(3, 1.0), later(4, 0, 1.0, 9.0, 19.0), later(4, 7, 1.0))
    lines = known.fact(HostLines)
    assert known.fact(Steps).count == STEPS
    assert numbers(lines.parts[Stage.HOST]) == {3: STEPS - 1, 4: 3}
    assert numbers(lines.parts[Stage.BETWEEN]) == {4: 1}
    assert sum(one.ms for one in lines.parts[Stage.HOST]) == pytest.approx(5.0)
    assert sum(one.seen for one in known.fact(StackSamples).places) == STEPS - 1 + 4


@pytest.mark.parametrize("call", [3, 4, 8])
def test_what_comes_with_the_end_of_an_epoch_or_of_the_loop_does_not_count(call: int) -> None:
    """A long call, one that had no batch, and the last one, after which the loop may have been left."""
    known = sampled_calls(place(3, 1.0), later(4, call, 1.0, 9.0, 19.0))
    assert numbers(known.fact(HostLines).parts[Stage.HOST]) == {3: STEPS - 1}
    assert [one.seen for one in known.fact(StackSamples).places] == [STEPS - 1]


@pytest.mark.parametrize(("called", "around"), [(5, [Location("train.py", 90)]), (6, [])])
def test_the_line_that_calls_the_function_of_the_training_call_holds_the_training(
    called: int, around: list[Location]
) -> None:
    main = ["/home/me/train.py", 90]
    fed = {"at": ["/home/me/train.py", called], "arguments": []}
    lines = found(place(5, 1.0, caller=main), place(4, 9.0, caller=main), fed=fed)
    assert [*lines.around] == around


def test_a_part_is_divided_by_samples() -> None:
    lines = found(place(3, 1.0, 1.2, 7.0), place(4, 7.5), place(5, 9.0))
    assert [one.ms for one in lines.own(Stage.HOST)] == pytest.approx([3.75, 1.25], rel=0.03)
    assert [one.at for one in lines.own(Stage.BETWEEN)] == [Location("train.py", 5)]


def test_a_wait_between_two_operations_is_not_the_line_s_own_work() -> None:
    waits = place(3, 1.0, 4.5, calls=CALLS, runs=RUNS, inside=True)
    lines = found(waits, place(3, 7.0))
    assert lines.dispatching_ms == pytest.approx(5 / 3, rel=0.03)
    works = sorted(one.work for one in lines.own(Stage.HOST))
    assert works == [LineWork.ENTERING, LineWork.PYTHON]


@pytest.mark.parametrize("missing", [{"began_unix_ns": None}])
def test_samples_without_a_time_tell_nothing(missing: dict[str, Any]) -> None:
    with pytest.raises(Unavailable, match="no time in the trace"):
        found(place(3, 1.0), **missing)


@pytest.mark.parametrize(
    ("calls", "runs", "inside", "expected"),
    [
        ("numpy.histogram", "numpy.linspace", False, LineWork.PYTHON),
        ("", "", False, LineWork.PYTHON),
        ("tensorflow.ops._EagerTensorBase.numpy", "tensorflow.ops._numpy", False, LineWork.READING),
        ("tensorflow.convert_to_tensor", "tensorflow.x.convert", False, LineWork.CONVERTING),
        (CALLS, "tensorflow.constant_op.convert_to_eager_tensor", True, LineWork.CONVERTING),
        ("tensorflow._slice", "tensorflow.convert_to_eager_tensor", False, LineWork.OPERATIONS),
        (CALLS, RUNS, True, LineWork.ENTERING),
        (CALLS, "tensorflow.ops._EagerTensorBase.shape", True, LineWork.LOOPING),
        ("keras.src.trainer.Trainer.fit", RUNS, True, LineWork.ENTERING),
        ("keras.src.trainer.Trainer.fit", "tensorflow.optional_has_value", True, LineWork.LOOPING),
        ("keras.src.trainer.Trainer.call", "tensorflow.add", False, LineWork.OPERATIONS),
        (CALLS, RUNS, False, LineWork.OPERATIONS),
    ],
)
def test_what_a_line_does_follows_from_the_functions_below_it(
    calls: str, runs: str, *, inside: bool, expected: LineWork
) -> None:
    assert work_of(SeenPlace(1, calls=calls, runs=runs, inside=inside)) is expected


def test_within_a_compiled_function_s_call_the_innermost_function_is_shown() -> None:
    assert shown(SeenPlace(1, calls=CALLS, runs=RUNS, inside=True)) == RUNS
    assert shown(SeenPlace(1, calls="numpy.dot", runs="numpy.x", inside=True)) == "numpy.dot"


def test_the_lines_of_a_function_are_merged_by_its_caller() -> None:
    caller = Location("train.py", 30)
    lines = [TimedLine(Location("train.py", n), 3, 1.5, calls={"": 3}, callers={caller: 3}) for n in (4, 5)]
    (merged,) = by_caller([*lines, TimedLine(Location("train.py", 9), 8, 4.0)])
    assert (merged.at, merged.seen, merged.ms) == (caller, 6, 3.0)
    assert merged.calls == {"": 6}


@pytest.mark.parametrize(
    ("when_us", "times_ps"), [((), []), ((1, 2), [3_000_000, 4_000_000]), ((2**63,), [LIMIT_PS])]
)
def test_impossible_times_are_limited(when_us: tuple[int, ...], times_ps: list[int]) -> None:
    assert times_of(SeenPlace(seen=1, when_us=when_us), 2_000_000).tolist() == times_ps


def test_samples_of_another_year_lie_outside_of_the_trace() -> None:
    assert times_of(SeenPlace(seen=1, when_us=(1,)), -(2**70)).tolist() == [-LIMIT_PS]


def test_without_a_clock_they_have_no_time() -> None:
    assert sampling_began(PythonRecord(began_unix_ns=1), trace()) is None


PREDICT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"
LONG = (6, 13)
CALLBACK = "Eval.on_train_batch_end"


def start(n: int) -> float:
    """Steps of 10 ms, of which two take 90 ms more after their call, in ms."""
    return 10.0 * n + 90.0 * sum(n > at for at in LONG)


def rows() -> list[Row]:
    return [
        row
        for n in range(20)
        for at in [start(n)]
        for row in (
            marker(n, at, at + 4),
            executor(at + 0.9, at + 3.1, n + 1),
            ("model/dense/MatMul:MatMul", at + 1, at + 3),
        )
    ]


PLACES = (
    seen_at(9, *(start(6) + ms for ms in (10.0, 20.0, 30.0)), calls=PREDICT, callback=CALLBACK),
    seen_at(9, start(13) + 50.0, callback=CALLBACK),
    seen_at(14, start(6) + 0.5, start(13) + 0.5, inside=True),
    seen_at(20, *(start(n) + 6.0 for n in range(5))),
)


def test_each_sample_counts_in_its_part_of_a_long_step() -> None:
    lines = sampled(rows(), *PLACES).fact(LongStepLines)
    (between,), (host,) = lines.of("between"), lines.of("host")
    assert (between.at, between.seen, between.main_call, between.callback) == (
        Location("train.py", 9),
        4,
        PREDICT,
        CALLBACK,
    )
    assert (host.at, host.seen, host.main_call) == (Location("train.py", 14), 2, "")
    assert lines.of("device") == ()
    assert [one.call for one in lines.slow_calls] == [SlowCall.PREDICT]


def test_without_times_callbacks_between_calls_stand_for_them() -> None:
    lines = sampled(rows(), *PLACES, began_unix_ns=None).fact(LongStepLines)
    assert not lines.timed
    assert [(one.at, one.seen) for one in lines.of(Stage.BETWEEN)] == [(Location("train.py", 9), 4)]


def test_without_samples_they_are_unknown() -> None:
    with pytest.raises(Unavailable, match="not sampled"):
        chart(trace(host=[line("python", *rows())])).fact(LongStepLines)
