"""Which loop is the training loop, decided without TensorFlow."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent
from tests.capture.windows import make, source


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make(tmp_path, monkeypatch)


class Iterator:
    def __init__(self, data: str) -> None:
        self.data = data


class Loop:
    """A thread's view of iterators, driven by hand."""

    def __init__(self, window: Any) -> None:
        self.window = window
        self.loops = agent.load("loops").TrainingLoops(window)
        window.local = SimpleNamespace(loops=self.loops)

    def epoch(self, data: str, batches: int, *, trains: bool = True, exhausts: bool = True) -> None:
        iterator = Iterator(data)
        for _ in range(batches):
            self.loops.before(iterator)
            if trains:
                self.loops.training()
        if exhausts:
            self.loops.before(iterator)
            self.loops.ended(id(iterator))
        del iterator

    @property
    def seen(self) -> int:
        return int(source(self.window, "tf-data-loop").seen)


def test_epochs_of_a_dataset_are_one_training(window: Any) -> None:
    loop = Loop(window)
    for _ in range(3):
        loop.epoch("train", 12)
        loop.epoch("valid", 5, trains=False)
    assert loop.seen == 36
    assert window.log.state["window"]["first_step"] == 10
    assert window.kept.discarded == [12, 25]
    assert window.log.errors == []


def test_a_loop_that_never_trains_is_none(window: Any) -> None:
    loop = Loop(window)
    loop.epoch("vocabulary", 50, trains=False)
    assert loop.seen == 0
    assert window.state == "waiting"


def test_a_loop_that_is_left_ends_with_its_iterator(window: Any) -> None:
    loop = Loop(window)
    for _ in range(4):
        loop.epoch("train", 5, exhausts=False)
    assert loop.seen == 20
    assert window.capture.discarded == []


def test_evaluation_on_the_training_data_is_taken_back(window: Any) -> None:
    loop = Loop(window)
    loop.epoch("train", 15)
    loop.epoch("train", 15, trains=False)
    assert loop.seen == 15
    assert len(window.capture.discarded) == 2


def test_the_outer_iterator_wins(window: Any) -> None:
    loop = Loop(window)
    outer, inner = Iterator("labelled"), Iterator("unlabelled")
    for _ in range(8):
        loop.loops.before(outer)
        loop.loops.before(inner)
        loop.loops.training()
    assert loop.seen == 8


def test_a_look_at_a_batch_does_not_count(window: Any) -> None:
    loop = Loop(window)
    peek = Iterator("train")
    loop.loops.before(peek)
    loop.epoch("train", 6)
    assert loop.seen == 6


@pytest.mark.parametrize(("batches", "first"), [(100, 10), (30, 10), (25, 5), (8, 1)])
def test_the_dataset_says_how_much_is_to_come(window: Any, batches: int, first: int) -> None:
    window.registry.lengths["train"] = batches
    Loop(window).epoch("train", batches)
    assert window.log.state["window"]["first_step"] == first


# Loops over calls

TRAINS = {"_tfdoctor_trains": True}


def place() -> str:
    """Stands for the user's places on the stack, of which a test has none."""
    return "here"


