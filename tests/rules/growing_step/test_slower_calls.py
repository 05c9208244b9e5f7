"""SlowingCalls: calls of a line that certainly take longer and longer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.builders import chart, recording, trace
from tfdoctor.recording.run_log import Bucket, CallPlace, RunLog, RunProcess, Span
from tfdoctor.rules.growing_step.longer_times import LongerTimes, SlowingCall
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location

RUN, PREDICT, STEP = range(3)

CALLS = {
    RUN: CallPlace(RUN, RunCall.FUNCTION, ("score.py", 10), "Session.run"),
    PREDICT: CallPlace(PREDICT, RunCall.PREDICT, ("score.py", 20), "Model.predict"),
    STEP: CallPlace(STEP, RunCall.STEP, ("train.py", 5), "train_step"),
}


def measured(
    ms: Sequence[float] = (), call: int = RUN, number: int = 5, spans: Sequence[float] = ()
) -> tuple[SlowingCall, ...]:
    buckets = tuple(
        Bucket(start=float(at), end=at + 1.0, calls={str(call): each * number}, entered={str(call): number})
        for at, each in enumerate(ms)
    )
    alone = tuple(Span(PREDICT, float(at), at + each / 1000) for at, each in enumerate(spans))
    run = RunLog(process=RunProcess(), calls=CALLS, stacks={}, buckets=buckets, spans=alone)
    return chart(trace([]), replace(recording(), run=run)).fact(LongerTimes).calls


def test_calls_that_a_bucket_adds_up_get_slower() -> None:
    (call,) = measured([2.0 + at for at in range(30)])
    assert (call.name, call.at, call.calls) == ("Session.run", Location("score.py", 10), 150)
    assert call.first_ms < 10 < call.last_ms
    assert call.beyond_ms == pytest.approx(150 * 14.5, rel=0.07)  # the mean is 16.5 ms, the first 2


def test_calls_that_are_told_alone_get_slower() -> None:
    (call,) = measured(spans=[50.0 + at for at in range(30)])
    assert (call.name, call.calls) == ("Model.predict", 30)


@pytest.mark.parametrize(
    "ms",
    [
        [5.0] * 30,
        [5.0 + at % 3 for at in range(30)],
        [min(at, 8.0) + 2 for at in range(30)],  # trap: a plateau, as of memory that warms up
        [30.0 - at for at in range(30)],
        [2.0, 9.0],
    ],
)
def test_calls_that_do_not_certainly_get_slower_are_left_out(ms: list[float]) -> None:
    assert measured(ms) == ()


def test_training_steps_are_judged_elsewhere() -> None:
    assert measured([2.0 + at for at in range(30)], call=STEP) == ()


def test_those_that_lose_most_come_first() -> None:
    found = measured([2.0 + at for at in range(30)], spans=[50.0 + 100 * at for at in range(30)])
    assert [call.name for call in found] == ["Model.predict", "Session.run"]
