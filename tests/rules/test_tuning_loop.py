"""tuning-loop: models one after another whose memory stays, or whose tracing takes much of the run."""

from tests.rules.kit import *
from tfdoctor.rules.run import tuning_loop

EXAMPLE_FIT = made_call(
    RunCall.FIT, Location("tune.py", 31), 12, 55e3 / 12, name="Sequential.fit", looped=True, models=12
)  # fmt: skip
EXAMPLE_RESIDENT = Trend(
    what=Grows.RESIDENT, first=0.9e9, last=2.0e9, slope=1.8e7, low=1.7e7, steady=True
)  # fmt: skip
EXAMPLE_STEP = TracedDefinition(
    name="one_step_on_iterator", at=EXAMPLE_FIT.at, tracings=12, ms=6e3, first_ms=500.0, made=12
)
EXAMPLE_PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 50e3, Phase.TRACING: 6e3, Phase.IMPORTS: 14e3})
FIT = MadeCall(
    call=RunCall.FIT, name="Sequential.fit", at=Location("tune.py", 31), count=8, ms=50e3, looped=True, models=8
)
RESIDENT = Trend(what=Grows.RESIDENT, first=0.9e9, last=1.9e9, slope=4e6, low=3e6, steady=True)
STEP = TracedDefinition(name="step", at=FIT.at, tracings=8, ms=4_500.0, first_ms=1_000.0, made=8)
PHASES = RunPhases(total_ms=70e3, times={Phase.STEPS: 60e3, Phase.IMPORTS: 10e3})
KEPT = KeptResult(Location("tune.py", 35), "runs", "run", KeptValue.HISTORY, fits=True, each=True)


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: MadeCall, fit: MadeCall | None = EXAMPLE_FIT, resident: Trend | None = EXAMPLE_RESIDENT,
    counts: tuple[Trend, ...] = (), step: TracedDefinition = EXAMPLE_STEP, phases: RunPhases = EXAMPLE_PHASES,
    limit: float | None = 32e9, kept: KeptResults | None = None, ran_out: bool = False,
) -> Verdict:  # fmt: skip
    """Judge 12 models that are fitted one after another."""
    filling = FillingMemory(trend=resident, limit=limit, ran_out=ran_out) if resident else None
    calls = RunCalls((*([fit] if fit else []), *others), fits=12)
    memory = MemoryTrends((filling,)) if filling else None
    growth = RunGrowth((resident, *counts), 60.0) if resident else None
    return tuning_loop.check(phases, calls, memory, growth, RunTraces((step,)), kept)


def sick() -> Verdict:
    """Each of 12 models leaves 90 MB and 900 operations."""
    graph = replace(EXAMPLE_RESIDENT, what=Grows.GRAPH, first=900, last=10_800)
    return example(counts=(graph,))


healthy = described(
    "The session is cleared, and memory stays as it is after the first models.",
    example,
    resident=replace(EXAMPLE_RESIDENT, last=0.91e9, steady=False),
)
check = partial(example, fit=FIT, resident=RESIDENT, step=STEP, phases=PHASES)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["memory that stays is found with the line of fit"] = check()
    told["a cleared session saves no time"] = check(step=replace(STEP, ms=30e3))
    for models, megabytes in ((3, 1000), (2, 1000), (8, 64), (8, 63), (20, 161), (20, 159)):
        fit, grown = replace(FIT, count=models, models=models), replace(RESIDENT, last=0.9e9 + 1e6 * megabytes)
        told[f"{models} models leave {megabytes} MB"] = check(fit=fit, resident=grown)
    for limit, name in (
        (14.4e9, "exactly 100 more models fit"),
        (14.3e9, "fewer than 100 more models fit"),
        (126e9, "1,000 more models fit"),
        (127e9, "more than 1,000 more models fit"),
        (None, "it is unknown how many more models fit"),
    ):
        told[name] = check(limit=limit)
    told["memory that only warms up is healthy"] = check(resident=replace(RESIDENT, steady=False))
    told[...] = check(resident=replace(RESIDENT, low=-1.0))
    told["models that are not told apart are not judged"] = check(fit=None), check(fit=replace(FIT, models=None))
    part = replace(PHASES, whole=False, missing="only its window was traced")
    told["a window is not judged"] = applied(tuning_loop, part, RunCalls(()))
    calls = "keras.src.backend.common.global_state.clear_session"
    line = RunLine(phase=Phase.UNNAMED, at=Location("tune.py", 28), ms=90.0, samples=2, calls=calls)
    told["growth although the session is cleared"] = check(phases=replace(PHASES, lines=(line,)), limit=3e9)
    told["a search that ran out of memory comes before savings"] = check(ran_out=True)
    for what in (KeptValue.HISTORY, KeptValue.MODEL):
        told[f"the statement that keeps each {what}"] = check(kept=KeptResults((replace(KEPT, what=what),)))
    told["several statements, and an unsure one"] = check(kept=KeptResults((KEPT, replace(KEPT, container="more"))))
    told[...] = check(kept=KeptResults((replace(KEPT, what=KeptValue.OTHER),)))


@golden_cases
def test_tracing(told: Cases) -> None:
    for ms, name in ((7_001.0, "a tenth of the run"), (6_999.0, "less than a tenth of the run")):
        told[f"building the same graphs again takes {name}"] = check(
            resident=None, step=replace(STEP, ms=ms + 1_000.0, alike_ms=ms, alike=7)
        )
    for tracings in (16, 17):
        step = replace(STEP, tracings=tracings, alike_ms=9e3)
        told[f"{tracings} traces of eight functions: each may have a last, smaller batch"] = check(
            resident=None, step=step
        )
    compiled = made_call(RunCall.COMPILE, Location("tune.py", 14), 8, 11.0, name="Sequential.compile")
    called: dict[str, Any] = {"function": "build", "caller": Location("tune.py", 30)}
    line = RunLine(phase=Phase.BUILDING, at=Location("tune.py", 9), ms=700.0, samples=14, **called)
    made = partial(check, compiled, resident=None, step=replace(STEP, alike_ms=9e3))
    told["the line in the loop that has the model built is to change"] = made(phases=replace(PHASES, lines=(line,)))
    told["where that is unknown it is the call that compiles"] = made()
    told["graphs of other models are necessary"] = check(resident=None, step=replace(STEP, ms=30_000.0))
    told["functions that are made once"] = check(resident=None, step=replace(STEP, ms=30e3, alike_ms=30e3, made=1))
    again = replace(STEP, ms=30e3, alike_ms=20e3)
    for memory in (None, replace(RESIDENT, steady=False)):
        kept = check(resident=memory, step=again, kept=KeptResults((KEPT,)))
        assert kept == check(resident=memory, step=again)
    told["what saves time stays before what is kept"] = check(step=again, kept=KeptResults((KEPT,)))
