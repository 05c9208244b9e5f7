"""What tfdoctor may cost a run: the rule alone, and what it does to windows."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture import agent
from tests.capture.windows import make, run, source

SECONDS = st.floats(0, 1e6)
budget, heap = agent.load("process.budget"), agent.load("process.heap")


@given(run_s=SECONDS, share=st.floats(0, 1), more_s=SECONDS)
def test_what_may_be_spent_grows_with_the_run_and_is_a_tenth_of_it(
    run_s: float, share: float, more_s: float
) -> None:
    spent_s = share * run_s
    may = budget.allowed(run_s, spent_s)
    assert spent_s + may <= max(budget.LEAST_S, budget.SHARE * run_s) * (1 + 1e-9)
    assert budget.allowed(run_s + more_s, spent_s) >= may


@given(cost_s=SECONDS, spent_s=SECONDS)
def test_a_cost_is_allowed_from_the_moment_that_is_computed_for_it(cost_s: float, spent_s: float) -> None:
    at = budget.affordable_at(cost_s, spent_s)
    assert budget.allowed(at, spent_s) >= cost_s * (1 - 1e-6) - 1e-6
    assert at == 0.0 or budget.allowed(at * 0.99, spent_s) < cost_s


@given(calls=st.integers(1, 1000), each_s=st.floats(1e-6, 100), run_s=SECONDS, share=st.floats(0, 0.5))
def test_a_window_closes_once_it_has_cost_what_it_may(
    calls: int, each_s: float, run_s: float, share: float
) -> None:
    """Looked at as often as the rule asks, it never costs more than allowed by more than a call."""
    spent_s, most = share * run_s, 100_000
    at = 2
    while at < most and (more := budget.more_calls(at, at * each_s, run_s, spent_s)):
        at += more
    few = max(budget.LEAST_S, budget.FEWEST_SHARE * run_s)
    may = max(budget.LEAST_OPEN_S, budget.allowed(run_s, spent_s))
    assert at == 2 or at * each_s <= max(may, few) + 2 * each_s or at >= most
    if at > budget.FEWEST_CALLS:
        assert (at - 1) * each_s <= may or at >= most
    fewer = budget.more_calls(calls, calls * each_s, run_s, spent_s)
    assert fewer <= budget.more_calls(calls, calls * each_s / 2, run_s, spent_s) or calls < 5


class Clock:
    """Time that passes only in steps and in the profiler, for the wall and the CPU alike."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    times = SimpleNamespace(
        perf_counter=clock,
        perf_counter_ns=lambda: int(clock.s * 1e9),
        process_time=clock,
        monotonic=time.monotonic,
        time_ns=time.time_ns,
        time=time.time,
    )
    for module in ("process.budget", "window.window", "window.steps"):
        monkeypatch.setattr(agent.load(module), "time", times)
    monkeypatch.setattr(heap, "reader", lambda: None)  # the CPU time decides
    return clock


def traced(window: Any, clock: Clock, costs: dict[str, float], steps: int, fit: int = 0) -> list[int]:
    """Run steps of a program, after a fit and a pause, and return how many were traced in each window."""
    began, marked = clock.s - costs["before"], []
    window.budget.run_s = lambda: clock.s - began
    profiler, stop = window.profiler, window.profiler.stop

    def stops() -> None:
        marked.append(len(profiler.marked))
        clock.s += costs["stop"] * len(profiler.marked)
        stop()

    profiler.stop = stops
    for loop, count in ((source(window, "keras-fit"), fit), (source(window, "tf-data-loop"), steps)):
        window.announce(loop, fit if count == fit else 0, skip=1)
        for _ in range(count):
            marker = loop.begin(1)
            clock.s += costs["step"] * (1 + costs["slower"] * (marker is not None))
            if marker is not None:
                marker.__exit__(None, None, None)
        window.close("end-of-run")
        clock.s += 1000.0 * (count == fit > 0)
    return marked


@pytest.mark.parametrize(
    ("costs", "steps", "windows"),
    [
        ({"before": 4, "step": 0.001, "slower": 0.1, "stop": 0.0005}, 100, [20]),  # costs nothing
        ({"before": 4, "step": 0.1, "slower": 0.0, "stop": 0.001}, 100, [10, 20]),  # learns that
        ({"before": 10, "step": 0.35, "slower": 0.6, "stop": 0.25}, 70, [5]),  # too much
        ({"before": 4, "step": 0.35, "slower": 0.6, "stop": 0.47}, 20, [2]),  # a run of 10 s
        ({"before": 10, "step": 0.35, "slower": 0.6, "stop": 0.25}, 2000, [5, 12, 20]),
        ({"before": 3600, "step": 0.35, "slower": 0.6, "stop": 0.47}, 70, [20]),  # an hour before
    ],
)
def test_windows_take_a_small_part_of_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    costs: dict[str, float],
    steps: int,
    windows: list[int],
) -> None:
    window = make(tmp_path, monkeypatch)
    assert traced(window, clock, costs, steps) == windows
    recorded = window.log.state["costs"]
    assert [cost["steps"] for cost in recorded] == windows
    assert [cost["stopped_by"] for cost in recorded[:-1]] == ["cost"] * (len(windows) - 1)
    assert recorded[-1]["stop_s"] == pytest.approx(windows[-1] * costs["stop"])
    slowed = windows[-1] * costs["step"] * costs["slower"]
    assert recorded[-1]["slowed_s"] == pytest.approx(slowed, abs=1e-3)
    total, share = clock.s - 100.0 + costs["before"], 0.12 if windows != [2] else 0.2
    assert window.budget.spent_s <= max(budget.LEAST_S, share * total)
    assert window.log.errors == []