@pytest.fixture
def calls(window: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("way_here", "way_of"):
        monkeypatch.setattr(agent.load("loops"), name, lambda *_: place())
    return Loop(window).loops


def call(calls: Any, *, failed: bool = False) -> None:
    calls.run_begins(TRAINS, None)
    calls.run_over(failed=failed)


def test_repeated_calls_are_steps(window: Any, calls: Any) -> None:
    for _ in range(50):
        call(calls)
    record = window.log.state["window"]
    assert (record["source"], record["first_step"], record["steps"]) == ("repeated-call", 10, 20)
    assert source(window, "repeated-call", "here").seen == 50


def test_a_function_with_a_loop_inside_is_known_while_it_runs(window: Any, calls: Any) -> None:
    calls.run_begins(TRAINS | {"_tfdoctor_loops": True}, None)
    assert window.looping[1] == threading.get_ident()
    calls.run_over(failed=False)
    assert window.looping is None


def test_a_call_that_fails_is_no_step(window: Any, calls: Any) -> None:
    for _ in range(13):
        call(calls)
    call(calls, failed=True)  # tf.errors.OutOfRangeError ends many a loop
    assert source(window, "repeated-call", "here").seen == 13
    assert window.capture.discarded == [13]


def test_calls_inside_a_loop_over_a_dataset_are_its_steps(window: Any, calls: Any) -> None:
    iterator = Iterator("train")
    for _ in range(15):
        calls.before(iterator)
        for _ in range(3):  # a critic is trained three times a batch
            call(calls)
    assert window.capture.source.kind == "tf-data-loop"
    assert source(window, "tf-data-loop").seen == 15
    assert source(window, "repeated-call", "here").calls == 0


def test_eager_gradients_are_steps(window: Any, calls: Any) -> None:
    for _ in range(50):
        calls.gradient()
    record = window.log.state["window"]
    assert (record["source"], record["first_step"], record["steps"]) == ("eager-gradient", 10, 20)


def test_two_gradients_an_iteration_are_one_step(window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(50):
        for model in ("discriminator", "generator"):
            monkeypatch.setattr(f"{__name__}.place", lambda model=model: model)
            calls.gradient()
    assert source(window, "eager-gradient", "discriminator").seen == 50
    assert source(window, "eager-gradient", "generator").seen == 50
    assert window.log.state["window"]["steps"] == 20
    assert window.kept.source is source(window, "eager-gradient", "discriminator")


@pytest.mark.parametrize("critic", [2, 3, 5])
def test_of_calls_that_take_turns_the_least_frequent_is_the_step(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch, critic: int
) -> None:
    for _ in range(60):
        for name in ("critic",) * critic + ("generator",):
            monkeypatch.setattr(f"{__name__}.place", lambda name=name: name)
            call(calls)
    generator = source(window, "repeated-call", "generator")
    record = window.log.state["window"]
    assert window.kept.source is generator
    assert (record["first_step"], record["steps"], record["stopped_by"]) == (10, 20, "steps")
    assert "contains the others" in window.log.state["steps"]["why"]


def test_calls_with_loops_inside_say_what_tracing_costs(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0, 9_000, 9_010, 9_022, 9_034, 9_044, 9_054])  # ms at which each call begins
    monkeypatch.setattr(
        agent.load("window.steps"), "time", SimpleNamespace(perf_counter_ns=lambda: next(clock) * 1_000_000 + 1)
    )
    for number in range(7):
        if number == 4:
            window.close("time")
        calls.run_begins(TRAINS | {"_tfdoctor_loops": True}, None)
        calls.run_over(failed=False)
    loop = source(window, "graph-loop", "here")
    assert (loop.calls, loop.seen) == (7, 0)
    assert loop.untraced() == {"count": 1, "median_ms": 10.0, "of": "calls", "traced_ms": 12.0}


def test_a_call_that_recurs_no_more_is_waited_for_once(
    window: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("warm-up",) * 3 + ("train",) * 60:
        monkeypatch.setattr(f"{__name__}.place", lambda name=name: name)
        call(calls)
    assert window.kept.source is source(window, "repeated-call", "train")
    assert window.log.state["window"]["steps"] == 20
    assert "least often" not in window.log.state["steps"]["why"]


def test_the_last_step_of_a_loop_without_an_end_is_left_out(window: Any, calls: Any) -> None:
    for _ in range(15):
        calls.gradient()
    window.close("end-of-run")
    assert window.kept.discarded == [14]


def test_a_loop_that_is_left_while_its_iterator_lives_gives_way(window: Any, calls: Any) -> None:
    iterator = Iterator("train")
    for _ in range(15):
        calls.before(iterator)
        calls.gradient()
    for _ in range(300):
        calls.gradient()
    assert window.kept.source.kind == "eager-gradient"
    assert window.log.state["window"]["steps"] == 20
