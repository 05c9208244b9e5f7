"""What a run of a trial notes of its steps."""

from typing import Any

from tfdoctor.capture.agent.trial.timing import StepTimes


def test_a_step_without_a_batch_ends_an_epoch() -> None:
    counter: Any = None
    times = StepTimes(counter)
    for number in (0, 1, 2, 2, 3):  # two batches an epoch: the third call found none
        times.note(number, 1)
    assert (list(times.numbers), times.epoch_ends) == ([0, 1, 2, 3], [2])
