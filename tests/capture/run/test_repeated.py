"""Steps that repeat: however a step is noted, the account of the run is the same."""

from tests.capture.run.kit import *

repeated: Any = agent.load("run.repeated")
streams: Any = agent.load("stream")
tensorflow_steps: Any = agent.load("hooks.tensorflow_steps")
keras_steps: Any = agent.load("hooks.keras_steps")
objects: Any = agent.load("process.objects")

TIMES = st.sampled_from([1.003, 10.007, 40.011])
"""ms, such that no step lies at the limit from which it is a long one."""

INSIDE = st.sampled_from([None, None, None, None, "trace", "other", "nothing", "raise", "save"])
"""What happens within a call: most repeat what came before."""

ACTIONS = st.one_of(
    st.tuples(st.just("function"), st.integers(0, 1), TIMES, INSIDE),
    st.tuples(st.just("function"), st.integers(0, 1), TIMES, st.none()),
    st.tuples(st.just("keras"), TIMES, st.sampled_from([None, None, None, "trace", "raise"])),
    st.tuples(st.just("python"), st.sampled_from([0.1, 7.013])),
    st.tuples(st.just("call"), st.sampled_from([kinds.EVALUATE, kinds.SAVE]), TIMES),
    st.just(("pass_over",)),
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
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(sys.modules, *EAGER)
                return stream.wrap(point, [(listen(point), "") for listen, _ in stream.listens[event]])

        self.called, self.runs = hooked("function", self._called), hooked("graph run", self._runs)
        self.traces = hooked("trace", lambda: SimpleNamespace(variables=(), version=3))
        trainers = object.__new__(keras_steps.Trainers)
        trainers.log, trainers.stream, trainers.installed, trainers.window = Log(), stream, installed, None
        stream.rest(streams.WINDOW, rests=True)
        self.train_function = keras_steps.TrainFunctionCalls(trainers, self._trains, 2).followed()

    def get(self, graph: int, _: object) -> dict[str, object]:
        """Return the marks of a graph."""
        return {} if graph == id(self.tests.graph) else {objects.TRAINS: None}

    def look(self) -> None:
        check(self.clock)

    def run(self, program: list[Any]) -> None:
        for name, *rest in program:
            with contextlib.suppress(BrokenError):
                getattr(self, name)(*rest)
            self.look()

    def function(self, number: int, ms: float, inside: str | None) -> None:
        runs = {"other": self.other, "nothing": self.tests}.get(inside or "", self.concrete[number])
        self.called(self.functions[number], runs, ms, inside)

    def keras(self, ms: float, inside: str | None) -> None:
        self.train_function(ms, inside)

    def _trains(self, ms: float, inside: str | None) -> None:
        self.called(self.inner, self.trained, ms, inside)

    def _called(self, _: Function, runs: Concrete, ms: float, inside: str | None) -> None:
        self.time.sleep(0.5)
        self.runs(runs, ms, inside)

    def _runs(self, _: Concrete, ms: float, inside: str | None) -> None:
        if inside == "trace":
            self.traces()
        if inside == "save":
            self.call(kinds.SAVE, 3.001)
        self.time.sleep(ms)
        self.body()
        if inside == "raise":
            raise BrokenError

    def body(self) -> None:
        """A step is under way."""
        self.look()
        self.briefly += self.clock.repeats.began > 0
        self.noted += self.clock.repeats.under_way() is not None

    def python(self, ms: float) -> None:
        self.time.sleep(ms)

    def call(self, kind: str, ms: float) -> None:
        entered = self.clock.enter(kind, kind, inspect.currentframe())
        self.time.sleep(ms)
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


STEP, FIT = ("function", 0, 1.003, None), ("keras", 1.003, None)
LOOPS = st.builds(lambda step, times: [step] * times, st.sampled_from([STEP, FIT]), st.integers(20, 60))
"""Loops that are long enough for steps to be noted briefly."""

ONE = ACTIONS.map(lambda action: [action])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(ONE, LOOPS), max_size=20))
def test_so_are_those_that_are_noted_briefly(parts: list[list[Any]]) -> None:
    program = [action for part in parts for action in part]
    quick, _ = account(program, repeats=True)
    full, _ = account(program, repeats=False)
    assert quick == full


@pytest.fixture
def script(moment: Time) -> Hooked:
    """A script whose steps may repeat, in a time of its own."""
    return Hooked(started(), moment, repeats=True)


@each(STEP, FIT)
def test_most_steps_of_a_long_loop_are_noted_briefly(step: tuple[Any, ...], script: Hooked) -> None:
    for _ in range(3):
        script.run([step] * 300)
        assert script.briefly > 250
        script.briefly = 0
        script.run([("pass_over",)])


