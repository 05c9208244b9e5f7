"""Each doubt about a recording, on both sides of its limit; and which samples count."""

from tests.facts.kit import *
from tests.run_logs import made, python, steps

SECOND = 1_000_000_000
ACCOUNT = RunLog(RunProcess(), {}, {}, ())
told = Told()


def quality(of: Trace | None = None, beside: Manifest | None = None, **samples: Any) -> Quality:
    given = [{"unix_ns": 1, "host": samples}] if samples else []
    at = recording(manifest=beside, samples=given)
    return chart(of or trace([markers(8, 10)]), at).fact(Quality)


def untraced(median_ms: float, count: int = 50, **more: Any) -> Manifest:
    return manifest(steps=StepsSeen(untraced=UntracedSteps(count=count, median_ms=median_ms, **more)))


def steps_of(*times: float) -> Thread:
    starts = [sum(times[:n]) for n in range(len(times))]
    rows = [marker(n, at, at + times[n]) for n, at in enumerate(starts)]
    return line("python", *rows, ("tfdoctor_end", sum(times), sum(times)))


EIGHT = markers(8, 10)
COSTS = (WindowCost(2, "cost", start_s=0.5, stop_s=0.25), WindowCost(5, "cost", slowed_s=1.25))


def said(found: Quality) -> list[str]:
    """The level, and each doubt as a report has it."""
    head = f"{found.level}, {found.steps} steps{', with an account' * found.account}"
    return [head, *(f"{'grave: ' * doubt.grave}{doubt.advice}" for doubt in found.doubts)]


def told_by(**of: Any) -> Trace:
    """Eight steps of 10 ms, and what the profiler says."""
    return trace([EIGHT], **of)


def cut(why: str) -> Manifest:
    return manifest(window=TracedWindow(steps=5, stopped_by=why), costs=COSTS)


def nine_and(long: float) -> Trace:
    """Nine steps of 10 ms, and one that takes so long."""
    return trace([steps_of(*(10.0,) * 4, long, *(10.0,) * 5)])


told[lambda *args: said(quality(*args))] = {
    "eight even steps leave no doubt": (),
    "damage is a doubt": replace(told_by(), damage=("two times were cut off",)),
    "five steps are enough": trace([markers(FEWEST_STEPS, 10)]),
    "four steps are few": trace([markers(FEWEST_STEPS - 1, 10)]),
    "a single step may be the start-up": trace([markers(1, 10)]),
    "no step at all": trace([]),
    "steps that vary a little": trace([steps_of(*[10.0, 12.4] * 5)]),
    "uneven steps": trace([steps_of(*[10.0, 13.0] * 5)]),
    "events that were dropped": told_by(warnings=("Detected GPU events dropped on vm: 12 events",)),
    "a harmless warning": told_by(warnings=("something harmless",)),
    "an error of the profiler": told_by(errors=("boom",)),
    "a window with the warm-up": (None, manifest(window=TracedWindow(contains_warmup=True))),
    "a window without it": (None, manifest(window=TracedWindow())),
    "what the recorder missed": (None, manifest(missing=(Missing("graphs", "3 of 40 graphs were not"),))),
    "a run that was cut off": (None, manifest(finished=False)),
    "a missing CUPTI is said once, with its remedy": told_by(gpus=[v100()], errors=("Failed to load libcupti",)),
    "a trace that was cut for its cost is said with it": (None, cut("cost")),
    "a trace that ended as planned is not cut": (None, cut("steps")),
    "steps that profiling slowed down a little": (None, untraced(9.2)),
    "steps that profiling slowed down": (None, untraced(9.0)),
    "whole steps are compared with whole steps": (trace([markers(8, 10, call=8)]), untraced(8.0, of="steps")),
    "calls with calls": (trace([markers(8, 10, call=8)]), untraced(8.0)),
    "calls that hold the steps show their cost": (None, untraced(400.0, 9, traced_ms=500.0, of="calls")),
    "steps that take twice as long traced": (trace([markers(20, 10)]), untraced(5.0, 9)),
    "steps that are mostly the profilers are not trusted": (trace([markers(20, 10)]), untraced(4.9, 9)),
    "the gravest doubt comes first": trace([markers(3, 10)], errors=("boom",)),
    "a step left out with less than half of the time": nine_and(89.0),
    "a step left out with more than half": nine_and(91.0),
    "a step left out with less than four fifths": nine_and(359.0),
    "a step left out with more than four fifths": nine_and(361.0),
}
told.add("doubts below their limits are small", lambda: quality().small)
told.add("other programs on a machine, a little", lambda: said(quality(other_cpu_pct=50.0)))
told.add("other programs keep a machine busy", lambda: said(quality(other_cpu_pct=51.0)))

DAMAGED = replace(recording(), damage=("1 damaged value of samples.jsonl left out: x",))
told.add("damage of samples is a doubt", lambda: said(chart(told_by(), DAMAGED).fact(Quality)))

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

GPUS = [
    {"unix_ns": 1, "gpu": [{"gpu_pct": 10}, {"gpu_pct": 30}], "host": {"run_rss_bytes": 5}},
    {"unix_ns": 2, "gpu": [{"gpu_pct": 80}, {}], "host": {"run_rss_bytes": 3}},
]

