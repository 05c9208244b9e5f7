"""Each doubt about a recording, on both sides of its limit; and which samples count."""

from tests.facts.kit import *
from tfdoctor.facts.steps.steps import FEWEST_STEPS

SECOND = 1_000_000_000

ACCOUNT = RunLog(RunProcess(), {}, {}, ())


def quality(of: Trace | None = None, beside: Manifest | None = None, **samples: Any) -> Quality:
    given = [{"unix_ns": 1, "host": samples}] if samples else []
    at = recording(manifest=beside, samples=given)
    return chart(of or trace([markers(8, 10)]), at).fact(Quality)


def doubts(*args: Any, **samples: Any) -> str:
    return " / ".join(doubt.what for doubt in quality(*args, **samples).doubts)


def steps_of(*times: float) -> Thread:
    starts = [sum(times[:n]) for n in range(len(times))]
    rows = [marker(n, at, at + times[n]) for n, at in enumerate(starts)]
    return line("python", *rows, ("tfdoctor_end", sum(times), sum(times)))


def test_eight_even_steps_leave_no_doubt() -> None:
    found = quality()
    assert (found.steps, found.doubts, found.level) == (8, (), "high")


def test_damage_is_a_doubt() -> None:
    of = replace(trace([markers(8, 10)]), damage=("two times were cut off",))
    at = replace(recording(), damage=("1 damaged value of samples.jsonl left out: x",))
    said = [doubt.what for doubt in chart(of, at).fact(Quality).doubts]
    assert said == ["two times were cut off", "1 damaged value of samples.jsonl left out: x"]


@cases(
    (FEWEST_STEPS, "", "high"),
    (FEWEST_STEPS - 1, "only 4 training steps were traced", "medium"),
    (1, "only 1 training step was traced, which may be the start-up", "low"),
)
def test_few_steps(count: int, doubt: str, level: str) -> None:
    traced = trace([markers(count, 10)])
    assert doubts(traced) == doubt
    assert quality(traced).level == level


def test_no_step_at_all() -> None:
    found = quality(trace([]))
    assert (found.steps, found.level) == (0, "low")
    assert "no training step" in found.doubts[0].what


@cases((12.4, False), (13.0, True))
def test_uneven_steps(long: float, *, uneven: bool) -> None:
    traced = trace([steps_of(*[10.0, long] * 5)])
    assert ("step times vary" in doubts(traced)) is uneven


@cases(
    ({"warnings": ("Detected GPU events dropped on vm: 12 events",)}, {}, "dropped events", "low"),
    ({"warnings": ("something harmless",)}, {}, "", "high"),
    ({"errors": ("boom",)}, {}, "the profiler reported an error (boom)", "low"),
    ({}, {"window": TracedWindow(contains_warmup=True)}, "warm-up", "medium"),
    ({}, {"window": TracedWindow()}, "", "high"),
    ({}, {"missing": (Missing("graphs", "3 of 40 graphs were not"),)}, "3 of 40 graphs were not", "medium"),
    ({}, {"finished": False}, "cut off", "medium"),
)
def test_what_the_profiler_and_the_recorder_say(
    told: dict[str, Any], beside: dict[str, Any], said: str, level: str
) -> None:
    found = quality(trace([markers(8, 10)], **told), manifest(**beside))
    assert [said in doubt.what for doubt in found.doubts] == [True] * bool(said)
    assert found.level == level


def test_a_missing_cupti_is_said_once_and_with_its_remedy() -> None:
    silent = trace([markers(8, 10)], gpus=[v100()], errors=("Failed to load libcupti",))
    (doubt,) = quality(silent).doubts
    assert "CUPTI" in doubt.what
    assert "tensorflow[and-cuda]" in doubt.remedy
    assert doubt.grave


def test_a_trace_that_was_cut_for_its_cost_is_said_with_it() -> None:
    costs = (WindowCost(2, "cost", start_s=0.5, stop_s=0.25), WindowCost(5, "cost", slowed_s=1.25))
    cut = manifest(window=TracedWindow(steps=5, stopped_by="cost"), costs=costs)
    (doubt,) = quality(None, cut).doubts
    assert "tracing ended after five steps" in doubt.what
    assert "it cost 2 s" in doubt.what
    assert "--no-trace" in doubt.remedy
    assert doubts(None, manifest(window=TracedWindow(steps=5, stopped_by="steps"), costs=costs)) == ""


@cases((9.2, False), (9.0, True))
def test_steps_that_profiling_slowed_down(before: float, *, slowed: bool) -> None:
    seen = StepsSeen(untraced=UntracedSteps(count=50, median_ms=before))
    assert ("tracing made the steps" in doubts(None, manifest(steps=seen))) is slowed


@cases(("steps", "25 %"), ("", ""))
def test_whole_steps_are_compared_with_whole_steps(of: str, times: str) -> None:
    seen = StepsSeen(untraced=UntracedSteps(count=50, median_ms=8.0, of=of))
    found = doubts(trace([markers(8, 10, call=8)]), manifest(steps=seen))
    assert times in found
    assert bool(found) is bool(times)


