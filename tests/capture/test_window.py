"""Which steps are traced, decided without TensorFlow."""

from unittest.mock import Mock

from tests.capture.kit import *
from tests.capture.windows import call, make, run, source

Made = Callable[..., Any]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return lambda **plan: make(tmp_path, monkeypatch, **plan)


@pytest.fixture
def window(made: Made) -> Any:
    return made()


def record(window: Any, *fields: str) -> tuple[Any, ...]:
    return tuple(window.log.state["window"][field] for field in fields)


@cases(
    (10, None, 1, range(10, 30), 8),  # a loop that announces nothing
    (10, 1000, 1, range(10, 30), 8),
    (10, 30, 1, range(10, 30), 8),  # just enough
    (10, 29, 1, range(9, 29), 7),  # less warm-up
    (10, 21, 1, range(1, 21), 0),
    (10, 12, 1, range(1, 12), 0),  # fewer steps
    (10, 2, 1, range(1, 2), 0),
    (10, 1, 1, range(1), None),  # the only step there is
    (0, None, 1, range(20), None),
    (10, 1000, 4, range(12, 32, 4), 4),  # aligned to calls
    (10, 1000, 8, range(16, 56, 8), 0),  # five calls
    (10, 1000, 50, range(50, 300, 50), 0),
    (10, 32, 8, range(8, 32, 8), 0),
    (10, 8, 8, range(0, 8, 8), None),
)
def test_the_window_fits_the_job(
    warmup: int, total: int | None, k: int, traced: range, announced: int | None, made: Made
) -> None:
    """It is announced two calls before it may open, once, and not at all where it opens at the first call."""
    window, at = made(warmup=warmup), []
    window.samples.prepare = lambda _: at.append(source(window, "keras-fit").seen - k)
    if total is not None:
        window.announce(source(window, "keras-fit"), total, k, skip=k)
    assert run(window, (total or 200) // k, k) == [(number, k) for number in traced]
    assert at == ([] if announced is None else [announced])
    window.close("end-of-run")
    window.close("interrupt")  # says nothing any more
    stopped, *rest = record(window, "stopped_by", "first_step", "steps", "contains_warmup")
    assert stopped in {"steps", "end-of-run"}
    assert rest == [traced[0], len(traced) * k, traced[0] < warmup]


def test_only_one_source_is_traced(window: Any) -> None:
    run(window, 12)
    run(window, 15, name="tf-data-loop")
    assert (window.capture.calls, window.capture.source.kind) == (2, "keras-fit")
    window.save()
    candidates = window.log.state["steps"]["candidates"]
    assert [(c["source"], c["steps"]) for c in candidates] == [("keras-fit", 12), ("tf-data-loop", 15)]


def test_a_call_that_was_no_step_is_taken_back(window: Any) -> None:
    run(window, 12)
    fit = source(window, "keras-fit")
    fit.retract(fit.begin(1), 1)
    assert run(window, 40) == [(number, 1) for number in [10, 11, 12, *range(13, 31)]]
    assert (window.kept.discarded, *record(window, "steps", "calls")) == ([12], 20, 20)


def test_a_refused_profiler_is_recorded_and_asked_again(window: Any) -> None:
    window.profiler.refuse = RuntimeError("another profiler is running")
    assert run(window, 25) == []
    (missing,) = window.log.state["missing"]
    assert (missing["what"], "another profiler" in missing["why"]) == ("trace", True)
    window.profiler.refuse = None
    assert run(window, 100) == [(number, 1) for number in range(31, 51)]
    assert (window.log.state["missing"], record(window, "first_step")) == ([], (31,))


def test_a_profiler_is_asked_for_five_times(window: Any) -> None:
    window.profiler.refuse = RuntimeError("another profiler is running")
    run(window, 200)
    seen = source(window, "keras-fit").seen
    assert (window.state, window.refusals, seen, window.log.errors) == ("done", 5, 200, [])


def fit(window: Any, line: int, steps: int) -> None:
    """One call of Model.fit on a line."""
    loop = source(window, "keras-fit", line)
    loop.rounds += 1
    window.announce(loop, steps, skip=1)
    call(loop, steps)
    window.fit_over(loop, "end-of-fit")


def kept(window: Any) -> tuple[int, int, str]:
    """Return what the recording has: first step, steps, and which capture wrote its trace."""
    (trace,) = Path(window.log.out).glob("plugins/profile/*/*.xplane.pb")
    return (*record(window, "first_step", "steps"), trace.read_text())


def test_a_long_fit_replaces_a_short_first_one(window: Any) -> None:
    fit(window, 1, 5)
    assert kept(window) == (1, 4, "capture0")
    fit(window, 2, 100)
    assert (kept(window), window.program.written) == ((10, 20, "capture1"), [False, True])
    fit(window, 3, 500)
    assert window.captures == 2
    assert sorted(path.name for path in Path(window.log.out).iterdir()) == ["agent.json", "plugins"]


@cases(
    ([(1, 25), (2, 12)], (5, 20, "capture0"), 1),  # a shorter one replaces nothing
    ([(1, 1)] * 60, (10, 20, "capture1"), 2),  # those in a loop are one loop
    ([(line, line) for line in range(2, 30)], None, 4),  # the run is not disturbed for ever
)
def test_fits_one_after_the_other(fits: list[tuple[int, int]], found: object, captures: int, window: Any) -> None:
    for call_of_fit in fits:
        fit(window, *call_of_fit)
    assert (window.captures, found or kept(window)) == (captures, kept(window))


def test_a_fault_does_not_reach_the_loop(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Mock(side_effect=ValueError("no marker"))
    monkeypatch.setattr(
        agent.load("process.tensorflow_api"), "of_tensorflow", lambda _: SimpleNamespace(Trace=broken)
    )
    assert run(window, 40) == []
    assert window.log.errors[0] == {"where": "arrive", "error": "ValueError: no marker"}
    assert len(window.log.errors) == 20  # the first reports tell all


def test_untraced_steps_are_told_without_the_first_call_and_the_long_ones_by_number(window: Any) -> None:
    loop = source(window, "keras-fit")
    assert loop.untraced() is None
    loop.seen = 7
    loop.spans.extend([(9_000_000_000, 1, 0), (4_000_000, 4, 1), (2_000_000, 1, 5), (3_000_000, 1, 6)])
    assert loop.untraced() == {"count": 3, "median_ms": 2.0, "of": "steps", "total_ms": 9.0, "long": []}
    loop.spans.clear()
    loop.spans.extend(({0: 90, 30: 40}.get(number, 2) * 1_000_000, 1, number) for number in (0, *range(20, 60)))
    told = loop.untraced()
    assert (told["total_ms"], told["long"]) == (118.0, [(30, 40.0)])


def test_the_end_of_a_window_is_no_work_of_a_step(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing the trace takes seconds."""
    loop, now = source(window, "keras-fit"), [0]
    monkeypatch.setattr(agent.load("window.steps"), "time", SimpleNamespace(perf_counter_ns=lambda: now[0]))

    def arrive(*_: object) -> None:
        now[0] += 5_000_000_000

    monkeypatch.setattr(loop.listener, "arrive", arrive)
    loop.alarm = 0
    loop.begin(1)
    now[0] += 2_000_000
    loop.begin(1)
    assert list(loop.spans) == [(2_000_000, 1, 0)]


# Calls that are traced for samples only


def sampled(window: Any, wanted: int) -> None:
    """Let the stack show too little for so many calls, and open a window."""
    answers = iter([True] * wanted)
    window.samples.wanted = lambda: next(answers, False)
    run(window, 11)


@cases(
    ({}, None, 8, 7),  # the first answer says that any are needed
    ({}, None, 1000, 5 * 20),  # very short steps are not sampled for ever
    ({}, 49, 9, 0),  # the loop ends soon: its samples are taken while its steps are measured
    ({}, 50, 9, 8),
    ({}, 60, 1000, 15),  # half of the calls stay as they are: they show how long a step takes
    ({"epoch": 5}, None, 8, 7),  # the end of an epoch says nothing of later ones
    ({"rank": 1}, None, 8, 0),  # workers wait for each other
    ({"stop_after": True}, None, 4, 0),  # calls that may not come
    ({"stop_after": True}, 100, 4, 3),
)
def test_calls_after_the_window_are_sampled_until_there_are_enough(
    plan: dict[str, Any], announced: int | None, wanted: int, more: int, made: Made
) -> None:
    window, goes_on = made(**plan), []
    if "rank" in plan:
        window.log.state["rank"] = {"name": "worker 1 of 2", "rank": 1, "size": 2}
    loop = source(window, "keras-fit")
    if told := announced or plan.get("epoch"):
        window.announce(loop, told)
    loop.alarm = 10 if "epoch" in plan else loop.alarm
    window.samples.begin = lambda _, *, more_to_come: goes_on.append(more_to_come)
    sampled(window, wanted)
    with pytest.raises(SystemExit) if window.plan["stop_after"] else contextlib.nullcontext() as left:
        run(window, (announced or 200) - 11)
    assert [name for name, _, _ in window.profiler.marked] == ["train"] * 20 + ["tfdoctor_sampled"] * more
    assert window.profiler.finished == [20, *[20 + more] * bool(more)]
    assert record(window, "steps", "calls", "stopped_by") == (20, 20, "steps")
    assert (goes_on, window.state) == ([bool(more)], "done")
    assert left is None or (left.value.code, loop.seen) == (0, 30 + more)


def test_what_ends_the_run_meanwhile_does_not_end_the_window(window: Any) -> None:
    """What was measured before is complete."""
    sampled(window, 8)
    run(window, 22)
    assert window.state == "sampling"
    fit = source(window, "keras-fit")
    fit.retract(fit.begin(1), 1)  # the data ends
    window.fit_over(fit, "exception")
    assert record(window, "steps", "calls", "stopped_by") == (20, 20, "steps")
    assert (window.kept.discarded, window.state) == ([33], "done")


def test_steps_that_the_framework_marks_are_not_sampled_later(window: Any) -> None:
    source(window, "keras-fit").marks = False
    sampled(window, 8)
    run(window, 50)
    assert (window.profiler.marked, *record(window, "stopped_by")) == ([], "steps")


# Windows by time


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The agent's clock, set by hand."""
    now = [100.0]
    for name in ("window.window", "window.captures", "loops"):
        monkeypatch.setattr(agent.load(name).time, "monotonic", lambda: now[0])
    return now


def look(window: Any, now: list[float] | None = None, later: float = 0.0) -> str:
    """Have the watch, which opens and closes windows by time, look once so many seconds later; return the state."""
    if now:
        now[0] += later
    if not hasattr(window, "watch"):
        window.watch = agent.load("loops").Watch(window)
    window.watch.look()
    return str(window.state.value)


def test_a_loop_that_is_left_while_it_is_sampled_is_closed(window: Any) -> None:
    sampled(window, 8)
    run(window, 22)
    window.samples.late = lambda now: now > 5.0
    assert (look(window), *record(window, "stopped_by")) == ("done", "steps")


def test_steps_are_counted_on_where_a_call_waited_while_another_thread_closed_the_window(window: Any) -> None:
    loop = source(window, "keras-fit")
    run(window, 15)
    arrive = window.arrive

    def waits(*call: Any) -> Any:
        window.close("idle")
        return arrive(*call)

    window.arrive, loop.marking = waits, None
    window.captures = 4  # no other follows
    run(window, 5)
    assert (window.state, window.quiet, loop.seen) == ("done", False, 20)


def test_a_window_of_seconds_ends_by_the_clock(made: Made, now: list[float]) -> None:
    window = made(seconds=2.0)
    run(window, 40)
    assert window.state == "open"
    now[0] += 2.0
    run(window, 1)
    assert (*record(window, "stopped_by", "steps"), window.state) == ("time", 30, "done")


def test_a_window_that_is_closed_early_marks_no_more_steps(window: Any) -> None:
    """The next call opens another window, and does not belong to the former one."""
    run(window, 15)
    window.close("exception")
    assert (record(window, "stopped_by", "steps"), window.program.written) == (("exception", 5), [False])
    former = window.kept.calls
    run(window, 1)
    assert (window.captures, window.kept.calls, window.capture.calls) == (2, former, 1)


@cases((15, 0, 9.0, 2.0), (11, 3, 45.0, 10.0))  # at last ten times the longest step, of 5 s
def test_a_loop_that_is_left_does_not_trace_for_ever(
    before: int, steps: int, open_for: float, left_at: float, window: Any, now: list[float]
) -> None:
    run(window, before)
    for _ in range(steps):
        look(window)
        now[0] += 5.0
        run(window, 1)
    look(window)
    assert [look(window, now, open_for), look(window, now, left_at)] == ["open", "waiting"]
    assert record(window, "stopped_by", "steps") == ("idle", before - 10 + steps)


def test_slow_steps_are_no_end(window: Any, now: list[float]) -> None:
    for _ in range(15):
        now[0] += 8.0
        run(window, 1)
    assert look(window, now, 60.0) == "open"


def test_a_loop_inside_a_function_is_traced_once_it_has_run_for_a_while(window: Any, now: list[float]) -> None:
    window.looping = now[0], threading.get_ident()
    assert [look(window, now, seconds) for seconds in (0.0, 1.0, 3.0)] == ["waiting", "open", "done"]
    assert record(window, "source", "stopped_by", "steps") == ("graph-loop", "time", 0)


def test_a_job_without_steps_is_traced_by_time_when_asked(
    made: Made, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = made(seconds=2.0)
    context = SimpleNamespace(_context=SimpleNamespace(_initialized=True))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    assert [look(window, now, seconds) for seconds in (0.0, 10.0, 2.0)] == ["waiting", "open", "done"]
    assert record(window, "source") == ("time",)


def test_a_run_without_a_trace_counts_its_steps_and_opens_nothing(made: Made) -> None:
    window, prepared = made(trace=False), list[Any]()
    loop = source(window, "keras-fit")
    window.announce(loop, 1000)
    window.samples.prepare = prepared.append
    assert run(window, 500) == []
    window.open_for(loop, 1.0)
    assert (window.capture, prepared, loop.seen, window.quiet) == (None, [], 500, True)  # the run's account has all
    window.close("end-of-run")
    assert window.kept is None
