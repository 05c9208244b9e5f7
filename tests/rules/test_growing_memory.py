"""growing-memory: a leak, told from what warms up, levels off, is small or is what the run must keep."""

from tests.rules.kit import *
from tfdoctor.rules.run import growing_memory

EXAMPLE_RESIDENT = Trend(
    what=Grows.RESIDENT, first=1.1e9, last=3.5e9, slope=2e7, low=1.9e7, steady=True
)  # fmt: skip
EXAMPLE_PHASES = RunPhases(total_ms=130e3, times={Phase.STEPS: 120e3, Phase.IMPORTS: 10e3}, once_ms=10e3)
RESIDENT = replace(EXAMPLE_RESIDENT, first=1e9, last=1.4e9, slope=4e6, low=3e6)
TENSORS = replace(RESIDENT, what=Grows.OBJECTS, name="EagerTensor", first=1_000, last=9_000)
PHASES = replace(EXAMPLE_PHASES, total_ms=110_000.0, times={Phase.STEPS: 100_000.0, Phase.IMPORTS: 10_000.0})
KEPT = KeptResult(script(47), "history", "loss", KeptValue.RESULT, each=True)
STATEMENT = KeptResults((KEPT,))
PREDICTS = {"phases": replace(PHASES, times={Phase.PREDICTION: 100_000.0, Phase.IMPORTS: 10_000.0})}


def example(  # noqa: PLR0913 - what the severity depends on
    resident: Trend = EXAMPLE_RESIDENT, *counts: Trend, limit: float | None = 32e9, planned_s: float = 0.0,
    ran_out: bool = False, phases: RunPhases = EXAMPLE_PHASES, calls: RunCalls | None = None,
    program: Program | None = None, seconds: float = 120.0, reserved: Trend | None = None,
    kept: KeptResults | None = None,
) -> Verdict:  # fmt: skip
    """Judge memory that grows by 20 MB a second, with the counts that grow along."""
    memory = FillingMemory(resident, limit, planned_s, ran_out, reserved)
    growth = RunGrowth((resident, *counts), seconds)
    return growing_memory.check(phases, MemoryTrends((memory,)), growth, calls, program, kept)


def sick() -> Verdict:
    """Memory grows by 20 MB a second, and live tensors with it, which a list in the loop keeps."""
    counts = replace(EXAMPLE_RESIDENT, what=Grows.OBJECTS, name="EagerTensor", first=2_000, last=62_000)
    at, value = script(47), "(loss, outputs)"
    kept = KeptResult(at, "history", value, KeptValue.RESULT, each=True)
    return example(EXAMPLE_RESIDENT, counts, kept=KeptResults((kept,)))


def after(models: int) -> RunCalls:
    fit = MadeCall(call=RunCall.FIT, name="Model.fit", at=None, count=9, ms=9e4, models=models)
    return RunCalls((fit,), fits=9, epochs=9)


def cached(epochs: int) -> dict[str, Any]:
    program = Program(datasets=(Dataset(id=1, kind="_CacheDataset"),))
    return {"calls": RunCalls((), epochs=epochs), "program": program}


def counted(what: Grows, name: str = "", last: float = 90_000) -> Trend:
    return replace(TENSORS, what=what, name=name, last=last)


def resident(*counts: Trend, **more: Any) -> Verdict:
    return check(replace(RESIDENT, **more), *counts)


def filling(slope: float, *counts: Trend, **more: Any) -> Verdict:
    return check(replace(RESIDENT, slope=slope, low=slope / 2), *counts, **more)