def test_calls_that_hold_the_steps_show_what_tracing_costs_them() -> None:
    calls = UntracedSteps(count=9, median_ms=400.0, traced_ms=500.0, of="calls")
    found = doubts(trace([markers(8, 10)]), manifest(steps=StepsSeen(untraced=calls)))
    assert "tracing made the steps 25 % slower (8.00 ms without tracing)" in found


@cases((50.0, False), (51.0, True))
def test_a_machine_that_was_busy_with_other_work(percent: float, *, busy: bool) -> None:
    assert ("other programs" in doubts(None, other_cpu_pct=percent)) is busy


def test_the_gravest_doubt_comes_first() -> None:
    found = quality(trace([markers(3, 10)], errors=("boom",)))
    assert [doubt.grave for doubt in found.doubts] == [True, False]


# Samples


def sample(at: float, **host: Any) -> dict[str, Any]:
    return {"unix_ns": int(at * SECOND), "host": host}


def samples(*rows: dict[str, Any], window: tuple[float, float | None] | None = None) -> Samples:
    beside = manifest()
    if window:
        start, stop = window
        closed = None if stop is None else int(stop * SECOND)
        beside = manifest(window=TracedWindow(started_unix_ns=int(start * SECOND), stopped_unix_ns=closed))
    return chart(trace([]), recording(samples=rows, manifest=beside)).fact(Samples)


ROWS = [sample(at, run_cpu_pct=at * 100) for at in range(1, 10)]


@cases(
    ((2.5, 6.5), 3, (4 + 5 + 6) / 3),  # but for the first, which began before it
    ((2.5, 3.5), 1, 3),
    ((4.2, 4.3), 1, 5),  # the sample at 5 covers what was before it
    ((9.2, 9.3), 1, 9),  # the run ended before the next one
    (None, 9, 5),
    ((3, None), 9, 5),  # not closed
)
def test_samples_of_the_window_count(window: tuple[float, float | None] | None, count: int, cores: float) -> None:
    found = samples(*ROWS, window=window)
    assert (found.count, found.run_cores) == pytest.approx((count, cores))


def test_what_was_not_sampled_is_unknown() -> None:
    found = samples(sample(1, run_cpu_pct=50.0), sample(2, run_rss_bytes=7))
    assert (found.run_cores, found.other_cores, found.gpu_busy) == (0.5, None, None)
    assert found.run_bytes == 7
    with pytest.raises(Unavailable, match="tfdoctor profile"):  # says how to sample it
        samples()


def test_the_gpus_are_averaged_and_memory_is_its_maximum() -> None:
    rows = [
        {"unix_ns": 1, "gpu": [{"gpu_pct": 10}, {"gpu_pct": 30}], "host": {"run_rss_bytes": 5}},
        {"unix_ns": 2, "gpu": [{"gpu_pct": 80}, {}], "host": {"run_rss_bytes": 3}},
    ]
    found = samples(*rows)
    assert found.gpu_busy == pytest.approx(0.4)
    assert found.run_bytes == 5


def gpus(window: tuple[float, float]) -> Samples:
    rows = [sample(at, run_cpu_pct=1.0) for at in range(1, 10)]
    for at in range(1, 10):
        told = {"gpu_pct": 10 * at, "tensor_pct": at}
        rows.append({"unix_ns": at * SECOND, "gpu": [told, {"gpu_pct": 99, "visible": False}]})
    return samples(*rows, window=window)


def test_a_gpu_that_the_run_cannot_see_does_not_count() -> None:
    found, short = gpus((2.5, 6.5)), gpus((2.5, 4.0))
    assert (found.gpu_busy, found.tensor_active) == pytest.approx((0.5, 0.05))
    # A window that is shorter than what a GPU's load is a mean of says nothing.
    assert (short.gpu_busy, short.tensor_active) == (None, None)
    assert short.run_cores == pytest.approx(0.01)


@cases((5.0, ""), (4.9, ", because most of the traced time is the profiler's own cost"))
def test_steps_that_are_mostly_the_profilers_are_not_trusted(untraced_ms: float, more: str) -> None:
    slowed = manifest(steps=StepsSeen(untraced=UntracedSteps(count=9, median_ms=untraced_ms)))
    found = quality(trace([markers(20, 10)]), slowed)
    assert found.level == "low"
    assert found.doubts[0].remedy == f"confirm with a timer before you change anything{more}"


@cases((89.0, "high"), (91.0, "medium"), (359.0, "medium"), (361.0, "low"))
def test_steps_left_out_with_most_of_the_time(long: float, level: str) -> None:
    """Nine steps of 10 ms, and one that takes about as long as ten usual ones."""
    traced = trace([steps_of(*(10.0,) * 4, long, *(10.0,) * 5)])
    assert ("which the breakdown excludes" in doubts(traced)) is (level != "high")
    assert quality(traced).level == level


