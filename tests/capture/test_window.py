"""Which steps are traced, decided without TensorFlow."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent
from tests.capture.windows import make, run, source


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return make(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("total", "k", "traced"),
    [
        (None, 1, range(10, 30)),  # a loop that announces nothing
        (1000, 1, range(10, 30)),
        (30, 1, range(10, 30)),  # just enough
        (29, 1, range(9, 29)),  # less warm-up
        (21, 1, range(1, 21)),
        (12, 1, range(1, 12)),  # fewer steps
        (2, 1, range(1, 2)),
        (1, 1, range(1)),  # the only step there is
        (1000, 4, range(12, 32, 4)),  # aligned to calls
        (1000, 8, range(16, 56, 8)),  # five calls
        (1000, 50, range(50, 300, 50)),
        (32, 8, range(8, 32, 8)),
        (8, 8, range(0, 8, 8)),
    ],
)
def test_the_window_fits_the_job(window: Any, total: int | None, k: int, traced: range) -> None:
    if total is not None:
        window.announce(source(window, "keras-fit"), total, k, skip=k)
    calls = (total or 200) // k
    assert run(window, calls, k) == [(number, k) for number in traced]
    window.close("end-of-run")
    assert window.log.state["window"]["first_step"] == traced[0]
    assert window.log.state["window"]["steps"] == len(traced) * k
    assert window.log.state["window"]["contains_warmup"] == (traced[0] < 10)


@pytest.mark.parametrize(("total", "k", "announced"), [(None, 1, [8]), (1000, 4, [4]), (21, 1, [0]), (2, 1, [0])])
def test_a_window_is_announced_two_calls_before_it_may_open(
    window: Any, total: int | None, k: int, announced: list[int]
) -> None:
    """Once, and not at all where it opens at the first call."""
    loop = source(window, "keras-fit")
    at: list[int] = []
    window.before_window.append(lambda source: at.append(source.seen - k))
    if total is not None:
        window.announce(loop, total, k, skip=k)
    run(window, (total or 200) // k, k)
    assert at == announced


def test_a_window_without_warm_up_opens_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch, warmup=0)
    at: list[object] = []
    window.before_window.append(at.append)
    assert run(window, 30)[0] == (0, 1)
    assert at == []


def test_the_end_closes_the_window_once(window: Any) -> None:
    run(window, 15)
    window.close("exception")
    window.close("end-of-run")
    assert window.log.state["window"]["stopped_by"] == "exception"
    assert window.log.state["window"]["steps"] == 5
    assert window.program.written == [False]  # a longer loop may come


def test_only_one_source_is_traced(window: Any) -> None:
    run(window, 12)
    run(window, 15, name="tf-data-loop")
    assert window.capture.calls == 2
    assert window.capture.source.kind == "keras-fit"
    window.save()
    candidates = window.log.state["steps"]["candidates"]
    assert [(c["source"], c["steps"]) for c in candidates] == [("keras-fit", 12), ("tf-data-loop", 15)]


def test_a_call_that_was_no_step_is_taken_back(window: Any) -> None:
    run(window, 12)
    fit = source(window, "keras-fit")
    fit.retract(fit.begin(1), 1)
    assert run(window, 40) == [(number, 1) for number in [10, 11, 12, *range(13, 31)]]
    assert window.kept.discarded == [12]
    assert window.log.state["window"]["steps"] == 20
    assert window.log.state["window"]["calls"] == 20


def test_a_refused_profiler_is_recorded(window: Any) -> None:
    window.profiler.refuse = RuntimeError("another profiler is running")
    assert run(window, 200) == []
    assert window.state == "done"  # asked five times
    (missing,) = window.log.state["missing"]
    assert missing["what"] == "trace"
    assert "another profiler" in missing["why"]
    assert window.refusals == 5
    assert source(window, "keras-fit").seen == 200
    assert window.log.errors == []


def test_a_profiler_that_becomes_free_is_used(window: Any) -> None:
    window.profiler.refuse = RuntimeError("another profiler is running")
    run(window, 25)
    assert window.log.state["missing"]
    window.profiler.refuse = None
    assert run(window, 100) == [(number, 1) for number in range(31, 51)]
    assert window.log.state["missing"] == []
    assert window.log.state["window"]["first_step"] == 31


def fit(window: Any, line: int, steps: int) -> None:
    """One call of Model.fit on a line."""
    loop = source(window, "keras-fit", line)
    loop.rounds += 1
    window.announce(loop, steps, skip=1)
    for _ in range(steps):
        marker = loop.begin(1)
        if marker is not None:
            marker.__exit__(None, None, None)
    window.fit_over(loop, "end-of-fit")


def kept(window: Any) -> tuple[int, int, str]:
    """Return what the recording has: first step, steps, and which capture wrote its trace."""
    record = window.log.state["window"]
    (trace,) = Path(window.log.out).glob("plugins/profile/*/*.xplane.pb")
    return record["first_step"], record["steps"], trace.read_text()


def test_a_long_fit_replaces_a_short_first_one(window: Any) -> None:
    fit(window, 1, 5)
    assert kept(window) == (1, 4, "capture0")
    fit(window, 2, 100)
    assert kept(window) == (10, 20, "capture1")
    assert "of 2 training loops" in window.log.state["steps"]["why"]
    assert window.program.written == [False, True]
    fit(window, 3, 500)
    assert window.captures == 2
    assert sorted(path.name for path in Path(window.log.out).iterdir()) == ["agent.json", "plugins"]


def test_a_shorter_fit_replaces_nothing(window: Any) -> None:
    fit(window, 1, 25)
    fit(window, 2, 12)
    assert kept(window) == (5, 20, "capture0")
    assert window.captures == 1


def test_fits_in_a_loop_are_one_loop(window: Any) -> None:
    for _ in range(60):
        fit(window, 1, 1)
    assert kept(window)[1:] == (20, "capture1")
    assert source(window, "keras-fit", 1).seen == 60


def test_a_run_of_short_fits_is_not_disturbed_for_ever(window: Any) -> None:
    for line in range(2, 30):
        fit(window, line, line)
    assert window.captures == 4


def test_stop_after_leaves_once_the_window_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch, stop_after=True)
    with pytest.raises(SystemExit) as left:
        run(window, 100)
    assert left.value.code == 0
    assert source(window, "keras-fit").seen == 30


def test_a_fault_does_not_reach_the_loop(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no marker")

    window.profiler.trace = broken
    monkeypatch.setattr(agent.load("process.tensorflow_api"), "trace_class", lambda: broken)
    assert run(window, 40) == []
    assert window.log.errors[0] == {"where": "arrive", "error": "ValueError: no marker"}
    assert len(window.log.errors) == 20  # the first reports tell all


def test_the_usual_step_time_leaves_the_first_call_out(window: Any) -> None:
    loop = source(window, "keras-fit")
    assert loop.untraced() is None
    loop.seen = 7
    loop.spans.extend([(9_000_000_000, 1), (4_000_000, 4), (2_000_000, 1), (3_000_000, 1)])
    assert loop.untraced() == {"count": 3, "median_ms": 2.0, "of": "steps"}


def test_long_untraced_steps_are_told_by_number(window: Any) -> None:
    loop = source(window, "keras-fit")
    loop.seen = 44
    loop.numbers.extend([0, *range(20, 60)])
    spans = [(90, 1), *[(2, 1)] * 40]
    spans[11] = (40, 1)  # step 30
    loop.spans.extend((milliseconds * 1_000_000, steps) for milliseconds, steps in spans)
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
    assert list(loop.spans) == [(2_000_000, 1)]
    assert list(loop.numbers) == [0]


# Calls that are traced for samples only


def sampled(window: Any, calls: int) -> None:
    """Let the stack show too little for so many calls, and open a window."""
    left = [calls]

    def wanted() -> bool:
        left[0] -= 1
        return left[0] >= 0

    window.samples_wanted = wanted
    run(window, 11)


def names(window: Any) -> list[str]:
    return [name for name, _, _ in window.profiler.marked]


def test_calls_after_the_window_are_sampled_until_there_are_enough(window: Any) -> None:
    sampled(window, 8)
    run(window, 50)
    assert names(window) == ["train"] * 20 + ["tfdoctor_sampled"] * 7  # the first answer says that any are needed
    assert window.profiler.finished == [20, 27]
    record = window.log.state["window"]
    assert (record["steps"], record["calls"], record["stopped_by"]) == (20, 20, "steps")
    assert window.state == "done"


def test_very_short_steps_are_not_sampled_for_ever(window: Any) -> None:
    sampled(window, 1000)
    run(window, 500)
    assert names(window).count("tfdoctor_sampled") == 5 * 20


def test_what_ends_the_run_meanwhile_does_not_end_the_window(window: Any) -> None:
    """What was measured before is complete."""
    sampled(window, 8)
    run(window, 22)
    assert window.state == "sampling"
    fit = source(window, "keras-fit")
    fit.retract(fit.begin(1), 1)  # the data ends
    window.fit_over(fit, "exception")
    record = window.log.state["window"]
    assert (record["steps"], record["calls"], record["stopped_by"]) == (20, 20, "steps")
    assert window.kept.discarded == [33]
    assert window.state == "done"


@pytest.mark.parametrize(("total", "more"), [(49, 0), (50, 8)])
def test_a_loop_that_ends_soon_is_not_sampled_later(window: Any, total: int, more: int) -> None:
    """Its samples are taken while its steps are measured."""
    window.announce(source(window, "keras-fit"), total)
    goes_on = []
    window.after_open.append(lambda source: goes_on.append(window.goes_on(source)))
    sampled(window, 9)
    run(window, total - 11)
    assert names(window).count("tfdoctor_sampled") == more
    assert goes_on == [bool(more)]


def test_steps_that_the_framework_marks_are_not_sampled_later(window: Any) -> None:
    source(window, "keras-fit").marks = False
    sampled(window, 8)
    run(window, 50)
    assert names(window) == []
    assert window.log.state["window"]["stopped_by"] == "steps"


def test_a_worker_of_several_does_not_keep_the_others_waiting(window: Any) -> None:
    window.log.state["rank"] = {"name": "worker 1 of 2", "rank": 1, "size": 2}
    sampled(window, 8)
    run(window, 50)
    assert names(window) == ["train"] * 20


def test_a_loop_that_is_left_while_it_is_sampled_is_closed(window: Any) -> None:
    sampled(window, 8)
    run(window, 22)
    window.samples_late = lambda now: now > 5.0
    watch(window).look()
    assert window.state == "done"
    assert window.log.state["window"]["stopped_by"] == "steps"


def test_stop_after_leaves_when_the_samples_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch, stop_after=True)
    window.announce(source(window, "keras-fit"), 100)
    sampled(window, 4)
    with pytest.raises(SystemExit):
        run(window, 50)
    assert names(window) == ["train"] * 20 + ["tfdoctor_sampled"] * 3


def test_stop_after_does_not_wait_for_calls_that_may_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make(tmp_path, monkeypatch, stop_after=True)
    sampled(window, 4)
    with pytest.raises(SystemExit):
        run(window, 50)
    assert names(window) == ["train"] * 20


def test_half_of_the_calls_after_the_window_stay_as_they_are(window: Any) -> None:
    """They show how long a step takes without the profiler."""
    window.announce(source(window, "keras-fit"), 60)
    sampled(window, 1000)
    run(window, 49)
    assert names(window).count("tfdoctor_sampled") == 15


def test_the_end_of_an_epoch_says_nothing_of_later_ones(window: Any) -> None:
    window.announce(source(window, "keras-fit"), 5)
    source(window, "keras-fit").alarm = 10  # it is longer than it said
    sampled(window, 8)
    run(window, 50)
    assert names(window).count("tfdoctor_sampled") == 7


# Windows by time


def watch(window: Any) -> Any:
    """Return what opens and closes this window by time, and remembers since when."""
    if not hasattr(window, "watch"):
        window.watch = agent.load("loops.watch").Watch(window)
    return window.watch


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Set the agent's clock by hand."""
    now = [100.0]
    for name in ("window.window", "window.captures", "loops.watch"):
        monkeypatch.setattr(agent.load(name).time, "monotonic", lambda: now[0])
    return now