told[lambda window: samples(*ROWS, window=window)] = {
    "samples of the window count, but for the first, which began before it": ((2.5, 6.5),),
    "of a second, one does": ((2.5, 3.5),),
    "the next sample covers what was before it": ((4.2, 4.3),),
    "the run may end before the next one": ((9.2, 9.3),),
    "without a window all count": None,
    "without an end of it too": ((3, None),),
}
told[samples] = {
    "what was not sampled is unknown": (sample(1, run_cpu_pct=50.0), sample(2, run_rss_bytes=7)),
    "no samples say how to sample": (),
    "the gpus are averaged and memory is its maximum": GPUS,
}


def gpus(window: tuple[float, float]) -> Samples:
    rows = [sample(at, run_cpu_pct=1.0) for at in range(1, 10)]
    for at in range(1, 10):
        told = {"gpu_pct": 10 * at, "tensor_pct": at}
        rows.append({"unix_ns": at * SECOND, "gpu": [told, {"gpu_pct": 99, "visible": False}]})
    return samples(*rows, window=window)


told[gpus] = {
    "a gpu that the run cannot see does not count": ((2.5, 6.5),),
    "a window that is shorter than what a load is a mean of says nothing": ((2.5, 4.0),),
}


def of_run(account: RunLog = ACCOUNT, of: Trace | None = None, **told: Any) -> Chart:
    """A finished run with an account, and no trace unless it is given."""
    given = replace(manifest(), **{"plan": CapturePlan(), "finished": True, **told})
    return chart(of or trace([]), replace(recording(manifest=given), run=account))


def said_of(*of: Any, **told: Any) -> list[str]:
    return said(of_run(*of, **told).fact(Quality))


told.add("steps left out are in the account of a run", lambda: said_of(of=nine_and(361.0)))


def of_another(ms: float) -> object:
    """A foreign trace has no untraced steps to compare."""
    gpu, steps = Device(DeviceKind.GPU, 1, 1), even_steps(8, ms)
    return said(Quality.measure(trace([markers(8, ms)]), gpu, recording(), steps, None, Framework("JAX"), None))


told[of_another] = {"short steps that nothing timed without the profiler": 0.9, "longer steps of this kind": 1.1}

told[lambda plan, seen: said_of(plan=plan, steps=StepsSeen(seen=seen))] = {
    "an account of a run that trains nothing needs no traced step": (CapturePlan(), 0),
    "an account without a trace, as planned, needs none": (CapturePlan(trace=False), 500),
    "an account of a run that trains needs one": (CapturePlan(), 7),
}

WAITING = made(python(3.0, "launch.py:4", calls="subprocess.run"))
TRAINING = made(python(3.0, "train.py:4", calls="subprocess.run"), steps(100, 10.0, "train.py:12"))


def waiting(run: Run, plan: CapturePlan, code: int | None = None, seen: int | None = None) -> object:
    more: dict[str, Any] = {} if seen is None else {"steps": StepsSeen(seen=seen)}
    of = run.recording(plan=plan, finished=True, outcome=Ending(exit_code=code), **more)
    return said(chart(trace([]), of).fact(Quality))


told[waiting] = {
    "a run that waits for children says how to record them": (WAITING, CapturePlan(), 0),
    "a failed run that waits for children says so, too": (WAITING, CapturePlan(), 1),
    "a run that trains may wait for children": (TRAINING, CapturePlan(trace=False), None, 100),
}


@cases((CapturePlan(), 0), (CapturePlan(), 1), (CapturePlan(trace=False), 0))
def test_a_run_of_another_framework_is_no_run_without_training(plan: CapturePlan, code: int) -> None:
    account = replace(ACCOUNT, frameworks=(RunFramework("jax", "0.10.2"),))
    found = of_run(account, plan=plan, outcome=Ending(exit_code=code))
    assert [doubt.what for doubt in found.fact(Quality).doubts] == ["no training step was traced"]
    assert found.fact(Framework).title == "JAX 0.10.2"


ENDED = replace(ACCOUNT, end=ProcessEnd(1.0, "exit"))

told[lambda pid: said_of(replace(ENDED, process=RunProcess(pid)), background=(7,))] = {
    "what goes on in the background is doubted": 1,
    "what went on in the background until it ended is not": 7,
}

# Trap: the account of a run that failed at once is exact, and of a run that did nothing yet.
PLANS = (CapturePlan(), CapturePlan(trace=False))

told[
    lambda ending, seen: [
        line for plan in PLANS for line in said_of(plan=plan, steps=StepsSeen(seen=seen), outcome=ending)
    ]
] = {
    "a run that failed before its first step, traced or not": (Ending(exit_code=1), 0),
    "a run that failed before its second step": (Ending(exit_code=1), 1),
    "a run that was killed before its second step": (Ending(signal=9), 1),
    "a run that did not begin": (Ending(error="ValueError"), 0),
    "a run that failed after its second step": (Ending(exit_code=1), 2),
    "a run that ended well and trains nothing": (Ending(exit_code=0), 0),
    "a run whose end is not known": (Ending(), 0),
}

FINISHED = replace(manifest(), plan=CapturePlan(), finished=True)
told.add("without an account a missing step is grave", lambda: said(quality(trace([]), FINISHED)))

test_quality = told.test("quality")