def of_run(account: RunLog = ACCOUNT, of: Trace | None = None, **told: Any) -> Chart:
    """A finished run with an account, and no trace unless it is given."""
    given = replace(manifest(), **{"plan": CapturePlan(), "finished": True, **told})
    return chart(of or trace([]), replace(recording(manifest=given), run=account))


def test_steps_left_out_are_in_the_account_of_a_run() -> None:
    traced = trace([steps_of(*(10.0,) * 4, 361.0, *(10.0,) * 5)])
    found = of_run(of=traced).fact(Quality)
    assert found.level == "medium"
    assert [doubt.cause for doubt in found.doubts] == ["the account of the run has their time"]


@cases((0.9, True), (1.1, False))
def test_short_steps_that_nothing_timed_without_the_profiler(ms: float, *, doubtful: bool) -> None:
    """A foreign trace has no untraced steps to compare."""
    gpu, steps = Device(DeviceKind.GPU, 1, 1), Steps.uniform(8, ms)
    found = Quality.measure(trace([markers(8, ms)]), gpu, recording(), steps, None, Framework("JAX"), None)
    assert any("without the profiler" in doubt.what for doubt in found.doubts) == doubtful


@cases(
    (CapturePlan(), 0, []),  # trains nothing
    (CapturePlan(trace=False), 500, []),  # as was asked for
    (CapturePlan(), 7, ["no training step was traced"]),
)
def test_an_account_of_the_run_needs_no_traced_step(plan: CapturePlan, seen: int, said: list[str]) -> None:
    found = of_run(plan=plan, steps=StepsSeen(seen=seen)).fact(Quality)
    assert [doubt.what for doubt in found.doubts] == said
    assert found.account


@each(0, 1)
def test_a_run_that_waits_for_children_says_how_to_record_them(code: int) -> None:
    run = Run()
    run.python(3.0, "launch.py:4", calls="subprocess.run")
    of = run.recording(plan=CapturePlan(), finished=True, outcome=Ending(exit_code=code))
    found = chart(trace([]), of).fact(Quality)
    (doubt,) = found.doubts
    assert doubt.what == ("93 % of the run are waiting for child processes, in which no training step was seen")
    assert "`tfdoctor profile -- COMMAND`" in doubt.remedy
    assert found.level == "medium"


def test_a_run_that_trains_may_wait_for_children() -> None:
    run = Run()
    run.python(3.0, "train.py:4", calls="subprocess.run")
    run.steps(100, 10.0, "train.py:12")
    of = run.recording(plan=CapturePlan(trace=False), finished=True, steps=StepsSeen(seen=100))
    assert chart(trace([]), of).fact(Quality).doubts == ()


@cases((CapturePlan(), 0), (CapturePlan(), 1), (CapturePlan(trace=False), 0))
def test_a_run_of_another_framework_is_no_run_without_training(plan: CapturePlan, code: int) -> None:
    account = replace(ACCOUNT, frameworks=(RunFramework("jax", "0.10.2"),))
    found = of_run(account, plan=plan, outcome=Ending(exit_code=code))
    assert [doubt.what for doubt in found.fact(Quality).doubts] == ["no training step was traced"]
    assert found.fact(Framework).title == "JAX 0.10.2"


@cases((1, "low"), (7, "high"))
def test_what_goes_on_in_the_background_is_doubted_until_it_has_ended(pid: int, level: str) -> None:
    account = replace(ACCOUNT, process=RunProcess(pid), end=ProcessEnd(1.0, "exit"))
    found = of_run(account, background=(7,)).fact(Quality)
    assert found.level == level
    assert any("process 7" in doubt.what for doubt in found.doubts) == (level == "low")


@pytest.mark.parametrize(
    ("ending", "seen", "level"),
    [
        (Ending(exit_code=1), 0, "low"),
        (Ending(exit_code=1), 1, "low"),
        (Ending(signal=9), 1, "low"),
        (Ending(error="ValueError"), 0, "low"),
        (Ending(exit_code=1), 2, "medium"),
        (Ending(exit_code=0), 0, "high"),  # trains nothing
        (Ending(), 0, "high"),
    ],
)
@pytest.mark.parametrize("plan", [CapturePlan(), CapturePlan(trace=False)], ids=["traced", "not traced"])
def test_a_run_that_failed_at_once_is_not_trusted(ending: Ending, seen: int, level: str, plan: CapturePlan) -> None:
    """Trap: its account is exact, and of a run that did nothing yet."""
    found = of_run(plan=plan, steps=StepsSeen(seen=seen), outcome=ending).fact(Quality)
    assert found.level == (level if plan.trace or level == "low" else "high")
    said = [doubt.what for doubt in found.doubts if "ended" in doubt.what]
    ended = f"the run ended before its {'second' if seen else 'first'} training step was over"
    assert said == ([ended] if level == "low" else [])


def test_without_an_account_a_missing_step_is_grave() -> None:
    of = replace(manifest(), plan=CapturePlan(), finished=True)
    assert chart(trace([]), recording(manifest=of)).fact(Quality).level == "low"