def test_a_window_of_seconds_ends_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch, seconds=2.0)
    now = clock(monkeypatch)
    run(window, 40)
    assert window.state == "open"
    now[0] += 2.0
    run(window, 1)
    record = window.log.state["window"]
    assert (record["stopped_by"], record["steps"], window.state) == ("time", 30, "done")


def test_a_window_that_is_closed_early_marks_no_more_steps(window: Any) -> None:
    """The next call opens another window, and does not belong to the former one."""
    run(window, 15)
    window.close("exception")
    former = window.kept.calls
    run(window, 1)
    assert (window.captures, window.kept.calls, window.capture.calls) == (2, former, 1)


def test_long_steps_are_no_sign_that_the_loop_was_left(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)
    run(window, 11)
    for _ in range(3):
        watch(window).look()
        now[0] += 5.0
        run(window, 1)
    watch(window).look()
    now[0] += 45.0  # nine times the longest step
    watch(window).look()
    assert window.state == "open"
    now[0] += 10.0
    watch(window).look()
    assert window.log.state["window"]["stopped_by"] == "idle"


def test_a_loop_that_is_left_does_not_trace_for_ever(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)
    run(window, 15)
    watch(window).look()
    now[0] += 9.0
    watch(window).look()
    assert window.state == "open"
    now[0] += 2.0
    watch(window).look()
    record = window.log.state["window"]
    assert (record["stopped_by"], record["steps"], window.state) == ("idle", 5, "waiting")


