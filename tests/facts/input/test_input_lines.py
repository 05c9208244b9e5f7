"""Which lines make input in Python, from the stack samples of all threads."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.input_lines import InputLines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord, PythonRecord, SeenPlace
from tfdoctor.terms.verdict import Location

KERAS = "keras.src.trainers.data_adapters.py_dataset_adapter.PyDatasetAdapter._finite_generator"
TF_DATA = "tensorflow.python.ops.script_ops.FuncRegistry.__call__"
WAIT = "threading.Condition.wait"


def place(line: int, seen: int, entry: str = KERAS, **more: Any) -> SeenPlace:
    return SeenPlace(seen, ("train.py", line), entry=entry, **more)


def measured(*others: SeenPlace, trainer: tuple[SeenPlace, ...] = (), program: Program | None = None) -> InputLines:
    record = ProgramRecord(python=PythonRecord(places=trainer, others=others))
    return InputLines.measure(recording(record), Framework(), program, None)


def seen(lines: InputLines) -> list[tuple[int, int]]:
    return [(line.at.line, line.seen) for line in lines.lines if line.at]


def test_the_places_of_a_line_are_joined() -> None:
    caller = ("train.py", 48)
    one = place(36, 3, calls="numpy.stack", caller=caller)
    lines = measured(one, place(36, 6, calls="numpy.load", caller=caller), place(39, 3))
    assert seen(lines) == [(36, 9), (39, 3)]
    first = lines.lines[0]
    assert (first.main_call, first.caller) == ("numpy.load", Location("train.py", 48))


def test_input_made_in_the_trainers_thread_counts() -> None:
    fit = place(56, 90, entry="", inside=True)
    assert seen(measured(trainer=(place(36, 9, inside=True), fit))) == [(36, 9)]


def test_other_threads_do_not_count_while_input_works() -> None:
    assert seen(measured(place(36, 9), place(80, 30, entry=""))) == [(36, 9)]


def test_where_input_waits_the_users_own_threads_count() -> None:
    lines = measured(place(36, 9, runs=WAIT), place(80, 30, entry=""), place(81, 9, "", runs=WAIT))
    assert seen(lines) == [(80, 30)]
    assert lines.lines[0].makes is False


def test_threads_are_counted_by_the_samples_of_the_trainer() -> None:
    """Two samples of a thread for three of the trainer's, which is in each; a wait is no work."""
    fit = place(56, 30, entry="", inside=True)
    others = place(36, 18), place(39, 2), place(36, 9, runs=WAIT), place(80, 5, entry="")
    assert measured(*others, trainer=(fit,)).threads == pytest.approx(2 / 3)
    assert measured(trainer=(place(36, 9, inside=True), fit)).threads == 0.0


def test_worker_processes_are_not_seen() -> None:
    with pytest.raises(Unavailable, match="worker processes"):
        measured(place(36, 9, runs="multiprocessing.connection.wait"))


def test_python_within_the_training_function_is_told_from_input() -> None:
    program = Program(operations=(Operation(name="py", type="EagerPyFunc"),))
    assert seen(measured(place(36, 9), place(20, 9, TF_DATA), program=program)) == [(36, 9)]
    with pytest.raises(Unavailable, match="training function runs Python"):
        measured(place(20, 9, TF_DATA), program=program)
    assert seen(measured(place(20, 9, TF_DATA), program=Program())) == [(20, 9)]


def test_an_older_recording_has_no_other_threads() -> None:
    with pytest.raises(Unavailable, match="not sampled"):
        InputLines.measure(recording(ProgramRecord(python=PythonRecord())), Framework(), None, None)


def recording(record: ProgramRecord) -> Recording:
    return Recording(None, None, (), record, (), ())
