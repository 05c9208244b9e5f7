"""The time of each class of Keras callbacks, as stack samples of the whole run show it."""

import pytest

from tests.run_logs import Run, place
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run_work.run_parts import CallbackTimes


def run_with(*stacks: dict[str, object]) -> Run:
    run = Run()
    with run.fit("t.py:5"), run.epoch("t.py:5"):
        run.steps(100, 5.0, "t.py:5")
        for stack in stacks:
            run.python(2.0, **{"at": "t.py:5", **stack})  # type: ignore[arg-type]  # fields of a stack
    return run


def measured(*stacks: dict[str, object]) -> CallbackTimes:
    return CallbackTimes.measure(run_with(*stacks).recording())


def test_classes_are_told_apart_the_largest_first() -> None:
    found = measured(
        {"callback": "CSVLogger.on_epoch_end"},
        {"callback": "Snapshot.on_epoch_end", "at": "t.py:90"},
        {"callback": "Snapshot.on_epoch_begin", "at": "t.py:95"},
    ).callbacks
    assert [one.name for one in found] == ["Snapshot", "CSVLogger"]
    assert found[0].ms == pytest.approx(4000, rel=0.05)
    assert found[0].at in {place("t.py:90"), place("t.py:95")}
    assert not found[0].in_step
    assert found[1].at == place("t.py:5")


def test_functions_of_batches_are_in_the_step() -> None:
    (found,) = measured({"callback": "Norms.on_train_batch_end", "long": True}).callbacks
    assert found.in_step
    assert found.long


def test_an_earlier_recording_tells_the_class_by_the_users_function() -> None:
    (found,) = measured({"function": "make.<locals>.Norms.on_batch_end"}).callbacks
    assert (found.name, found.in_step) == ("Norms", True)


@pytest.mark.parametrize(
    "stack",
    [
        {"callback": "History.on_epoch_end"},
        {"callback": "ProgbarLogger.on_train_batch_end"},
        {"function": "Server.on_request"},
        {"function": "on_epoch_end"},
    ],
)
def test_what_keras_adds_itself_and_other_functions_are_none(stack: dict[str, object]) -> None:
    with pytest.raises(Unavailable, match="no Keras callback"):
        measured(stack)
