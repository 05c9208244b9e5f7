"""The clock of the run: whatever calls whatever, every ns is in exactly one call."""

from tests.capture.run.kit import *


def frame() -> FrameType | None:
    return inspect.currentframe()


# Programs: what a user's script does, as a tree

LEAVES = st.one_of(
    st.tuples(st.just("python"), st.integers(0, 10**9)),
    *(st.just((one,)) for one in ("tape", "pass_over", "raise")),
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

    def run(self, program: list[Any]) -> None:
        for name, *rest in program:
            getattr(self, f"do_{name}")(*rest)
            check(self.clock)

    @contextlib.contextmanager
    def within(self, kind: str, name: str) -> Iterator[None]:
        """Be in a call that an exception may end."""
        entered = self.clock.enter(kind, name, frame())
        try:
            yield
        finally:
            self.clock.leave(entered)

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
        with contextlib.nullcontext() if self.clock.current.kind == kind else self.within(kind, kind):
            self.run(body)

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
                noted(clock, trains=trains)
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
        except BrokenError:
            clock.repeats.settle()
            clock.steps.retract()
            raise
        finally:
            clock.step_ends(outer)

    def do_fit(self, epochs: list[Any]) -> None:
        clock = self.clock
        if clock.current.kind == kinds.FIT:
            return
        with self.within(kinds.FIT, "Model.fit"):
            for body in epochs:
                clock.epoch_begins()
                self.run(body)
                clock.steps_over()
                clock.epoch_ends()


@settings(max_examples=60, deadline=None)
@given(PROGRAMS)
def test_whatever_calls_whatever_every_ns_is_in_one_call(program: list[Any]) -> None:
    with fake_time() as time:
        clock = started()
        with contextlib.suppress(BrokenError):
            Script(clock, time).run(program)
        check(clock)
        clock.pass_over()
        assert clock.current is clock.places.script
        assert (clock.inside, clock.running, clock.open) == (0, False, [])
        assert all(clock.began <= span["start"] <= span["end"] <= time.now for span in clock.spans)
        for ended in clock.steps.take(10**9)[0].values():
            assert 0 < ended.took <= time.now
            assert len(ended.each) == ended.calls <= ended.steps


@contextlib.contextmanager
def call(clock: Any, kind: str) -> Iterator[None]:
    entered = clock.enter(kind, kind, None)
    yield
    clock.leave(entered)


def noted(clock: Any, *, trains: bool) -> None:
    """Note of the function that is called whether its graph trains."""
    clock.function_trains("repeated-call") if trains else clock.function_tests()


@contextlib.contextmanager
def function(clock: Any, *args: object, of: object = started, name: str = "f") -> Iterator[None]:
    """Call a tf.function."""
    entered = clock.function_begins(name, frame())
    yield
    clock.function_ends(entered, of, "f", args)


def ms_of(clock: Any) -> dict[str, float]:
    """Return the ms in each kind of call."""
    found: dict[str, float] = {}
    for place, ns in clock.read()[0].items():
        found[place.kind] = round(found.get(place.kind, 0) + ns / 1e6, 3)
    return found


def each_ms(clock: Any) -> list[int]:
    """Return the ms of the steps at the one place at which they were taken."""
    return [round(ms) for ms in only_steps(clock).each]


def test_a_call_within_another_takes_its_time_from_it(clock: Any, moment: Time) -> None:
    moment.sleep(3)
    with call(clock, kinds.EVALUATE):
        moment.sleep(20)
        with call(clock, kinds.SAVE):
            moment.sleep(5)
        moment.sleep(1)
    assert ms_of(clock) == {"script": 3, "evaluate": 21, "save": 5}
    assert {span["call"]: round((span["end"] - span["start"]) / 1e6) for span in clock.spans} == {1: 26, 2: 5}


def test_what_evaluates_within_a_step_is_no_part_of_it(clock: Any, moment: Time) -> None:
    for _ in range(3):
        outer = clock.step_begins(None, "eager-gradient", 1)
        moment.sleep(10)
        clock.step_ends(outer)
        with call(clock, kinds.SAVE):
            moment.sleep(500)
    assert each_ms(clock) == [10, 10, 10]
    assert clock.current is clock.places.script


def test_an_epoch_that_an_exception_ends_is_told(clock: Any) -> None:
    with call(clock, kinds.FIT):
        clock.epoch_begins()
    assert (clock.open, [span["call"] for span in clock.spans]) == ([], [2, 1])


# Interrupts


def test_an_interrupted_switch_loses_no_time_and_keeps_nobody_waiting(clock: Any, moment: Time) -> None:
    """A handler of a signal may raise between any two lines: here within the switch."""
    moment.now += 1_000
    entered = clock.enter(kinds.SAVE, "", None)
    moment.now += 1_000
    clock.now = None  # what an interrupted switch leaves behind
    assert check(clock)[entered[2]] >= 1_000
    clock.leave(entered)
    check(clock)


def test_another_thread_reads_while_calls_come_and_go() -> None:
    clock, over, last = started(), threading.Event(), 0

    def work() -> None:
        while not over.is_set():
            with call(clock, kinds.SAVE):
                pass

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(300):
        totals, now = clock.read()
        assert sum(totals.values()) == now - clock.began
        assert now > last
        last = now
    over.set()
    thread.join()


@pytest.mark.parametrize("fails", [False, True])
def test_a_function_that_trains_in_other_calls_tests_in_one_that_does_not(
    clock: Any, moment: Time, *, fails: bool
) -> None:
    for trains in (True, True, True, False, True):
        with function(clock):
            noted(clock, trains=trains)
            moment.sleep(10 if trains else 500)
            if fails and not trains:  # an exception comes while it is noted
                clock.abandon()
    assert each_ms(clock) == [10, 10, 10, 10]
    found = ms_of(clock)
    assert (found["test"], found["step"]) == (500, 40)


def test_what_comes_with_every_step_belongs_to_it_and_what_comes_in_a_row_does_not(clock: Any) -> None:
    for trains in (*(True, False) * 10, *(False,) * 5):
        with function(clock, name="f" if trains else "g"):
            noted(clock, trains=trains)
            assert trains or clock.stepped >= 10 or clock.current.kind == kinds.FUNCTION
    assert steps_of(clock, kinds.TEST) == 4


# Threads


def in_a_thread(function: Any, *, waits: bool = True) -> None:
    """Run a function in another thread, while this one waits for it or works; a look at an event is a wait."""
    begun, over = list[bool](), list[bool]()

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


def take(clock: Any) -> None:
    """Take a step in this thread."""
    clock.step_ends(clock.step_begins(None, "repeated-call", 1))


def train(clock: Any) -> None:
    for _ in range(3):
        if clock.adopt():
            take(clock)


def trains_in_a_thread(clock: Any, *, waits: bool = True) -> None:
    in_a_thread(lambda: train(clock), waits=waits)


def test_a_thread_that_trains_is_followed_until_it_ends() -> None:
    clock = started()
    main = clock.thread
    trains_in_a_thread(clock)
    assert (clock.thread != main, clock.current.kind) == (True, kinds.BETWEEN)
    clock.look_after_thread()
    assert (clock.thread, clock.ours(), clock.current) == (main, True, clock.places.script)
    for _ in range(2):  # one after the other
        trains_in_a_thread(clock)
    assert steps_of(clock) == 9


def test_no_other_thread_is_followed_than_the_one_that_trains() -> None:
    clock = started()
    train(clock)
    trains_in_a_thread(clock, waits=False)
    assert (clock.ours(), steps_of(clock)) == (True, 3)


def test_training_moves_to_a_thread_while_the_one_that_trained_waits() -> None:
    clock = started()
    train(clock)
    clock.pass_over()
    trains_in_a_thread(clock)
    train(clock)
    assert steps_of(clock) == 9


def test_a_thread_is_not_followed_while_the_main_thread_is_in_a_call() -> None:
    clock = started()
    with call(clock, kinds.PREDICT):
        trains_in_a_thread(clock)
    assert (clock.ours(), set(ms_of(clock))) == (True, {"script", "predict"})


# Recordings one after another


def test_a_call_of_an_earlier_recording_ends_unseen(clock: Any) -> None:
    fit = clock.enter(kinds.FIT, "Model.fit", None)
    earlier = clock.enter(kinds.FUNCTION, "f", None)
    clock.begin(threading.get_ident())
    predict = clock.enter(kinds.PREDICT, "Model.predict", None)
    clock.leave(fit)
    clock.function_ends(earlier, None, "f")
    assert (clock.current, list(clock.spans), clock.inside) == (predict[2], [], 0)


def test_nothing_is_recorded_before_the_begin() -> None:
    clock = clocks.CallClock()
    assert not clock.ours()
    assert not clock.adopt()


# Bounds


def test_spans_are_bounded_and_the_others_counted(
    clock: Any, moment: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "MOST_SPANS", 5)
    monkeypatch.setattr(clocks, "MOST_LONG_SPANS", 12)
    for number in range(20):
        with call(clock, kinds.PREDICT):
            moment.now += number % 2 * clocks.LONG_NS
    assert (len(clock.spans), clock.dropped) == (5 + 4, 11)


def test_traces_are_bounded(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_TRACES", 3)
    for _ in range(5):
        with function(clock):
            clock.trace_begins()
    assert ([line["made"] for line in clock.traces], clock.dropped) == ([0, 0, 0], 2)


@pytest.mark.parametrize("trains", [True, False])
def test_what_is_traced_after_a_step_is_no_part_of_it(clock: Any, moment: Time, *, trains: bool) -> None:
    """A step lasts until the next one begins, and the trace of a function comes before its graph trains."""
    for traces, steps in itertools.product((False, False, True, False), (trains, True)):
        with function(clock):
            if traces and steps == trains:
                clock.trace_begins()
                moment.sleep(1000)
            if steps:
                noted(clock, trains=True)
                moment.sleep(1)
    clock.steps.passes_over()
    assert all(max(took) < 2 * MS for _, took, _, _ in clock.steps.ended)
    assert len(clock.steps.ended) >= 3


def test_calls_that_train_are_noted_once_for_what_their_loops_keep(clock: Any) -> None:
    for _ in range(3):
        clock.step_ends(clock.step_begins(inspect.currentframe(), "repeated-call", 1))
        fit = clock.enter(kinds.FIT, "Model.fit", inspect.currentframe())
        clock.step_ends(clock.step_begins(inspect.currentframe(), "keras-fit", 1))  # in the loop of fit itself
        clock.leave(fit)
        clock.leave(clock.enter(kinds.EVALUATE, "Model.evaluate", inspect.currentframe()))
    assert [call["fits"] for call in clock.kept.told] == [False, True]
    clock.begin(threading.get_ident())
    assert not clock.kept.told


@dataclass(eq=False)
class Traced:
    """Stands for a tf.function."""

    python_function: object


def traces_of(functions: list[Traced], *args: object) -> list[dict[str, Any]]:
    """Return what is told of calls that trace these functions."""
    clock = started()
    for one in functions:
        with function(clock, *args, of=one):
            clock.trace_begins()
    return list(clock.traces)


def step(rate: float) -> None:
    """Stand for what is traced."""


def test_a_python_function_of_two_function_objects_is_kept() -> None:
    def defined_anew() -> Traced:
        def step(rate: float) -> None: ...

        return Traced(step)

    def told(functions: list[Traced]) -> list[bool]:
        return [each["kept"] for each in traces_of(functions)]

    first, second, anew = Traced(step), Traced(step), [defined_anew() for _ in range(3)]
    assert told([first, first, second]) == [False, False, True]
    assert told(anew) == [False, False, False]
    assert len({each["defined"] for each in traces_of(anew)}) == 1
    assert told([Traced(len), Traced(len)]) == [False, False]


def test_python_numbers_are_told_of_the_first_traces_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.load("run.traced_arguments"), "MOST_NUMBERED", 2)
    told = traces_of([Traced(step)] * 4, 0.5)
    assert [[one["value"] for one in each["numbers"]] for each in told] == [["0.5"], ["0.5"], [], []]
