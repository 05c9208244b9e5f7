"""What a run of a trial notes of its steps."""

from typing import TYPE_CHECKING, cast

from tfdoctor.capture.agent.trial.timing import StepTimes

if TYPE_CHECKING:
    from tfdoctor.capture.agent.window.steps import StepCounter


def test_a_step_without_a_batch_ends_an_epoch() -> None:
    times = StepTimes(cast("StepCounter", None))
    for number in (0, 1, 2, 2, 3):  # two batches an epoch: the third call found none
        times.note(number, 1)
    assert list(times.numbers) == [0, 1, 2, 3]
    assert times.epoch_ends == [2]