@cases(*itertools.product((STEP, FIT), ("trace", "raise")))
def test_what_happens_in_a_call_that_is_noted_briefly_is_told(step: tuple[Any, ...], inside: str) -> None:
    program = [*[step] * 20, (*step[:-1], inside), *[step] * 20]
    quick, _ = account(program, repeats=True)
    assert quick == account(program, repeats=False)[0]
    assert (quick["traces"], [steps["calls"] for steps in quick["steps"].values()]) == (inside == "trace", [40])


@cases(([STEP] * 100, 99), ([FIT] * 100, 99), ([STEP, ("function", 1, 1.003, None)] * 50, 95))
def test_most_steps_of_a_loop_repeat(program: list[Any], least: int) -> None:
    assert least <= account(program, repeats=True)[1] <= 99


def test_a_long_step_is_seen_while_it_lasts(script: Hooked, moment: Time) -> None:
    script.run([STEP] * 40)
    seen = []
    script.look = lambda: seen.append(script.clock.in_long_step(moment.now))  # type: ignore[method-assign]  # during a call, and after it
    script.run([("function", 0, ms, None) for ms in (1.003, 40.011, 1.003)])
    script.run([("python", 7.013), ("call", kinds.SAVE, 0.1)])
    assert seen == [False, False, True, True, False, False, True, True]


def test_few_steps_wait(script: Hooked) -> None:
    waiting = script.clock.repeats.waiting
    for _ in range(200):
        script.run([("function", 0, 0.1, None)])
        assert len(waiting) < repeated.MOST_WAITING + repeated.BRIEF
    script.run([("python", 1_000), *[("function", 0, 0.1, None)] * 2])
    assert len(waiting) == 1


def test_another_concrete_function_at_the_same_place_is_no_repetition(script: Hooked) -> None:
    script.run([STEP] * 5)
    script.concrete[0] = None  # type: ignore[call-overload]  # gone
    gc.collect()
    script.concrete[0] = Concrete()
    script.run([STEP])
    assert script.clock.repeats.known
    assert steps_of(script.clock) == 6


def test_calls_that_are_known_are_bounded(script: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "MOST", 5)
    for _ in range(20):
        script.functions[0] = Function()
        script.run([STEP] * 3)
    assert len(script.clock.repeats.known) <= 5


def test_a_step_of_an_earlier_recording_ends_unseen(script: Hooked) -> None:
    clock = script.clock
    script.run([STEP] * 5)
    script.body = lambda *_: clock.begin(threading.get_ident())  # type: ignore[method-assign]  # within a call
    script.run([STEP])
    assert clock.current is clock.places.script
    assert (clock.inside, clock.running, len(clock.repeats.waiting)) == (0, False, 0)


@each(("pass_over",), ("call", kinds.SAVE, 1.0))
def test_what_is_over_keeps_no_function_and_no_graph_alive(ends: tuple[Any, ...], script: Hooked) -> None:
    """Trap: a model of an earlier experiment would keep its memory."""
    script.run([STEP] * 20)
    assert script.clock.repeats.brief is script.functions[0]
    gone = [weakref.ref(script.functions[0]), weakref.ref(script.concrete[0])]
    script.run([ends])
    script.functions.clear()
    script.concrete.clear()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


class Training(threading.Thread):
    """Trains in a thread of its own, as fast as the hooks let it."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self.clock, self.over, self.ready = clock, threading.Event(), threading.Event()
        self.script = Hooked(clock, Time(), repeats=True)
        self.script.body = lambda: setattr(self.script, "noted", self.script.noted + 1)  # type: ignore[method-assign]  # notes nothing

    def run(self) -> None:
        self.clock.begin(threading.get_ident())
        self.ready.set()
        while not self.over.is_set():
            self.script.function(0, 0.0, None)


def test_another_thread_reads_while_steps_repeat() -> None:
    """No ns is lost or counted twice; what a read finds between a moment and its note may go elsewhere next."""
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
            taken_back += any(ns > totals[place] for place, ns in last.items())
            last = totals
    finally:
        training.over.set()
        training.join()
    assert training.script.noted > 300
    assert taken_back <= 0.05 * reads


@cases(*itertools.product((STEP, FIT), (3, 25, 40)))
def test_a_call_in_which_noting_was_interrupted_hides_no_later_one(step: tuple[Any, ...], steps: int) -> None:
    """Trap: a handler of a signal raises between two lines of a hook, and the script catches it."""
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
            assert only_steps(clock).calls in (steps + 20, steps + 21)
            assert sum(place.kind == kinds.STEP for place in clock.entered) == 1
