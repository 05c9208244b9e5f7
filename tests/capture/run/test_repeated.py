"""Steps that repeat: however a step is noted, the account of the run is the same."""

import contextlib
import gc
import inspect
import threading
import time
import weakref
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture import agent
from tests.capture.run.test_clock import BrokenError, fake_time, kinds, started

repeated: Any = agent.load("run.repeated")
streams: Any = agent.load("stream")
tensorflow_steps: Any = agent.load("hooks.tensorflow_steps")
keras_steps: Any = agent.load("hooks.keras_steps")
objects: Any = agent.load("process.objects")

MS = 1_000_000
TIMES = st.sampled_from([1.003, 10.007, 40.011])
"""ms, such that no step lies at the limit from which it is a long one."""

INSIDE = st.sampled_from([None, None, None, None, "trace", "other", "nothing", "raise", "save"])
"""What happens within a call: most repeat what came before."""

ACTIONS = st.one_of(
    st.tuples(st.just("function"), st.integers(0, 1), TIMES, INSIDE),
    st.tuples(st.just("function"), st.integers(0, 1), TIMES, st.none()),
    st.tuples(st.just("keras"), TIMES, st.sampled_from([None, None, None, "trace", "raise"])),
    st.tuples(st.just("python"), st.sampled_from([0.1, 7.013])),
    st.tuples(st.just("evaluate"), TIMES),
    st.tuples(st.just("save"), TIMES),
    st.just(("pass over",)),
)


class Function:
    """A tf.function, by the name that TensorFlow gives it."""

    _name = "f"


class Concrete:
    """A concrete function of a graph."""

    def __init__(self) -> None:
        self.graph = SimpleNamespace(variables=(), version=3)


class Log:
    """No listener may fail."""

    def fault(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error


class Never(dict[Any, Any]):
    """Learns no call."""

    def __setitem__(self, key: object, value: object) -> None:
        return


class Hooked:
    """A script that trains below the hooks: each of its functions is called at one place."""

    def __init__(self, clock: Any, time: Any, *, repeats: bool) -> None:
        self.clock, self.time = clock, time
        if not repeats:
            clock.repeats.known = Never()
        self.functions, self.inner = [Function(), Function()], Function()
        self.concrete, self.other, self.tests = [Concrete(), Concrete()], Concrete(), Concrete()
        self.trained = Concrete()  # by Keras
        self.noted = self.briefly = 0
        self._hook()

    def _hook(self) -> None:
        installed = SimpleNamespace(recorder=SimpleNamespace(clock=self.clock), window=None, log=Log())
        installed.window = SimpleNamespace(graph_marks=self)
        stream = streams.Stream(Log())
        tensorflow_steps.account(stream, installed)

        def hooked(event: str, original: Any) -> Any:
            point = streams.Point(Log(), original, event)
            return stream.wrap(point, [(listen(point), "") for listen, _ in stream.listens[event]])

        self.called, self.runs = hooked("function", self._called), hooked("graph run", self._runs)
        self.traces = hooked("trace", lambda: SimpleNamespace(variables=(), version=3))
        trainers = object.__new__(keras_steps.Trainers)
        trainers.log, trainers.stream, trainers.installed, trainers.window = Log(), stream, installed, None
        stream.rest(streams.WINDOW, rests=True)
        steps = keras_steps.TrainFunctionCalls(trainers, self._trains, 2)
        self.train_function = trainers._own(self._trains, steps, steps.count)

    def get(self, graph: int, _: object) -> dict[str, object]:
        """Return the marks of a graph."""
        return {} if graph == id(self.tests.graph) else {objects.TRAINS: None}

    def look(self) -> None:
        totals, now = self.clock.read()
        assert sum(totals.values()) == now - self.clock.began
        assert all(ns >= 0 for ns in totals.values())

    def sleep(self, ms: float) -> None:
        self.time.now += int(ms * MS)

    def run(self, program: list[Any]) -> None:
        for name, *rest in program:
            with contextlib.suppress(BrokenError):
                getattr(self, name.replace(" ", "_"))(*rest)
            self.look()

    def function(self, number: int, ms: float, inside: str | None) -> None:
        runs = {"other": self.other, "nothing": self.tests}.get(inside or "", self.concrete[number])
        self.called(self.functions[number], runs, ms, inside)

    def keras(self, ms: float, inside: str | None) -> None:
        self.train_function(ms, inside)

    def _trains(self, ms: float, inside: str | None) -> None:
        self.called(self.inner, self.trained, ms, inside)

    def _called(self, _: Function, runs: Concrete, ms: float, inside: str | None) -> None:
        self.sleep(0.5)
        self.runs(runs, ms, inside)

    def _runs(self, _: Concrete, ms: float, inside: str | None) -> None:
        if inside == "trace":
            self.traces()
        if inside == "save":
            self.save(3.001)
        self.sleep(ms)
        self.body()
        if inside == "raise":
            raise BrokenError

    def body(self) -> None:
        """A step is under way."""
        self.look()
        self.briefly += self.clock.repeats.began > 0
        self.noted += self.clock.repeats.under_way() is not None

    def python(self, ms: float) -> None:
        self.sleep(ms)

    def evaluate(self, ms: float) -> None:
        self.call(kinds.EVALUATE, ms)

    def save(self, ms: float) -> None:
        self.call(kinds.SAVE, ms)

    def call(self, kind: str, ms: float) -> None:
        entered = self.clock.enter(kind, kind, inspect.currentframe())
        self.sleep(ms)
        self.clock.leave(entered)

    def pass_over(self) -> None:
        self.clock.pass_over()


def account(program: list[Any], *, repeats: bool) -> tuple[dict[str, Any], int]:
    """Return all that is known of a run in the end, to the us, and how many steps were noted as repeated."""
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=repeats)
        script.run(program)
        clock.pass_over()
        steps, _ = clock.steps.take(10**9)
        return {
            "ms": {_name(place): round(ns / MS, 2) for place, ns in clock.read()[0].items() if ns > 900},
            "entered": Counter({_name(place): n for place, n in clock.entered.items()}),
            "steps": {_name(place): _told(ended, place) for place, ended in steps.items()},
            "long steps": sorted((line["number"], round(line["ms"], 2)) for line in clock.steps.long),
            "traces": len(clock.traces),
            "spans": [round((span["end"] - span["start"]) / MS, 2) for span in clock.spans],
            "state": (clock.current.kind, clock.inside, clock.running, clock.first, clock.caller),
        }, script.noted


