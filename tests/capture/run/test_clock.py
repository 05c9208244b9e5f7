"""The clock of the run: whatever calls whatever, every ns is in exactly one call."""

import contextlib
import inspect
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture import agent

clocks: Any = agent.load("run.clock")
kinds = agent.load("run.kinds")
kept: Any = agent.load("process.kept").time
"""Where the agent's modules look at the time."""


class BrokenError(Exception):
    """An exception of the user's."""


@contextlib.contextmanager
def traced_elsewhere(clock: Any) -> Iterator[None]:
    """Trace a function in a thread that is not followed."""
    traced = clocks.TracedElsewhere(clock, "step", None)
    traced.begins()
    yield
    traced.ends()


def frame() -> FrameType | None:
    return inspect.currentframe()


@dataclass
class Time:
    """A clock that goes on when the program works, and by one ns at each look."""

    now: int = 1_000
    left: int = -1  # looks until the user presses Ctrl-C; -1: they do not

    def __call__(self) -> int:
        self.now += 1
        if not self.left:
            self.left = -1
            raise KeyboardInterrupt
        self.left -= self.left > 0
        return self.now


@contextlib.contextmanager
def fake_time() -> Iterator[Time]:
    before, kept.perf_counter_ns = kept.perf_counter_ns, Time()
    try:
        yield kept.perf_counter_ns
    finally:
        kept.perf_counter_ns = before


def started() -> Any:
    clock = clocks.CallClock()
    clock.begin(threading.get_ident())
    return clock


# Programs: what a user's script does, as a tree

LEAVES = st.one_of(
    st.tuples(st.just("python"), st.integers(0, 10**9)),
    st.just(("tape",)),
    st.just(("pass over",)),
    st.just(("raise",)),
)
KINDS = st.sampled_from(
    [kinds.EVALUATE, kinds.PREDICT, kinds.COMPILE, kinds.BUILD, kinds.ADAPT, kinds.SAVE, kinds.PROFILER]
)