@pytest.mark.parametrize(
    ("mb", "stop", "windows"),
    [
        (0.1, 0.001, [20]),  # convolutions: few operations, however long they compute
        (2.5, 0.1, [5]),  # a loop of small operations: 20 of its steps would cost 2 of 7 s
        (10.0, 0.001, [2, 20]),  # memory of the program's own: known after the first window
    ],
)
def test_the_notes_of_the_profiler_say_what_its_stop_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, mb: float, stop: float, windows: list[int]
) -> None:
    window = make(tmp_path, monkeypatch)
    monkeypatch.setattr(heap, "reader", lambda: lambda: mb * len(window.profiler.marked))
    costs = {"before": 5, "step": 0.02, "slower": 0.0, "stop": stop}
    assert traced(window, clock, costs, 100) == windows


def test_memory_that_the_program_frees_hides_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    account, in_use = budget.CaptureBudget(), [500.0]
    monkeypatch.setattr(heap, "reader", lambda: lambda: in_use[0])
    account.opens(0.0, None)
    for mb, noted in ((510.0, 10.0), (300.0, 0.0), (320.0, 20.0)):
        in_use[0] = mb
        account.measured(1, "")
        assert account.noted_mb == noted


def test_the_memory_in_use_grows_with_what_is_kept() -> None:
    in_use = heap.reader()
    assert in_use is not None, "glibc tells it"
    before = in_use()
    kept = [bytes(1000) for _ in range(20_000)]
    assert in_use() - before == pytest.approx(20.0, rel=0.3)
    assert kept


@pytest.mark.parametrize(
    ("plan", "before", "stop", "windows", "too_long"),
    [
        ({}, 100, 2.0, [4, 2], [True, False]),  # 8 s where it may take 5
        ({}, 20, 0.75, [4, 2], [True, False]),  # 3 s of 20
        ({}, 100, 1.0, [4, 20], [False, True]),  # 4 s of 100
        ({"stop_after": True}, 100, 2.0, [4, 20], [True, True]),  # it was asked for more than the run
    ],
)
def test_a_smaller_window_follows_one_whose_profiler_took_too_long(  # noqa: PLR0913, PLR0917  # as the row says
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, plan: dict[str, Any], before: float,
    stop: float, windows: list[int], too_long: list[bool],
) -> None:  # fmt: skip
    monkeypatch.setattr(heap, "reader", lambda: lambda: 0.0)  # nothing shows beforehand what a stop takes
    window = make(tmp_path, monkeypatch, **plan)
    window.depart = window.rest
    costs = {"before": before, "step": 0.01, "slower": 0.0, "stop": stop}
    assert traced(window, clock, costs, 100, fit=5) == windows
    assert [cost["too_long"] for cost in window.log.state["costs"]] == too_long


@pytest.mark.parametrize("plan", [{"stop_after": True}, {"seconds": 1e6}])
def test_a_trace_that_was_asked_for_more_than_the_run_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, plan: dict[str, Any]
) -> None:
    window = make(tmp_path, monkeypatch, **plan)
    window.depart = window.rest
    costs = {"before": 1, "step": 1.0, "slower": 5.0, "stop": 1.0}
    assert traced(window, clock, costs, 30) == [20]


def test_a_worker_of_several_is_traced_like_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    window = make(tmp_path, monkeypatch)
    window.log.state["rank"] = {"rank": 1, "size": 2}
    costs = {"before": 1, "step": 1.0, "slower": 5.0, "stop": 1.0}
    assert traced(window, clock, costs, 30) == [20]


def test_calls_of_several_steps_are_looked_at_by_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    window = make(tmp_path, monkeypatch)
    window.budget.run_s = lambda: clock.s - 99.0
    loop = source(window, "keras-fit")
    for _ in range(12):
        marker = loop.begin(4)
        clock.s += 1.0
        if marker is not None:
            marker.__exit__(None, None, None)
    assert [cost["steps"] for cost in window.log.state["costs"]] == [8, 20]
    assert run(window, 0)[:2] == [(24, 4), (28, 4)]  # to stop it took no time


class Graph:
    """A graph of a name that is as good as none."""

    def __init__(self, name: str) -> None:
        self.name = name


def described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, graphs: list[Graph]
) -> tuple[list[str], Any]:
    """Return the names of the graphs that are described where each takes 0.2 s, and the journal."""
    log = agent.load("process.journal").Journal(str(tmp_path))
    registry = agent.load("program.registry").Registry(log)
    module = agent.load("program.program")
    for graph in graphs:
        registry.graph_made(graph)

    def describe(graph: Graph, *_: object) -> str:
        clock.s += 0.2
        return graph.name

    monkeypatch.setattr(module.graphs, "describe", describe)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock))
    program = module.ProgramFile(registry)
    program.budget.run_s = lambda: 10.0
    names = program._graphs(SimpleNamespace(), module.Datasets(registry))  # noqa: SLF001 - all else needs TensorFlow
    return names, log


def test_a_graph_is_described_once_however_often_it_was_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """As that of a session is, with each fetch that trains."""
    graphs = [Graph("a"), Graph("b")]
    names, log = described(tmp_path, monkeypatch, clock, graphs * 30)
    assert names == ["a", "b"]
    assert log.lacking == []


def test_earlier_traces_of_a_function_are_left_out_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    graphs = [Graph("once"), *(Graph("again") for _ in range(30)), Graph("last")]
    names, log = described(tmp_path, monkeypatch, clock, graphs)
    assert names == ["once", *["again"] * 6, "last"]  # 1 s beyond the newest of each
    (missing,) = log.lacking
    assert missing["what"] == "graphs"
    assert "24 of 32 graphs" in missing["why"]
