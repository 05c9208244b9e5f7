"""Where Python is between the calls: which lines make the arguments, and whose callback runs."""

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent


class Callback:
    """As Keras' base class is called."""


class Slow(Callback):
    def on_train_batch_end(self, sampler: Any) -> Any:
        return sampler._place(sys._getframe(), inside=False)  # noqa: SLF001 - as the agent does


def test_a_callback_is_named_with_its_line(sampler: Any) -> None:
    stack, callback, _ = Slow().on_train_batch_end(sampler)
    assert callback == "Slow.on_train_batch_end"
    assert stack.line[0] == __file__
    assert stack.looped is None


def training(depth: int = 0) -> SimpleNamespace:
    return SimpleNamespace(running=False, depth=depth, function=None)


@pytest.fixture
def sampler(tmp_path: Path) -> Any:
    log = agent.load("process.journal").Journal(str(tmp_path))
    return agent.load("window.stack_samples").StackSampler(
        log, agent.load("window.call_arguments").CallArguments(log)
    )


@pytest.mark.parametrize(("depth", "inside"), [(0, 0), (1, 1)])
def test_calls_that_train_are_counted_apart(sampler: Any, depth: int, inside: int) -> None:
    sampler.sample(threading.get_ident(), training(depth))
    assert sampler.inside == inside
    (place,) = sampler.describe()["places"]
    assert (place["inside"], place["seen"], len(place["when_us"])) == (bool(inside), 1, 1)


def test_it_leaves_python_as_it_was(sampler: Any) -> None:
    before = sys.getswitchinterval()
    sampler.begin(training(), more_to_come=True)
    sampler.measured()
    sampler.hurry()
    sampler.end()
    assert sys.getswitchinterval() == before


def ended(thread: Any) -> bool:
    until = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < until:
        time.sleep(0.001)
    return not thread.is_alive()


def test_the_thread_that_is_ready_samples_the_window(sampler: Any) -> None:
    here, before = training(), threading.enumerate()
    sampler.prepare(here)
    ready = sampler.ready.thread
    assert sampler.describe()["places"] == []
    sampler.begin(here, more_to_come=False)
    assert ready.is_alive()
    assert threading.enumerate() == before  # a script sees none of ours
    until = time.monotonic() + 60
    while not sampler.places and time.monotonic() < until:
        time.sleep(0.001)
    sampler.measured()
    sampler.end()
    assert ended(ready)
    assert sampler.describe()["places"]


def test_a_thread_that_is_ready_for_something_else_is_replaced(sampler: Any) -> None:
    """Trap: another recording of the process has other loops."""
    sampler.prepare(training())
    former = sampler.ready.thread
    here = training()
    sampler.prepare(here)
    assert ended(former)
    ready = sampler.ready.thread
    assert sampler.ready.training is here
    sampler.release()
    assert ended(ready)


def test_a_thread_does_not_wait_for_ever(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.load("window.stack_samples"), "IDLE_RESTS", 2)
    monkeypatch.setattr(agent.load("window.stack_samples"), "AT_MOST", 0)
    here = training()
    sampler.prepare(here)
    former = sampler.ready.thread
    assert ended(former)
    sampler.prepare(here)
    assert sampler.ready.thread is not former
    sampler.begin(here, more_to_come=True)
    sampler.measured()
    sampler.end()


def pace(*, hurries: bool) -> Any:
    begun = agent.load("window.stack_samples").Pace()
    begun.begin(hurries=hurries)
    return begun


def test_samples_are_rare_while_steps_are_measured() -> None:
    """One of 0.1 ms comes after 50 ms on the average."""
    rare = pace(hurries=False)
    began = time.monotonic()
    for _ in range(4):
        assert rare.rest(1e-4)
    assert time.monotonic() - began > 4 * 0.5 * 500 * 1e-4
    assert rare.hurries_on()  # there are not enough


def test_samples_hurry_once_nothing_is_measured() -> None:
    """A rest that goes on is cut short, and no sample is taken at that moment."""
    rare, taken = pace(hurries=False), []
    thread = threading.Thread(target=lambda: taken.append(rare.rest(1.0)))  # of minutes
    thread.start()
    rare.hurry()
    thread.join(timeout=60)
    assert taken == [True]
    assert rare.hurries_on()


def test_no_samples_are_taken_between_the_window_and_the_calls_after_it() -> None:
    """What is alive is described then, which may take seconds."""
    rare, taken = pace(hurries=True), []
    rare.pause()
    thread = threading.Thread(target=lambda: taken.append(rare.rest(0.0)))
    thread.start()
    thread.join(timeout=0.1)  # fifty times as long as a rest
    assert thread.is_alive()
    rare.hurry()
    thread.join(timeout=60)
    assert taken == [True]


