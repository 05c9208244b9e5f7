"""growing-memory: a leak, told from what warms up, levels off, is small or is what the run must keep."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.run import growing_memory

EXAMPLE_RESIDENT = Trend(
    what=Grows.RESIDENT, first=1.1e9, last=3.5e9, slope=2e7, low=1.9e7, high=2.1e7, steady=True, points=120
)  # fmt: skip

EXAMPLE_PHASES = RunPhases(total_ms=130e3, times={Phase.STEPS: 120e3, Phase.IMPORTS: 10e3}, once_ms=10e3)


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
    at, value = Location("train.py", 47), "(loss, outputs)"
    kept = KeptResult(at, "history", value, KeptValue.RESULT, each=True)
    return example(EXAMPLE_RESIDENT, counts, kept=KeptResults((kept,)))


def healthy() -> Verdict:
    """A list of losses grows by 3 MB in two minutes."""
    return example(replace(EXAMPLE_RESIDENT, last=1.103e9, slope=25e3, low=2e4, high=3e4))


RESIDENT = replace(EXAMPLE_RESIDENT, first=1e9, last=1.4e9, slope=4e6, low=3e6, high=5e6, points=100)
TENSORS = replace(RESIDENT, what=Grows.OBJECTS, name="EagerTensor", first=1_000, last=9_000)
PHASES = replace(EXAMPLE_PHASES, total_ms=110_000.0, times={Phase.STEPS: 100_000.0, Phase.IMPORTS: 10_000.0})
check = partial(example, phases=PHASES, seconds=100.0)

KEPT = KeptResult(Location("train.py", 47), "history", "loss", KeptValue.RESULT, each=True)
STATEMENT = KeptResults((KEPT,))


def after(models: int) -> RunCalls:
    fit = MadeCall(call=RunCall.FIT, name="Model.fit", at=None, count=9, ms=9e4, models=models)
    return RunCalls((fit,), fits=9, epochs=9)


def reserved(grown: float) -> Verdict:
    """A replay memory is made of zeros at the start, and each of its pages becomes resident when it is written."""
    return check(RESIDENT, reserved=replace(RESIDENT, what=Grows.RESERVED, first=6e9, last=6e9 + grown))


test_both_sides_of_each_limit = each_is(
    (check(RESIDENT), Finding),
    (check(replace(RESIDENT, last=1.1e9)), Finding),
    (check(replace(RESIDENT, last=1.0999e9)), Healthy),
    # Trap: a list of losses that grows harmlessly
    (check(replace(RESIDENT, last=1.003e9)), Healthy, "Resident memory grew by 3 MB in 100 s, which is little"),
    (check(replace(RESIDENT, last=0.9e9)), Healthy, "did not grow"),
    (check(replace(RESIDENT, first=10e9, last=10.49e9)), Healthy),  # within what a large heap varies by
    (check(replace(RESIDENT, steady=False)), Healthy),  # trap: memory that only warms up has a plateau
    (check(replace(RESIDENT, low=-1.0)), Healthy),
    (check(replace(RESIDENT, last=1.05e9), TENSORS), Finding),  # less is enough where live objects grow along
    (check(replace(RESIDENT, last=1.049e9), TENSORS), Healthy),
    (check(replace(RESIDENT, last=1.05e9)), Healthy),
    (check(RESIDENT, phases=replace(PHASES, once_ms=55_000.0)), Finding),
    (check(RESIDENT, phases=replace(PHASES, once_ms=60_000.0)), NotApplicable),  # most of the run loads data
    (check(RESIDENT, calls=after(2)), Finding),
    (check(RESIDENT, calls=after(3)), NotApplicable),  # models one after another: left to tuning-loop
    (check(RESIDENT, seconds=20.0), Finding),
    (check(RESIDENT, seconds=19.0), NotApplicable),  # a short run still warms up
    (check(RESIDENT, TENSORS, seconds=8.0), NotApplicable),
    (check(RESIDENT, TENSORS, seconds=8.0, kept=STATEMENT), Finding),  # that a statement explains
    (check(RESIDENT, TENSORS, seconds=7.9, kept=STATEMENT), NotApplicable),
    (reserved(0.0), Healthy, "where memory was reserved before"),
    (reserved(0.1e9), Healthy, "where memory was reserved before"),
    (reserved(0.38e9), Finding),
)

PREDICTS = {"phases": replace(PHASES, times={Phase.PREDICTION: 100_000.0, Phase.IMPORTS: 10_000.0})}


def cached(epochs: int) -> dict[str, Any]:
    program = Program(datasets=(Dataset(id=1, kind="_CacheDataset"),))
    return {"calls": RunCalls((), epochs=epochs), "program": program}


@pytest.mark.parametrize(
    ("severity", "slope", "counts", "more"),
    [
        (Severity.WARNING, 4e6, (), {}),  # full in about 2 h
        (Severity.CRITICAL, 4e6, (), {"planned_s": 8_000.0}),  # within the planned run
        (Severity.CRITICAL, 9e6, (), {}),  # within an hour
        (Severity.CRITICAL, 4e6, (), {"ran_out": True}),
        (Severity.NOTE, 0.3e6, (), {}),  # in more than a day
        (Severity.NOTE, 4e6, (), {"limit": None}),
        (Severity.NOTE, 4e6, (), cached(1)),  # a cache fills in the first epoch
        (Severity.WARNING, 4e6, (), cached(2)),
        (Severity.NOTE, 4e6, (), PREDICTS),  # results of a program that trains nothing
        (Severity.WARNING, 4e6, (TENSORS,), PREDICTS),
    ],
)
def test_the_severity_follows_when_memory_is_full(
    severity: Severity, slope: float, counts: tuple[Trend, ...], more: dict[str, Any]
) -> None:
    trend = replace(RESIDENT, slope=slope, low=slope / 2)
    assert as_finding(check(trend, *counts, **more)).severity is severity


def test_the_end_is_told() -> None:
    finding = as_finding(check(RESIDENT, TENSORS))
    assert finding.summary == (
        "Resident memory grew from 1 GB to 1.4 GB in 100 s, which fills 32 GB in about 2 h; "
        "live EagerTensor objects grew from 1,000 to 9,000"
    )
    assert finding.concern is Concern.RUN
    assert finding.at is None  # no line is proved
    assert "ran out" in as_finding(check(RESIDENT, ran_out=True)).summary


def counted(what: Grows, name: str = "", last: float = 90_000) -> Trend:
    return replace(TENSORS, what=what, name=name, last=last)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([counted(Grows.OBJECTS, "EagerTensor")], "not the tensors"),
        ([counted(Grows.OBJECTS, "Functional")], "Forget each model"),
        ([counted(Grows.GRAPH)], "all operations once"),
        ([counted(Grows.FILES)], "Close the files"),
        ([counted(Grows.BLOCKS)], "Keep numbers"),
        ([counted(Grows.OBJECTS, "Experience")], "Find the line"),
        # Graphs that are traced again and again explain the blocks of Python
        ([counted(Grows.FUNCTIONS), counted(Grows.BLOCKS, last=2e6)], "Trace each tf.function once"),
    ],
)
def test_the_remedy_follows_what_grows_along(counts: list[Trend], words: str) -> None:
    actions = [remedy.action for remedy in as_finding(check(RESIDENT, *counts)).remedies]
    assert words in actions[0]
    assert len(actions) == (2 if words == "Keep numbers" else 1)


@pytest.mark.parametrize("counts", [(), (TENSORS,), (counted(Grows.BLOCKS, TENSORS.name, 9e5),)])
def test_the_statement_that_keeps_results_is_the_line(counts: tuple[Trend, ...]) -> None:
    finding = as_finding(check(RESIDENT, *counts, kept=STATEMENT))
    (remedy,) = finding.remedies
    assert finding.at == remedy.at == KEPT.at
    assert finding.summary.endswith("; train.py:47 adds loss to history in each step")
    assert "Keep numbers" in remedy.action
    assert table(finding).rows == ((KEPT.at, "loss", "history"),)


def test_what_certainly_grows_a_graph_is_changed_before() -> None:
    finding = as_finding(check(RESIDENT, counted(Grows.GRAPH), kept=STATEMENT))
    assert "all operations once" in finding.remedies[0].action
    assert "Keep numbers" in finding.remedies[1].action


@pytest.mark.parametrize(
    "statements",
    [
        (KEPT, replace(KEPT, container="more")),
        (replace(KEPT, what=KeptValue.OTHER),),
        (replace(KEPT, what=KeptValue.HISTORY, fits=True),),
    ],
)
def test_statements_that_are_not_the_cause_for_certain_are_listed_without_a_place(
    statements: tuple[KeptResult, ...],
) -> None:
    finding = as_finding(check(RESIDENT, TENSORS, kept=KeptResults(statements)))
    assert finding.at is None
    assert "adds" not in finding.summary
    assert len(table(finding).rows) == len(statements)


def test_statements_alone_make_no_finding() -> None:
    small = replace(RESIDENT, last=1.003e9)
    assert check(small, kept=STATEMENT) == check(small)


@pytest.mark.parametrize(
    ("slope", "count", "failure"),
    [
        (9e6, TENSORS, RunFailure.AHEAD),  # within an hour: before savings
        (4e6, TENSORS, RunFailure.NONE),
        (1e9, TENSORS, RunFailure.AHEAD),
        (1e9, counted(Grows.FUNCTIONS), RunFailure.NONE),  # what traced functions hold is retracing's to end
    ],
)
def test_memory_that_is_full_within_an_hour_is_a_failure_ahead(
    slope: float, count: Trend, failure: RunFailure
) -> None:
    assert as_finding(check(replace(RESIDENT, slope=slope, low=slope / 2), count)).failure is failure


def test_a_loop_of_predict_is_named_as_a_call() -> None:
    at = Location("score.py", 9)
    call = MadeCall(call=RunCall.PREDICT, name="Model.predict", at=at, count=500, ms=4e4, looped=True)
    assert as_finding(check(RESIDENT, calls=RunCalls((call,)))).remedies[0].at == at


def test_a_window_is_not_judged() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    memory = MemoryTrends((FillingMemory(trend=RESIDENT),))
    verdict = applied(growing_memory, part, memory, RunGrowth((RESIDENT,), 100.0))
    assert verdict == NotApplicable(reason=part.missing)