def test_slow_steps_are_not_taken_for_an_end(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock(monkeypatch)
    for _ in range(15):
        run(window, 1)
        now[0] += 8.0
    now[0] += 60.0
    watch(window).look()
    assert window.state == "open"


def test_a_loop_inside_a_function_is_traced_once_it_has_run_for_a_while(
    window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock(monkeypatch)
    window.looping = now[0], threading.get_ident()
    watch(window).look()
    assert window.state == "waiting"
    now[0] += 1.0
    watch(window).look()
    assert window.state == "open"
    now[0] += 3.0
    watch(window).look()
    record = window.log.state["window"]
    assert (record["source"], record["stopped_by"], record["steps"]) == ("graph-loop", "time", 0)


def test_a_job_without_steps_is_traced_by_time_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = make(tmp_path, monkeypatch, seconds=2.0)
    now = clock(monkeypatch)
    context = SimpleNamespace(_context=SimpleNamespace(_initialized=True))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    watch(window).look()
    now[0] += 10.0
    watch(window).look()
    assert window.state == "open"
    now[0] += 2.0
    watch(window).look()
    assert window.log.state["window"]["source"] == "time"


def test_a_run_without_a_trace_counts_its_steps_and_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make(tmp_path, monkeypatch, trace=False)
    loop = source(window, "keras-fit")
    window.announce(loop, 1000)
    prepared: list[Any] = []
    window.before_window.append(prepared.append)
    assert run(window, 500) == []
    window.open_for(loop, 1.0)
    assert window.capture is None
    assert prepared == []
    assert loop.seen == 500
    assert window.quiet  # from the 200th step on: the account of the run has all of them
    window.close("end-of-run")
    assert window.kept is None