def bodies(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    body = st.lists(children, max_size=4)
    return st.one_of(
        st.tuples(st.just("call"), KINDS, body),
        st.tuples(st.just("function"), st.booleans(), st.booleans(), body),
        st.tuples(st.just("step"), st.integers(1, 3), body),
        st.tuples(st.just("fit"), st.lists(body, max_size=3)),
        st.tuples(st.just("try"), body),
    )


PROGRAMS = st.lists(st.recursive(LEAVES, bodies, max_leaves=25), max_size=6)


class Script:
    """Runs a program as the hooks would see it."""

    def __init__(self, clock: Any, time: Time) -> None:
        self.clock, self.time = clock, time
        self.functions: list[object] = []

    def check(self) -> None:
        totals, now = self.clock.read()
        assert sum(totals.values()) == now - self.clock.began
        assert all(ns >= 0 for ns in totals.values())
        assert set(totals) <= set(self.clock.places.made)

    def run(self, program: list[Any]) -> None:
        for name, *rest in program:
            getattr(self, "do_" + name.replace(" ", "_"))(*rest)
            self.check()

    def do_python(self, ns: int) -> None:
        self.time.now += ns

    def do_tape(self) -> None:
        if not self.clock.inside and not self.clock.running:
            self.clock.step_at(frame())

    def do_pass_over(self) -> None:
        self.clock.pass_over()

    def do_raise(self) -> None:
        raise BrokenError

    def do_try(self, body: list[Any]) -> None:
        with contextlib.suppress(BrokenError):
            self.run(body)

    def do_call(self, kind: str, body: list[Any]) -> None:
        clock = self.clock
        if clock.current.kind == kind:
            self.run(body)
            return
        entered = clock.enter(kind, kind, frame())
        try:
            self.run(body)
        except BrokenError as error:
            clock.fails(error, entered[2])
            raise
        finally:
            clock.leave(entered)

    def do_function(self, traces: bool, trains: bool, body: list[Any]) -> None:  # noqa: FBT001
        clock, function = self.clock, lambda: None
        self.functions.append(function)
        if clock.inside:
            self.run(body)
            return
        entered = clock.function_begins("f", frame())
        try:
            if traces:
                clock.trace_begins()
            if not clock.running:
                if trains:
                    clock.function_trains("repeated-call")
                else:
                    clock.function_tests()
            self.run(body)
        finally:
            clock.function_ends(entered, function, "f")

    def do_step(self, k: int, body: list[Any]) -> None:
        clock = self.clock
        if clock.running:
            self.run(body)
            return
        outer = clock.step_begins(frame(), "keras-train-on-batch", k)
        try:
            self.run(body)
        except BrokenError as error:
            clock.fails(error, clock.current)
            clock.steps.retract()
            raise
        finally:
            clock.step_ends(outer)

    def do_fit(self, epochs: list[Any]) -> None:
        clock = self.clock
        if clock.current.kind == kinds.FIT:
            return
        entered = clock.enter(kinds.FIT, "Model.fit", frame())
        try:
            for number, body in enumerate(epochs):
                clock.epoch_begins(number)
                self.run(body)
                clock.steps_over()
                clock.epoch_ends()
        except BrokenError as error:
            clock.fails(error, entered[2])
            raise
        finally:
            clock.leave(entered)


@settings(max_examples=60, deadline=None)
@given(PROGRAMS)
def test_whatever_calls_whatever_every_ns_is_in_one_call(program: list[Any]) -> None:
    with fake_time() as time:
        clock = started()
        script = Script(clock, time)
        with contextlib.suppress(BrokenError):
            script.run(program)
        script.check()
        clock.pass_over()
        assert clock.current is clock.places.script
        assert not clock.inside
        assert not clock.running
        assert not clock.open
        for span in clock.spans:
            assert clock.began <= span["start"] <= span["end"] <= time.now
        steps, _ = clock.steps.take(10**9)
        for ended in steps.values():
            assert 0 < ended.took <= time.now
            assert len(ended.each) == ended.calls <= ended.steps


def call(clock: Any, kind: str, body: Any = None) -> None:
    entered = clock.enter(kind, kind, None)
    if body:
        body()
    clock.leave(entered)


def ms_of(clock: Any) -> dict[str, float]:
    """Return the ms in each kind of call."""
    found: dict[str, float] = {}
    for place, ns in clock.read()[0].items():
        found[place.kind] = round(found.get(place.kind, 0) + ns / 1e6, 3)
    return found


def test_a_call_within_another_takes_its_time_from_it() -> None:
    with fake_time() as time:
        clock = started()

        def sleep(ms: int) -> None:
            time.now += ms * 1_000_000

        def evaluation() -> None:
            sleep(20)
            call(clock, kinds.SAVE, lambda: sleep(5))
            sleep(1)

        sleep(3)
        call(clock, kinds.EVALUATE, evaluation)
        found = ms_of(clock)
    assert found == {"script": 3, "evaluate": 21, "save": 5}
    assert {span["call"]: round((span["end"] - span["start"]) / 1e6) for span in clock.spans} == {1: 26, 2: 5}


def test_what_evaluates_within_a_step_is_no_part_of_it() -> None:
    with fake_time() as time:
        clock = started()
        for _ in range(3):
            outer = clock.step_begins(None, "eager-gradient", 1)
            time.now += 10_000_000
            clock.step_ends(outer)
            call(clock, kinds.SAVE, lambda: setattr(time, "now", time.now + 500_000_000))
        clock.pass_over()
        (ended,) = clock.steps.take(10)[0].values()
    assert [round(ms) for ms in ended.each] == [10, 10, 10]
    assert clock.current is clock.places.script


def test_an_epoch_that_an_exception_ends_is_told() -> None:
    with fake_time() as time:
        clock = started()
        fit = clock.enter(kinds.FIT, "Model.fit", None)
        clock.epoch_begins(0)
        time.now += 10
        clock.leave(fit)
        assert clock.open == []
        assert [span["call"] for span in clock.spans] == [2, 1]


def test_the_call_that_failed_is_that_of_the_exception_that_ends_the_run() -> None:
    clock = started()
    caught, fatal = BrokenError(), RuntimeError()
    for kind, error in ((kinds.BUILD, caught), (kinds.PREDICT, fatal)):
        outer = clock.enter(kinds.EVALUATE, "", None)
        entered = clock.enter(kind, kind, None)
        for left in (entered, outer):
            clock.fails(error, left[2])
            clock.leave(left)
    assert clock.ended_in(fatal).kind == kinds.PREDICT
    assert clock.ended_in(None).kind == kinds.SCRIPT
    assert clock.ended_in(caught).kind == kinds.SCRIPT
    last = KeyError()
    last.__cause__ = fatal
    assert clock.ended_in(last).kind == kinds.PREDICT


def test_exceptions_that_cause_each_other_end_the_search() -> None:
    clock = started()
    one, other = BrokenError(), BrokenError()
    one.__cause__, other.__cause__ = other, one
    assert clock.ended_in(one) is clock.places.script


# Interrupts


def test_an_interrupted_switch_loses_no_time_and_keeps_nobody_waiting() -> None:
    """A handler of a signal may raise between any two lines: here within the switch."""
    with fake_time() as time:
        clock = started()
        time.now += 1_000
        entered = clock.enter(kinds.SAVE, "", None)
        time.now += 1_000
        clock.now = None  # what an interrupted switch leaves behind
        totals, now = clock.read()
        assert sum(totals.values()) == now - clock.began
        assert totals[entered[2]] >= 1_000
        clock.leave(entered)
        totals, now = clock.read()
        assert sum(totals.values()) == now - clock.began


def test_another_thread_reads_while_calls_come_and_go() -> None:
    clock = started()
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            call(clock, kinds.SAVE)

    thread = threading.Thread(target=work)
    thread.start()
    last = 0
    for _ in range(300):
        totals, now = clock.read()
        assert sum(totals.values()) == now - clock.began
        assert now > last
        last = now
    over.set()
    thread.join()


@pytest.mark.parametrize("fails", [False, True])
def test_a_function_that_trains_in_other_calls_tests_in_one_that_does_not(*, fails: bool) -> None:
    with fake_time() as time:
        clock, at = started(), frame()
        for trains in (True, True, True, False, True):
            entered = clock.function_begins("f", at)
            clock.function_trains("repeated-call") if trains else clock.function_tests()
            time.now += 10_000_000 if trains else 500_000_000
            if fails and not trains:  # an exception comes while it is noted
                clock.abandon()
            clock.function_ends(entered, started, "f")
        clock.pass_over()
        (ended,) = clock.steps.take(10)[0].values()
        found = ms_of(clock)
    assert [round(ms) for ms in ended.each] == [10, 10, 10, 10]
    assert (found["test"], found["step"]) == (500, 40)


def test_what_comes_with_every_step_belongs_to_it_and_what_comes_in_a_row_does_not() -> None:
    clock, at = started(), frame()
    for trains in (*(True, False) * 10, *(False,) * 5):
        entered = clock.function_begins("f" if trains else "g", at)
        clock.function_trains("repeated-call") if trains else clock.function_tests()
        if not trains and clock.stepped < 10:
            assert clock.current.kind == kinds.FUNCTION
        clock.function_ends(entered, started, "f")
    assert sum(n for place, n in clock.entered.items() if place.kind == kinds.TEST) == 4


# Threads


def in_a_thread(function: Any, *, waits: bool = True) -> None:
    """Run a function in another thread, while this one waits for it or works; a look at an event is a wait."""
    begun: list[bool] = []
    over: list[bool] = []

    def run() -> None:
        while not (waits or begun):
            pass
        function()
        over.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    begun.append(True)
    while not (waits or over):
        pass
    thread.join()


def train(clock: Any) -> None:
    for _ in range(3):
        if clock.adopt():
            clock.step_ends(clock.step_begins(None, "repeated-call", 1))


def steps_of(clock: Any) -> int:
    return sum(n for place, n in clock.entered.items() if place.kind == kinds.STEP)


@contextlib.contextmanager
def tracing(clock: Any) -> Iterator[None]:
    """Have another thread trace a function that is followed, for this one was seen to wait for it."""
    lent, over = threading.Event(), threading.Event()

    def trace() -> None:
        with traced_elsewhere(clock):
            while clock.lent is None:
                clock.sampled()
            lent.set()
            over.wait()

    thread = threading.Thread(target=trace)
    thread.start()
    lent.wait()
    yield
    over.set()
    thread.join()


def test_a_thread_that_trains_is_followed_until_it_ends() -> None:
    clock = started()
    main = clock.thread
    in_a_thread(lambda: train(clock))
    assert clock.thread != main
    assert clock.current.kind == kinds.BETWEEN
    clock.look_after_thread()
    assert clock.thread == main
    assert clock.ours()
    assert clock.current is clock.places.script
    for _ in range(2):  # one after the other
        in_a_thread(lambda: train(clock))
    assert steps_of(clock) == 9


def test_no_other_thread_is_followed_than_the_one_that_trains() -> None:
    clock = started()
    train(clock)
    in_a_thread(lambda: train(clock), waits=False)
    assert clock.ours()
    assert steps_of(clock) == 3


def test_training_moves_to_a_thread_while_the_one_that_trained_waits() -> None:
    clock = started()
    train(clock)
    clock.pass_over()
    in_a_thread(lambda: train(clock))
    train(clock)
    assert steps_of(clock) == 9


def test_a_thread_is_not_followed_while_the_main_thread_is_in_a_call() -> None:
    clock = started()
    call(clock, kinds.PREDICT, lambda: in_a_thread(lambda: train(clock)))
    assert clock.ours()
    assert set(ms_of(clock)) == {"script", "predict"}


@pytest.mark.parametrize("waits", [True, False])
def test_a_thread_that_traces_is_followed_while_the_main_thread_waits_for_it(*, waits: bool) -> None:
    clock, seen = started(), []

    def trace() -> None:
        with traced_elsewhere(clock):
            seen.append((clock.ours(), clock.current.kind == kinds.TRACE))

    clock.trains = True
    in_a_thread(trace, waits=waits)
    assert seen == [(waits, waits)]
    assert clock.ours()
    assert clock.trains
    assert not clock.inside
    assert clock.current is clock.places.script


def test_a_thread_that_waited_has_the_account_again_when_it_goes_on() -> None:
    clock = started()
    with tracing(clock):
        assert not clock.ours()
        assert clock.follows()
        train(clock)
    assert clock.ours()
    assert steps_of(clock) == 3
    assert ms_of(clock)["trace"] > 0.0


def test_the_sampler_sees_that_a_thread_goes_on() -> None:
    clock = started()
    with tracing(clock):
        in_a_thread(clock.sampled, waits=False)
        assert clock.lent is None


def test_a_trace_that_is_waited_for_between_steps_is_no_part_of_them() -> None:
    clock = started()

    def trace() -> None:
        with traced_elsewhere(clock):
            while clock.lent is None:
                clock.sampled()
            time.sleep(0.2)

    for _ in range(2):
        clock.step_ends(clock.step_begins(None, "repeated-call", 1))
        in_a_thread(trace)
    clock.step_ends(clock.step_begins(None, "repeated-call", 1))
    clock.pass_over()
    (ended,) = clock.steps.take(10)[0].values()
    assert max(ended.each) < 150


# Recordings one after another


def test_a_call_of_an_earlier_recording_ends_unseen() -> None:
    clock = started()
    fit = clock.enter(kinds.FIT, "Model.fit", None)
    function = clock.enter(kinds.FUNCTION, "f", None)
    clock.begin(threading.get_ident())
    predict = clock.enter(kinds.PREDICT, "Model.predict", None)
    clock.leave(fit)
    clock.function_ends(function, None, "f")
    assert clock.current is predict[2]
    assert not clock.spans
    assert not clock.inside


def test_nothing_is_recorded_before_the_begin() -> None:
    clock = clocks.CallClock()
    assert not clock.ours()
    assert not clock.adopt()


# Bounds


def test_spans_are_bounded_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_SPANS", 5)
    monkeypatch.setattr(clocks, "MOST_LONG_SPANS", 12)
    with fake_time() as time:
        clock = started()
        for number in range(20):
            slow = number % 2
            call(clock, kinds.PREDICT, lambda slow=slow: setattr(time, "now", time.now + slow * clocks.LONG_NS))
    assert len(clock.spans) == 5 + 4
    assert clock.dropped == 11


def test_traces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_TRACES", 3)
    clock = started()

    def function() -> None:
        """Stand for a tf.function."""

    for _ in range(5):
        entered = clock.function_begins("f", None)
        clock.trace_begins()
        clock.function_ends(entered, function, "f")
    assert [line["made"] for line in clock.traces] == [0, 0, 0]
    assert clock.dropped == 2


@pytest.mark.parametrize("trains", [True, False])
def test_what_is_traced_after_a_step_is_no_part_of_it(*, trains: bool) -> None:
    """A step lasts until the next one begins, and the trace of a function comes before its graph trains."""

    def function() -> None:
        """Stand for a tf.function."""

    with fake_time() as time:
        clock = started()
        for traces in (False, False, True, False):
            for steps in (trains, True):
                entered = clock.function_begins("f", frame())
                if traces and steps == trains:
                    clock.trace_begins()
                    time.now += 10**9
                if steps:
                    clock.function_trains("repeated-call")
                    time.now += 10**6
                clock.function_ends(entered, function, "f")
        clock.steps.passes_over()
    assert all(max(took) < 2 * 10**6 for _, took, _, _ in clock.steps.ended)
    assert len(clock.steps.ended) >= 3


def test_calls_that_train_are_noted_once_for_what_their_loops_keep() -> None:
    clock = started()
    for _ in range(3):
        clock.step_ends(clock.step_begins(inspect.currentframe(), "repeated-call", 1))
        fit = clock.enter(kinds.FIT, "Model.fit", inspect.currentframe())
        clock.step_ends(clock.step_begins(inspect.currentframe(), "keras-fit", 1))  # in the loop of fit itself
        clock.leave(fit)
        clock.leave(clock.enter(kinds.EVALUATE, "Model.evaluate", inspect.currentframe()))
    assert [call["fits"] for call in clock.kept.told] == [False, True]
    clock.begin(threading.get_ident())
    assert not clock.kept.told


class Traced:
    """Stands for a tf.function."""

    def __init__(self, python: object) -> None:
        self.python_function = python


def traces_of(functions: list[Traced], *args: object) -> list[dict[str, Any]]:
    """Return what is told of calls that trace these functions."""
    clock = started()
    for function in functions:
        entered = clock.function_begins("f", frame())
        clock.trace_begins()
        clock.function_ends(entered, function, "f", args)
    return list(clock.traces)


def test_a_python_function_of_two_function_objects_is_kept() -> None:
    def step(rate: float) -> None:
        """Stand for what is traced."""

    def defined_anew() -> Traced:
        def step(rate: float) -> None: ...

        return Traced(step)

    first, second = Traced(step), Traced(step)
    assert [each["kept"] for each in traces_of([first, first, second])] == [False, False, True]
    anew = [defined_anew() for _ in range(3)]
    assert [each["kept"] for each in traces_of(anew)] == [False, False, False]
    assert len({each["defined"] for each in traces_of(anew)}) == 1
    assert [each["kept"] for each in traces_of([Traced(len), Traced(len)])] == [False, False]


def test_python_numbers_are_told_of_the_first_traces_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.load("run.traced_arguments"), "MOST_NUMBERED", 2)

    def step(rate: float) -> None:
        """Stand for what is traced."""

    told = traces_of([Traced(step)] * 4, 0.5)
    assert [[one["value"] for one in each["numbers"]] for each in told] == [["0.5"], ["0.5"], [], []]
