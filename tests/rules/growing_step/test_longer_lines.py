"""StepLines: the time of a line per training step, in the first third of the steps and in the last."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import chart, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording.run_log import Bucket, BucketSteps, CallPlace, RunLog, RunProcess, SeenStack
from tfdoctor.rules.growing_step.longer_times import LongerTimes, StepLine
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

CALLS = {
    number: CallPlace(number, call)
    for number, call in enumerate((RunCall.SCRIPT, RunCall.STEP, RunCall.BETWEEN, RunCall.EVALUATE))
}

STACKS = {
    0: SeenStack(0, call=2, at=("train.py", 52), calls="numpy.append", looped=True),
    1: SeenStack(1, call=1, at=("train.py", 48)),
    2: SeenStack(2, call=3, at=("train.py", 60), looped=True),  # evaluation is no part of a step
    3: SeenStack(3, call=0, at=("train.py", 9)),  # nor is what the script does before
    4: SeenStack(4, call=0, at=("train.py", 50), work=RunWork.BUILDING, looped=True),
    5: SeenStack(5, call=1),
}


def measured(ms: Sequence[dict[str, float]], steps: int = 10) -> LongerTimes:
    buckets = tuple(
        Bucket(
            start=float(at), end=at + 1.0, stacks=stacks, samples=dict.fromkeys(stacks, 6),
            steps=(BucketSteps(steps=steps),) if steps else (),
        )
        for at, stacks in enumerate(ms)
    )  # fmt: skip
    run = RunLog(process=RunProcess(), calls=CALLS, stacks=STACKS, buckets=buckets)
    return chart(trace([]), replace(recording(), run=run)).fact(LongerTimes)


def lines(ms: Sequence[dict[str, float]]) -> dict[int, StepLine]:
    return {line.at.line: line for line in measured(ms).lines}


def test_a_line_that_grows_comes_first_with_its_time_at_both_ends() -> None:
    found = measured([{"0": 10.0 * at, "1": 300.0} for at in range(20)]).lines
    assert [line.at for line in found] == [Location("train.py", 52), Location("train.py", 48)]
    first, last = found[0].first_ms, found[0].last_ms
    assert first == pytest.approx(sum(range(2, 8)) / 6)  # of buckets 2 to 7, without the first tenth
    assert last == pytest.approx(sum(range(14, 20)) / 6)
    assert (found[0].calls, found[0].samples) == ("numpy.append", 36)
    assert found[1].grown_ms == 0


def test_only_the_loop_of_the_steps_counts() -> None:
    assert set(lines([{str(number): 10.0 for number in STACKS}] * 20)) == {48, 50, 52}


def test_samples_that_make_a_graph_are_told() -> None:
    found = lines([{"4": 10.0, "1": 10.0}] * 20)
    assert (found[50].graph_samples, found[48].graph_samples) == (36, 0)


@given(st.lists(st.floats(0.0, 1e3), min_size=20, max_size=40))
def test_what_is_constant_does_not_grow_and_no_time_is_negative(ms: list[float]) -> None:
    for line in measured([{"0": one, "1": 5.0} for one in ms]).lines:
        assert line.first_ms >= 0
        assert line.last_ms >= 0
        assert line.at.line != 48 or line.grown_ms == pytest.approx(0)


@pytest.mark.parametrize("ms", [[], [{"1": 1.0}]])
def test_too_few_steps_are_not_compared(ms: list[dict[str, float]]) -> None:
    assert measured(ms).lines == ()


def test_a_run_without_steps_is_not_measured() -> None:
    assert measured([{"1": 1.0}] * 20, steps=0).lines == ()


def test_a_recording_without_the_run_is_not_measured() -> None:
    with pytest.raises(Unavailable, match="as a whole"):
        chart(trace([]), recording()).fact(LongerTimes)