def _name(place: Any) -> Any:
    return place.kind, place.at, place.name, place.parent and place.parent.kind


def _told(ended: Any, place: Any) -> Any:
    line = ended.describe(place)
    each = [round(ms, 2) for ms in line.pop("each")]
    return {**line, "ms": round(line["ms"], 2), "each": each}


@settings(max_examples=50, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_steps_that_repeat_are_accounted_for_as_all_others(program: list[Any]) -> None:
    quick, _ = account(program, repeats=True)
    full, noted = account(program, repeats=False)
    assert noted == 0
    assert quick == full


LOOPS = st.builds(
    lambda step, times: [step] * times,
    st.sampled_from([("function", 0, 1.003, None), ("keras", 1.003, None)]),
    st.integers(20, 60),
)
"""Loops that are long enough for steps to be noted briefly."""

ONE = ACTIONS.map(lambda action: [action])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(ONE, LOOPS), max_size=20))
def test_so_are_those_that_are_noted_briefly(parts: list[list[Any]]) -> None:
    program = [action for part in parts for action in part]
    quick, _ = account(program, repeats=True)
    full, _ = account(program, repeats=False)
    assert quick == full


@pytest.mark.parametrize("step", [("function", 0, 1.003), ("keras", 1.003)])
def test_most_steps_of_a_long_loop_are_noted_briefly(step: tuple[Any, ...]) -> None:
    with fake_time() as now:
        clock = started()
        script = Hooked(clock, now, repeats=True)
        for _ in range(3):
            script.run([(*step, None)] * 300)
            assert script.briefly > 250
            script.briefly = 0
            script.run([("pass over",)])


@pytest.mark.parametrize("inside", ["trace", "raise"])
@pytest.mark.parametrize("step", [("function", 0, 1.003), ("keras", 1.003)])
def test_what_happens_in_a_call_that_is_noted_briefly_is_told(step: tuple[Any, ...], inside: str) -> None:
    program = [*[(*step, None)] * 20, (*step, inside), *[(*step, None)] * 20]
    quick, _ = account(program, repeats=True)
    assert quick == account(program, repeats=False)[0]
    assert quick["traces"] == (inside == "trace")
    (steps,) = quick["steps"].values()
    assert steps["calls"] == 40


def test_most_steps_of_a_loop_repeat() -> None:
    _, noted = account([("function", 0, 1.003, None)] * 100, repeats=True)
    assert noted == 99
    _, noted = account([("keras", 1.003, None)] * 100, repeats=True)
    assert noted == 99
    turns = [("function", 0, 1.003, None), ("function", 1, 1.003, None)] * 50
    assert account(turns, repeats=True)[1] >= 95


def test_a_long_step_is_seen_while_it_lasts() -> None:
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        script.run([("function", 0, 1.003, None)] * 40)
        seen = []
        script.look = lambda: seen.append(clock.in_long_step(time.now))  # type: ignore[method-assign]  # during a call, and after it
        script.run([("function", 0, ms, None) for ms in (1.003, 40.011, 1.003)])
        script.run([("python", 7.013), ("save", 0.1)])
    assert seen == [False, False, True, True, False, False, True, True]


