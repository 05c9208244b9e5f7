"""Costly calls by stack samples: which functions, which lines, and whether in every step."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.builders import Row, executor, marker
from tests.facts.step_time.sampled import place as seen_at
from tests.facts.step_time.sampled import sampled
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.host_lines import SlowCalls
from tfdoctor.facts.step_time.timed_line import SlowCall, slow_call
from tfdoctor.recording.agent import StepsSeen
from tfdoctor.terms.verdict import Location, Stage

STEPS = 20
PREDICT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"
FIT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.fit"
SET, GET = ("keras.src.layers.layer.Layer.set_weights", "keras.src.layers.layer.Layer.get_weights")


def step(n: int) -> list[Row]:
    """Ten ms: a call of 4 that computes from 1 to 3, and 6 between calls."""
    at = 10.0 * n
    return [
        marker(n, at, at + 4),
        executor(at + 0.9, at + 3.1, n + 1),
        ("model/dense/MatMul:MatMul", at + 1, at + 3),
    ]


def place(number: int, *offsets_ms: float, steps: Iterable[int] = range(STEPS - 1), **more: Any) -> dict[str, Any]:
    """A place that was seen in these steps, so many ms after the step began."""
    return seen_at(number, *(10 * n + ms for n in steps for ms in offsets_ms), **more)


def found(
    *places: dict[str, Any],
    rows: list[Row] | None = None,
    seen: StepsSeen | None = None,
    run: dict[str, Any] | None = None,
    **python: Any,
) -> SlowCalls:
    rows = rows or [row for n in range(STEPS) for row in step(n)]
    return sampled(rows, *places, steps=seen, program={"run": run or {}}, **python).fact(SlowCalls)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (PREDICT, SlowCall.PREDICT),
        ("keras.src.backend.tensorflow.trainer.predict", SlowCall.PREDICT),  # Python 3.10
        ("tf_keras.src.engine.training.Model.evaluate", SlowCall.EVALUATE),
        ("tensorflow.python.checkpoint.checkpoint.Checkpoint.save", SlowCall.SAVE),
        ("keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict_on_batch", None),
        ("keras.src.layers.layer.Layer.__call__", SlowCall.MODEL),
        ("keras.src.engine.base_layer.__call__", SlowCall.MODEL),
        ("keras.src.losses.loss.Loss.__call__", None),
        (FIT, SlowCall.FIT),
        ("sklearn.svm.SVC.predict", None),
        ("sklearn.svm.SVC.fit", None),
        ("numpy.save", None),
        ("tensorflow.summary.histogram", SlowCall.WRITE),
        ("tensorflow.python.ops.summary_ops_v2._ResourceSummaryWriter.flush", SlowCall.WRITE),
        ("builtins.print", SlowCall.WRITE),
        ("mlflow.tracking.fluent.log_metric", SlowCall.WRITE),
        ("pandas.core.generic.NDFrame.to_csv", SlowCall.WRITE),
        ("matplotlib.figure.Figure.savefig", SlowCall.WRITE),
        ("PIL.Image.Image.resize", None),
        ("mlflowers.log", None),
        ("pandas.core.frame.DataFrame.to_numpy", None),
        ("tensorflow.strings.format", None),
        ("", None),
    ],
)
def test_functions_are_known_by_package_and_name(function: str, kind: SlowCall | None) -> None:
    assert slow_call(function) is kind


def test_the_time_of_a_call_is_its_samples() -> None:
    slow = found(place(3, 5.0, 6.0, 2.0, calls=PREDICT), place(4, 7.0))
    (one,) = slow.lines
    assert (one.at, one.call, len(one.steps)) == (Location("train.py", 3), SlowCall.PREDICT, 19)
    assert one.parts_ms == pytest.approx({Stage.BETWEEN: 5.0, Stage.DEVICE: 2.5}, rel=0.06)
    assert slow.ms == pytest.approx(7.5, rel=0.06)


def test_the_compiled_function_of_a_call_is_its_useful_work() -> None:
    runs: dict[str, Any] = {"calls": PREDICT, "runs": "tensorflow.execute.quick_execute", "inside": True}
    slow = found(place(3, 5.0, calls=PREDICT), place(3, 6.0, **runs))
    assert slow.ms == pytest.approx(5.0, rel=0.06)


def test_a_line_that_mostly_does_something_else_is_none() -> None:
    assert found(place(3, 5.0, calls=PREDICT), place(3, 6.0, 7.0)).lines == ()
    assert found(place(3, 5.0, calls=PREDICT), place(3, 6.0)).lines != ()


@pytest.mark.parametrize(("every", "reported"), [(1, True), (2, True), (10, False)])
def test_a_call_in_few_steps_is_left_out(every: int, *, reported: bool) -> None:
    """Trap: predict after each epoch, evaluate every 100 steps: many samples, all of them in few steps."""
    offsets = [4.5 + number / 20 for number in range(20)]
    slow = found(place(3, *offsets, steps=range(0, STEPS - 1, every), calls=PREDICT), place(4, 6.0))
    assert bool(slow.lines) is reported


def test_the_arithmetic_between_reading_and_setting_weights_belongs_to_them() -> None:
    caller: dict[str, Any] = {"caller": ["/home/me/train.py", 74]}
    slow = found(
        place(54, 5.0, calls=GET, **caller),
        place(57, 6.0, **caller),
        place(58, 7.0, calls=SET, **caller),
        place(60, 8.0, **caller),
    )
    assert sorted(one.at.line for one in slow.lines if one.at) == [54, 57, 58]


@pytest.mark.parametrize(("kernel_ms", "reported"), [(0.5, True), (5.0, False)])
def test_a_model_in_a_step_that_is_eager_itself_is_left_to_eager_step(kernel_ms: float, *, reported: bool) -> None:
    rows: list[Row] = []
    for n in range(STEPS):
        eager = ("EagerLocalExecute: MatMul", 10.0 * n + 4.5, 10.0 * n + 4.5 + kernel_ms)
        rows += [*step(n), ("EagerLocalExecute: __inference_train_9", 10.0 * n, 10.0 * n + 4), eager]
    slow = found(place(3, 8.0, calls="keras.src.layers.layer.Layer.__call__"), rows=rows)
    assert bool(slow.lines) is reported


def test_samples_without_a_time_tell_nothing() -> None:
    with pytest.raises(Unavailable, match="no time in the trace"):
        found(place(3, 5.0, calls=PREDICT), began_unix_ns=None)


ONE = {"epochs": 1, "steps_per_epoch": 1}


@pytest.mark.parametrize(
    ("steps", "rounds", "run", "reported"),
    [
        (20, 20, {}, True),
        (20, 10, {}, True),
        (20, 9, {}, False),  # three steps in some of them: most steps are not the first of their fit
        (4, 4, {}, False),  # a script that trains in a few phases
        (20, 1, ONE, False),  # trap: the training itself is one fit
        (20, 0, ONE, True),  # recorded before rounds were
        (20, 0, {"epochs": 2, "steps_per_epoch": 10}, False),
        (20, 0, {}, False),
    ],
)
def test_fit_counts_where_each_trains_a_step_or_two(
    steps: int, rounds: int, run: dict[str, Any], *, reported: bool
) -> None:
    seen = StepsSeen(seen=steps, rounds=rounds)
    slow = found(place(3, 5.0, 6.0, calls=FIT), seen=seen, run=run)
    assert [one.call for one in slow.lines] == ([SlowCall.FIT] if reported else [])


def test_the_training_call_of_fit_is_its_useful_work() -> None:
    inside = place(3, 0.5, 1.5, 2.5, calls=FIT, inside=True)
    slow = found(place(3, 5.0, calls=FIT), inside, seen=StepsSeen(seen=20, rounds=20))
    (one,) = slow.lines
    assert one.parts_ms == pytest.approx({Stage.BETWEEN: 2.5}, rel=0.06)
