"""What tfdoctor may cost a run: the rule alone, and what it does to windows."""

from tests.capture.kit import *
from tests.capture.windows import run

SECONDS = st.floats(0, 1e6)
budget = agent.load("process.budget")


@given(run_s=SECONDS, share=st.floats(0, 1), more_s=SECONDS)
def test_what_may_be_spent_grows_with_the_run_and_is_a_tenth_of_it(run_s: Any, share: Any, more_s: Any) -> None:
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
def test_a_window_closes_once_it_has_cost_what_it_may(calls: Any, each_s: Any, run_s: Any, share: Any) -> None:
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


class Program:
    """A program whose time passes only in steps and in the profiler, for the wall and the CPU alike."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tmp_path, self.monkeypatch = tmp_path, monkeypatch
        self.s, self.mb = 100.0, 0.0  # the time, and the memory that a traced step takes
        own = {"perf_counter": lambda: self.s, "perf_counter_ns": lambda: int(self.s * 1e9)}
        times = SimpleNamespace(**{**vars(time), **own, "process_time": lambda: self.s})
        for module in ("process.budget", "window.window", "window.steps"):
            monkeypatch.setattr(agent.load(module), "time", times)
        monkeypatch.setattr(budget, "heap_reader", lambda: None)  # the CPU time decides

    def call(self, loop: Any, steps: int, s: float, slower: float = 0.0) -> None:
        """Make a call of so many steps, which takes longer where it is traced."""
        marker = loop.begin(steps)
        self.s += s * (1 + slower * (marker is not None))
        if marker is not None:
            marker.__exit__(None, None, None)

    def windows(
        self, steps: int, *, before: float, step: Any, slower: Any = 0, stop: Any, fit: Any = 0, **plan: Any
    ) -> Any:
        """Run steps, after a fit and a pause, and return how many were traced in each window."""
        start_s: float = plan.pop("start", 0.0)
        window = self.window = make(self.tmp_path, self.monkeypatch, **plan)
        window.log.state["rank"] = plan.get("rank")
        window.depart = window.rest
        profiler, began, marked = window.profiler, self.s - before, list[int]()
        starts, stops = profiler.start, profiler.stop
        window.budget.run_s = lambda: self.s - began
        if self.mb:
            self.monkeypatch.setattr(budget, "heap_reader", lambda: lambda: self.mb * len(profiler.marked))

        def slow_start(folder: str) -> None:
            self.s += start_s
            starts(folder)

        def slow_stop() -> None:
            marked.append(len(profiler.marked))
            self.s += stop * len(profiler.marked)
            stops()

        profiler.start, profiler.stop = slow_start, slow_stop
        loops = [(source(window, "keras-fit"), fit)] if fit else []
        for loop, count in (*loops, (source(window, "tf-data-loop"), steps)):
            if loop.kind == "keras-fit":
                window.announce(loop, fit, skip=1)
            for _ in range(count):
                self.call(loop, 1, step, slower)
            window.close("end-of-run")
            self.s += 1000.0 * (count == fit)
        return marked

    @property
    def costs(self) -> Any:
        return self.window.log.state["costs"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(tmp_path, monkeypatch)


@cases(
    ({"before": 4, "step": 0.001, "slower": 0.1, "stop": 0.0005}, 100, [20]),  # costs nothing
    ({"before": 4, "step": 0.1, "slower": 0.0, "stop": 0.001}, 100, [10, 20]),  # learns that
    ({"before": 10, "step": 0.35, "slower": 0.6, "stop": 0.25}, 70, [5]),  # too much
    ({"before": 4, "step": 0.35, "slower": 0.6, "stop": 0.47}, 20, [2]),  # a run of 10 s
    ({"before": 10, "step": 0.35, "slower": 0.6, "stop": 0.25}, 2000, [5, 12, 20]),
    ({"before": 3600, "step": 0.35, "slower": 0.6, "stop": 0.47}, 70, [20]),  # an hour before
)
def test_windows_take_a_small_part_of_the_run(costs: Any, steps: int, windows: list[int], program: Program) -> None:
    assert program.windows(steps, **costs) == windows
    assert [cost["steps"] for cost in program.costs] == windows
    assert [cost["stopped_by"] for cost in program.costs[:-1]] == ["cost"] * (len(windows) - 1)
    assert program.costs[-1]["stop_s"] == pytest.approx(windows[-1] * costs["stop"])
    slowed = windows[-1] * costs["step"] * costs["slower"]
    assert program.costs[-1]["slowed_s"] == pytest.approx(slowed, abs=1e-3)
    total, share = program.s - 100.0 + costs["before"], 0.12 if windows != [2] else 0.2
    assert program.window.budget.spent_s <= max(budget.LEAST_S, share * total)
    assert program.window.log.errors == []


NOTED: dict[str, Any] = {"steps": 100, "before": 5, "step": 0.02}
FITTED: dict[str, Any] = {"steps": 100, "before": 100, "step": 0.01, "fit": 5}
SLOW: dict[str, Any] = {"steps": 30, "before": 1, "step": 1.0, "slower": 5.0, "stop": 1.0}


@cases(
    # The notes of the profiler, in memory, say what its stop takes.
    (0.1, {**NOTED, "stop": 0.001}, [(20, False)]),  # convolutions: few operations, however long they compute
    (2.5, {**NOTED, "stop": 0.1}, [(5, False)]),  # a loop of small operations: 20 of its steps would cost 2 of 7 s
    (
        10.0,
        {**NOTED, "stop": 0.001},
        [(2, False), (20, False)],
    ),  # memory of the program's own: known after the first
    # A smaller window follows one whose profiler took too long; nothing shows beforehand what a stop takes.
    (1e-9, {**FITTED, "stop": 2.0}, [(4, True), (2, False)]),  # 8 s where it may take 5
    (1e-9, {**FITTED, "stop": 0.75, "before": 20}, [(4, True), (2, False)]),  # 3 s of 20
    (1e-9, {**FITTED, "stop": 1.0}, [(4, False), (20, True)]),  # 4 s of 100
    (1e-9, {**FITTED, "stop": 2.0, "stop_after": True}, [(4, True), (20, True)]),  # asked for more than the run
    (1e-9, {**FITTED, "start": 1.5, "stop": 0.25, "before": 20}, [(4, True), (3, False)]),  # 2.5 s of 20
    (1e-9, {**FITTED, "start": 5.5, "stop": 0.0}, [(4, True), (3, True)]),  # 5.5 s where it may take 5
    # A trace that was asked for and that of a worker are not cut.
    (0.0, {**SLOW, "stop_after": True}, [(20, True)]),
    (0.0, {**SLOW, "seconds": 1e6}, [(20, True)]),
    (0.0, {**SLOW, "rank": {"rank": 1, "size": 2}}, [(20, True)]),
)
def test_how_long_windows_are_and_whether_their_profiler_took_too_long(
    mb: float, costs: dict[str, Any], windows: list[tuple[int, bool]], program: Program
) -> None:
    program.mb = mb
    traced = program.windows(**costs)
    assert [*zip(traced, (cost["too_long"] for cost in program.costs), strict=True)] == windows


def test_memory_that_the_program_frees_hides_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    account, in_use = budget.CaptureBudget(), [500.0]
    monkeypatch.setattr(budget, "heap_reader", lambda: lambda: in_use[0])
    account.opens(0.0, None)
    for mb, noted in ((510.0, 10.0), (300.0, 0.0), (320.0, 20.0)):
        in_use[0] = mb
        account.measured(1, "")
        assert account.noted_mb == noted


def test_the_memory_in_use_grows_with_what_is_kept() -> None:
    in_use = budget.heap_reader()
    assert in_use is not None, "glibc tells it"
    before = in_use()
    kept = [bytes(1000) for _ in range(20_000)]
    assert in_use() - before == pytest.approx(20.0, rel=0.3)
    assert kept


def test_calls_of_several_steps_are_looked_at_by_call(program: Program, window: Any) -> None:
    window.budget.run_s = lambda: program.s - 99.0
    for _ in range(12):
        program.call(source(window, "keras-fit"), 4, 1.0)
    assert [cost["steps"] for cost in window.log.state["costs"]] == [8, 20]
    assert run(window, 0)[:2] == [(24, 4), (28, 4)]  # to stop it took no time


@cases(
    (["a", "b"] * 30, ["a", "b"], ""),  # a session's is met with each fetch that trains
    # 1 s beyond the newest of each name:
    (["once", *["again"] * 30, "last"], ["once", *["again"] * 6, "last"], "24 of 32 graphs"),
)
def test_graphs_are_told_once_and_as_far_as_there_is_time(
    made: Any, told: Any, lacks: str, program: Any, log: Any, monkeypatch: Any
) -> None:
    """Each takes 0.2 s."""
    registry, module = agent.load("program.registry").Registry(log), agent.load("program.program")
    kept: dict[object, Any] = {}
    for number, name in enumerate(made):
        key = name if len(told) == 2 else number
        registry.graph_made(kept.setdefault(key, type("Graph", (), {"name": name})()))

    def describe(graph: Any, *_: object) -> str:
        program.s += 0.2
        return str(graph.name)

    monkeypatch.setattr(module.graphs, "describe", describe)
    monkeypatch.setitem(sys.modules, module.CONTEXT, ModuleType("context"))
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: program.s))
    file = module.ProgramFile(registry)
    file.budget.run_s = lambda: 10.0
    file.keep()
    assert file.kept["graphs"] == told
    assert [entry["what"] for entry in log.lacking if lacks in entry["why"]] == ["graphs"] * bool(lacks)