def test_few_steps_wait() -> None:
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        for _ in range(200):
            script.run([("function", 0, 0.1, None)])
            assert len(clock.repeats.waiting) < repeated.MOST_WAITING + repeated.BRIEF
        script.run([("python", 1_000)])
        script.run([("function", 0, 0.1, None)] * 2)
        assert len(clock.repeats.waiting) == 1


def test_another_concrete_function_at_the_same_place_is_no_repetition() -> None:
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        script.run([("function", 0, 1.003, None)] * 5)
        script.concrete[0] = None  # type: ignore[call-overload]  # gone
        gc.collect()
        script.concrete[0] = Concrete()
        script.run([("function", 0, 1.003, None)])
        assert clock.repeats.known
        assert sum(n for place, n in clock.entered.items() if place.kind == kinds.STEP) == 6


def test_calls_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "MOST", 5)
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        for _ in range(20):
            script.functions[0] = Function()
            script.run([("function", 0, 1.003, None)] * 3)
        assert len(clock.repeats.known) <= 5


def test_a_step_of_an_earlier_recording_ends_unseen() -> None:
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        script.run([("function", 0, 1.003, None)] * 5)
        script.body = lambda *_: clock.begin(threading.get_ident())  # type: ignore[method-assign]  # within a call
        script.run([("function", 0, 1.003, None)])
        assert clock.current is clock.places.script
        assert not clock.inside
        assert not clock.running
        assert not clock.repeats.waiting


@pytest.mark.parametrize("ends", ["pass_over", "save"])
def test_what_is_over_keeps_no_function_and_no_graph_alive(ends: str) -> None:
    """Trap: a model of an earlier experiment would keep its memory."""
    with fake_time() as time:
        clock = started()
        script = Hooked(clock, time, repeats=True)
        script.run([("function", 0, 1.003, None)] * 20)
        assert clock.repeats.brief is script.functions[0]
        gone = [weakref.ref(script.functions[0]), weakref.ref(script.concrete[0])]
        script.run([("pass over",)] if ends == "pass_over" else [("save", 1.0)])
        script.functions.clear()
        script.concrete.clear()
        gc.collect()
        assert [reference() for reference in gone] == [None, None]


class Training(threading.Thread):
    """Trains in a thread of its own, as fast as the hooks let it."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self.clock, self.over, self.ready = clock, threading.Event(), threading.Event()
        self.script = Hooked(clock, SimpleNamespace(now=0), repeats=True)
        self.script.body = lambda: setattr(self.script, "noted", self.script.noted + 1)  # type: ignore[method-assign]  # notes nothing

    def run(self) -> None:
        self.clock.begin(threading.get_ident())
        self.ready.set()
        while not self.over.is_set():
            self.script.function(0, 0.0, None)


def test_another_thread_reads_while_steps_repeat() -> None:
    """No ns is lost or counted twice; what is read between a moment and its note goes to another place next."""
    clock = started()
    training = Training(clock)
    training.start()
    training.ready.wait()
    last: dict[Any, int] = {}
    until, reads, taken_back = time.monotonic() + 60, 0, 0
    try:
        while (reads < 300 or training.script.noted <= 300) and time.monotonic() < until:
            reads += 1
            totals, now = clock.read()
            assert sum(totals.values()) == now - clock.began
            taken_back += sum(max(0, ns - totals[place]) for place, ns in last.items())
            last = totals
    finally:
        training.over.set()
        training.join()
    assert training.script.noted > 300
    assert taken_back <= 0.05 * (now - clock.began)


@pytest.mark.parametrize("steps", [3, 25, 40])
@pytest.mark.parametrize("kind", [("function", 0), ("keras",)])
def test_a_call_in_which_noting_was_interrupted_hides_no_later_one(kind: tuple[Any, ...], steps: int) -> None:
    """Trap: a handler of a signal raises between two lines of a hook, and the script catches it."""
    step: Any = (*kind, 1.003, None)
    for looks in range(12):  # at the clock, until it raises
        with fake_time() as now:
            clock = started()
            script = Hooked(clock, now, repeats=True)
            script.run([step] * steps)
            now.left = looks
            with contextlib.suppress(KeyboardInterrupt):
                script.run([step])
            now.left = -1
            assert (clock.running, clock.inside) == (False, 0)
            script.run([step] * 20)
            clock.pass_over()
        (ended,) = clock.steps.take(10**9)[0].values()
        assert ended.calls in (steps + 20, steps + 21)
        assert sum(place.kind == kinds.STEP for place in clock.entered) == 1