def test_there_are_enough_samples_at_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    module = agent.load("window.stack_samples")
    many = pace(hurries=True)
    many.taken = module.ENOUGH
    assert not many.hurries_on()
    few, now = pace(hurries=False), [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    few.hurry()
    assert few.hurries_on()
    now[0] += module.LONGEST_S
    assert not few.hurries_on()


def test_the_end_wakes_a_rest() -> None:
    rare, taken = pace(hurries=False), []
    thread = threading.Thread(target=lambda: taken.append(rare.rest(1.0)))
    thread.start()
    rare.end()
    thread.join(timeout=60)
    assert taken == [False]


class Array:
    """What NumPy's arrays and tensors have in common."""

    dtype, shape = "float32", (8, 4)


def test_arguments_made_anew_are_told_from_those_that_stay(sampler: Any) -> None:
    arguments, stays = sampler.arguments, Array()
    arguments.begin("loop")
    for _ in range(2):
        arguments.note((stays, Array(), 3), {})
    assert [argument["anew"] for argument in arguments.call["arguments"]] == [False, True]
    assert not arguments.wanted


def encoded(sampler: Any) -> Any:
    found: list[Any] = []

    def default(_: object) -> int:
        found.append(sampler._place(sys._getframe(1), inside=True))  # noqa: SLF001 - as the agent does
        return 0

    json.dumps(object(), default=default)
    return found[0]


def test_a_line_says_what_it_calls_and_who_called_it(sampler: Any) -> None:
    public = agent.load("process.stack").public_name
    stack, callback, inside = encoded(sampler)
    assert stack.line[0] == stack.caller[0] == __file__
    assert stack.line[1] < stack.caller[1]
    assert public(stack.calls) == "json.dumps"
    assert public(stack.runs).startswith("json.encoder.")
    assert (callback, inside) == (None, True)


def test_a_known_stack_is_one_place_with_all_its_times(sampler: Any) -> None:
    for _ in range(3):
        sampler.sample(threading.get_ident(), training())
    (place,) = sampler.describe()["places"]
    assert place["seen"] == 3
    assert place["when_us"] == sorted(place["when_us"])


def elsewhere(sampler: Any, run: Callable[[Callable[[], None]], object]) -> list[Any]:
    """Sample while another thread is in a function of ours that `run` calls."""
    there, go_on = threading.Event(), threading.Event()

    def make() -> None:
        there.set()
        go_on.wait()

    thread = threading.Thread(target=run, args=(make,))
    thread.start()
    there.wait()
    sampler.sample(threading.get_ident(), training())
    go_on.set()
    thread.join()
    places: list[Any] = sampler.describe()["others"]
    return places


def test_a_thread_of_the_scripts_is_seen_with_its_line(sampler: Any) -> None:
    (place,) = [at for at in elsewhere(sampler, lambda make: make()) if at["at"][0] == __file__]
    assert place["runs"] in {"threading.Event.set", "threading.Event.wait", "threading.Condition.wait"}
    assert (place["entry"], place["seen"]) == (None, 1)


def test_what_makes_input_is_known_by_who_calls_it(sampler: Any) -> None:
    """Keras' module is stood in for by code with its name."""
    name = "keras.src.trainers.data_adapters.py_dataset_adapter"
    module: dict[str, Any] = {"__name__": name}
    source = "def get_index(make):\n    return make()\n"
    exec(compile(source, "/x/site-packages/keras/py_dataset_adapter.py", "exec"), module)
    entries = {at["entry"] for at in elsewhere(sampler, module["get_index"])}
    assert f"{name}.get_index" in entries


def test_threads_without_code_of_the_script_are_left_out(sampler: Any) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    sampler._others([sys._current_frames()[thread.ident or 0]])  # noqa: SLF001 - as a sample does
    over.set()
    thread.join()
    assert sampler.others == {}


@pytest.mark.parametrize(("instruction", "line"), [(4, 11), (2, 11), (0, 9)])
def test_an_instruction_without_a_line_counts_for_the_line_before(instruction: int, line: int) -> None:
    lines = [(0, 2, None), (2, 4, 11), (4, 6, None), (6, 8, 12)]
    code = SimpleNamespace(co_lines=lambda: lines, co_firstlineno=9)
    frame = SimpleNamespace(f_lineno=None, f_code=code, f_lasti=instruction)
    assert agent.load("process.stack").line_number(frame) == line


def test_functions_of_tensorflow_have_their_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = SimpleNamespace(_tf_api_names=("random.uniform", "random_uniform"))
    module = SimpleNamespace(random_uniform=SimpleNamespace(__wrapped__=inner), other=object())
    monkeypatch.setitem(sys.modules, "tensorflow.python.ops.random_ops", module)
    public = agent.load("process.stack").public_name
    path = "tensorflow.python.ops.random_ops"
    assert public((path, "random_uniform")) == "tensorflow.random.uniform"
    assert public((path, "other")) == f"{path}.other"
