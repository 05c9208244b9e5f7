"""The lines of long steps: samples of other steps and of the other part are not theirs."""

import pytest

from tests.builders import Row, chart, executor, line, marker, trace
from tests.facts.step_time.sampled import place, sampled
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.host_lines import LongStepLines
from tfdoctor.facts.step_time.timed_line import SlowCall
from tfdoctor.terms.verdict import Location, Stage

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
    place(9, *(start(6) + ms for ms in (10.0, 20.0, 30.0)), calls=PREDICT, callback=CALLBACK),
    place(9, start(13) + 50.0, callback=CALLBACK),
    place(14, start(6) + 0.5, start(13) + 0.5, inside=True),
    place(20, *(start(n) + 6.0 for n in range(5))),
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