healthy = described(
    "A list of losses grows by 3 MB in two minutes.",
    example,
    replace(EXAMPLE_RESIDENT, last=1.103e9, slope=25e3, low=2e4),
)
check = partial(example, phases=PHASES, seconds=100.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["no line is proved"] = check(RESIDENT, TENSORS)
    told["a tenth more, and less"] = resident(last=1.1e9), resident(last=1.0999e9)
    told["a list of losses that grows harmlessly"] = resident(last=1.003e9)
    told["it shrinks"] = resident(last=0.9e9)
    told["within what a large heap varies by"] = resident(first=10e9, last=10.49e9)
    told["memory that only warms up: a plateau, or no certain slope"] = resident(steady=False), resident(low=-1.0)
    told["less is enough where live objects grow along"] = resident(TENSORS, last=1.05e9)
    told[...] = resident(TENSORS, last=1.049e9), resident(last=1.05e9)
    told["most of the run loads data"] = check(RESIDENT, phases=replace(PHASES, once_ms=55_000.0))
    told[...] = check(RESIDENT, phases=replace(PHASES, once_ms=60_000.0))
    told["three models are left to tuning-loop"] = [check(RESIDENT, calls=after(models)) for models in (2, 3)]
    told["a short run still warms up"] = [check(RESIDENT, seconds=seconds) for seconds in (20.0, 19.0)]
    told["a shorter run is enough where a statement explains it"] = check(RESIDENT, TENSORS, seconds=8.0)
    told[...] = check(RESIDENT, TENSORS, seconds=8.0, kept=STATEMENT)
    told[...] = check(RESIDENT, TENSORS, seconds=7.9, kept=STATEMENT)
    told["a replay memory's pages become resident when written"] = [
        check(RESIDENT, reserved=replace(RESIDENT, what=Grows.RESERVED, first=6e9, last=6e9 + grown))
        for grown in (0.0, 0.1e9, 0.38e9)
    ]
    part = replace(PHASES, whole=False, missing="only its window was traced")
    memory = MemoryTrends((FillingMemory(trend=RESIDENT),))
    told["a window"] = applied(growing_memory, part, memory, RunGrowth((RESIDENT,), 100.0))
    told["full in about 2 h, in an hour, and in more than a day"] = filling(4e6), filling(9e6), filling(0.3e6)
    told["full within the planned run"] = filling(4e6, planned_s=8_000.0)
    told["it ran out"] = filling(4e6, ran_out=True)
    told["an unknown limit"] = filling(4e6, limit=None)
    told["a cache fills in the first epoch, and not in the second"] = [filling(4e6, **cached(n)) for n in (1, 2)]
    told["results of a program that trains nothing, unless live tensors grow along"] = filling(4e6, **PREDICTS)
    told[...] = filling(4e6, TENSORS, **PREDICTS)
    told["full within minutes: before savings, unless retracing ends it"] = filling(1e9, TENSORS)
    told[...] = filling(1e9, counted(Grows.FUNCTIONS))


@golden_cases
def test_remedies(told: Cases) -> None:
    for name in ("EagerTensor", "Functional", "Experience"):
        told[f"live {name} objects grow along"] = check(RESIDENT, counted(Grows.OBJECTS, name))
    for what in (Grows.GRAPH, Grows.FILES, Grows.BLOCKS):
        told[f"{what} grow along"] = check(RESIDENT, counted(what))
    told["functions that are traced again and again explain the blocks of Python"] = check(
        RESIDENT, counted(Grows.FUNCTIONS), counted(Grows.BLOCKS, last=2e6)
    )
    told["the statement that keeps results is the line"] = check(RESIDENT, *(), kept=STATEMENT)
    told[...] = check(RESIDENT, *(TENSORS,), kept=STATEMENT)
    told[...] = check(RESIDENT, *(counted(Grows.BLOCKS, TENSORS.name, 9e5),), kept=STATEMENT)
    told["what certainly grows a graph is changed before"] = check(RESIDENT, counted(Grows.GRAPH), kept=STATEMENT)
    two, other = (KEPT, replace(KEPT, container="more")), replace(KEPT, what=KeptValue.OTHER)
    history = replace(KEPT, what=KeptValue.HISTORY, fits=True)
    told["statements that are not the cause for certain are listed without a place"] = [
        check(RESIDENT, TENSORS, kept=KeptResults(kept)) for kept in (two, (other,), (history,))
    ]
    told["statements alone are no fault"] = check(replace(RESIDENT, last=1.003e9), kept=STATEMENT)
    at = Location("score.py", 9)
    call = MadeCall(call=RunCall.PREDICT, name="Model.predict", at=at, count=500, ms=4e4, looped=True)
    told["a loop of predict is named as a call"] = check(RESIDENT, calls=RunCalls((call,)))
