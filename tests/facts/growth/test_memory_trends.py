"""Memory that grows, counts that grow along, and statements that keep what they are given."""

import json

from tests.facts.kit import *
from tests.run_logs import FOLDER
from tfdoctor.facts.growth.memory_trends import LEAST, about_span, clause, counts_table, growing_counts, kept_table
from tfdoctor.recording.files import run_log

RESIDENT = Trend(what=Grows.RESIDENT, first=1e9, last=2e9, slope=1e7, low=9e6, high=2e7, steady=True, points=100)

DEVICE = replace(RESIDENT, what=Grows.DEVICE, last=9e9)

ENDING = RunEnding(kind=EndKind.EXIT, limit_bytes=32e9)

GPU = DeviceMemory((Allocator("GPU_0_bfc", 16e9, 9e9),))


def memories(
    *trends: Trend,
    ending: RunEnding | None = ENDING,
    device: DeviceMemory | None = GPU,
    calls: RunCalls | None = None,
) -> tuple[FillingMemory, ...]:
    return MemoryTrends.measure(RunGrowth(trends, 100.0), ending, device, calls).memories


def test_each_memory_has_its_own_limit() -> None:
    resident, device = memories(DEVICE, RESIDENT)
    assert (resident.trend, resident.limit, resident.left_s) == (RESIDENT, 32e9, 3_000.0)
    assert (device.trend, device.limit, device.left_s) == (DEVICE, 16e9, 700.0)
    (unknown,) = memories(RESIDENT, ending=None, device=None)
    assert (unknown.left_s, unknown.end, unknown.severity) == (None, "", Severity.NOTE)


@cases(("", [True, False]), ("GPU_0_bfc", [False, True]))
def test_the_memory_that_ran_out_is_told(allocator: str, out: list[bool]) -> None:
    ending = replace(ENDING, kind=EndKind.OUT_OF_MEMORY, allocator=allocator)
    assert [memory.ran_out for memory in memories(DEVICE, RESIDENT, ending=ending)] == out


@cases((2, 10, 400.0), (10, 10, 0.0), (0, 10, 0.0), (2, None, 0.0))
def test_a_plan_tells_how_long_the_run_goes_on(epochs: int, planned: int | None, expected: float) -> None:
    (memory,) = memories(RESIDENT, device=None, calls=RunCalls((), epochs=epochs, planned_epochs=planned))
    assert memory.planned_s == expected


@given(st.floats(1.0, 1e12), st.floats(1.0, 1e12), st.floats(1.0, 1e9))
def test_a_faster_growth_is_never_less_severe(limit: float, last: float, slope: float) -> None:
    slow = FillingMemory(trend=replace(RESIDENT, last=last, slope=slope), limit=limit)
    fast = FillingMemory(trend=replace(RESIDENT, last=last, slope=2 * slope), limit=limit)
    assert fast.severity >= slow.severity
    assert fast.left_s is not None
    assert fast.left_s >= 0


GRAPH = Trend(
    what=Grows.GRAPH, first=100, last=1_300, slope=4, low=3, high=5, steady=True, points=90, over_steps=100
)  # fmt: skip


def growing(*trends: Trend) -> tuple[Trend, ...]:
    return growing_counts(RunGrowth(trends, 100.0))


def test_counts_come_in_the_order_in_which_they_explain() -> None:
    objects = replace(GRAPH, what=Grows.OBJECTS, name="Tensor")
    blocks = replace(GRAPH, what=Grows.BLOCKS, last=90_000)
    lists = replace(objects, name="builtins.list", slope=9)
    resident = replace(GRAPH, what=Grows.RESIDENT, last=1e9)
    assert growing(resident, blocks, lists, objects, GRAPH) == (GRAPH, objects, lists, blocks)


@pytest.mark.parametrize("what", LEAST)
def test_both_sides_of_the_least_growth(what: Grows) -> None:
    at = replace(GRAPH, what=what, first=0, last=LEAST[what], over_steps=0)
    assert growing(at, replace(at, last=LEAST[what] - 1)) == (at,)


def test_what_does_not_certainly_grow_is_left_out() -> None:
    uneven = replace(GRAPH, low=-1.0)  # of operations and traced functions there is no noise
    assert growing(uneven, replace(uneven, what=Grows.FILES)) == (uneven,)
    assert growing(replace(GRAPH, steady=False), replace(GRAPH, first=12_100, last=13_300)) == ()
    assert growing_counts(None) == ()


@cases((50_000, True), (49_000, False))
def test_blocks_are_compared_with_the_steps(grown: int, *, named: bool) -> None:
    blocks = replace(GRAPH, what=Grows.BLOCKS, first=1e6, last=1e6 + grown, over_steps=100_000)
    assert bool(growing(blocks)) is named
    assert growing(replace(blocks, over_steps=0)) == ()


AT = Location("train.py", 47)
LOSSES = KeptResult(AT, "history", "(loss, z)", KeptValue.RESULT, each=True)
OTHER = KeptResult(Location("train.py", 12), "memory", "transition")
MODEL = KeptResult(Location("train.py", 60), "models", "model", KeptValue.MODEL, fits=True)
HISTORY = KeptResult(Location("train.py", 61), "runs", "run", KeptValue.HISTORY, fits=True, each=True)


def test_statements_become_places_in_the_order_of_lines() -> None:
    run = Run()
    run.python(1.0)
    run.kept = [
        KeptStatement((f"{FOLDER}/train.py", 47), "history", "(loss, z)", KeptValue.RESULT, each=True),
        KeptStatement((f"{FOLDER}/train.py", 12), "memory", "transition"),
    ]
    assert KeptResults.measure(run.recording()) == KeptResults((OTHER, LOSSES))


test_what_is_not_known = unavailable(
    (memories, "too short"), (lambda: KeptResults.measure(recording()), "not recorded")
)


def test_the_log_is_read_as_the_agent_writes_it(tmp_path: Path) -> None:
    lines = (
        {"kind": "process", "pid": 7},
        {"kind": "kept", "at": ["/p/train.py", 47], "container": "history", "value": "(loss, z)",
         "what": "result", "fits": False, "each": True},
        {"kind": "kept", "container": "no line"},
    )  # fmt: skip
    (tmp_path / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    log = run_log(tmp_path, Notes())
    assert log is not None
    assert log.kept == (KeptStatement(("/p/train.py", 47), "history", "(loss, z)", KeptValue.RESULT, each=True),)


@cases(
    ((), None, None),
    ((OTHER,), None, None),
    ((LOSSES, OTHER), LOSSES, None),
    ((LOSSES, KeptResult(AT, "more", "z", KeptValue.RESULT)), None, None),
    ((MODEL, LOSSES), LOSSES, MODEL),
    ((HISTORY,), None, HISTORY),
    ((MODEL, HISTORY), None, None),
    ((KeptResult(AT, "x", "y", KeptValue.RESULT, fits=True),), None, None),
)
def test_one_is_named_only_if_it_is_the_only_one(
    statements: tuple[KeptResult, ...], of_steps: KeptResult | None, of_fits: KeptResult | None
) -> None:
    kept = KeptResults(statements)
    assert (kept.of_steps, kept.of_fits) == (of_steps, of_fits)


@cases(
    (LOSSES.clause, "train.py:47 adds (loss, z) to history in each step"),
    (OTHER.clause, "train.py:12 adds transition to memory in the loop"),
    (MODEL.clause, "train.py:60 adds model to models in the loop"),
    (HISTORY.clause, "train.py:61 adds run, which holds the model, to runs after each fit"),
    (clause(GRAPH), "the default graph grew by 12 operations a step"),
    (clause(replace(GRAPH, over_steps=0)), "the default graph grew from 100 to 1,300 operations"),
    (clause(replace(GRAPH, what=Grows.FUNCTIONS)), "1,200 functions were traced meanwhile"),
    (clause(replace(GRAPH, what=Grows.OBJECTS, name="Tensor")), "live Tensor objects grew from 100 to 1,300"),
    (clause(replace(GRAPH, what=Grows.BLOCKS)), "Python kept 12 memory blocks more a step"),
    (clause(replace(GRAPH, what=Grows.FILES)), "open files grew from 100 to 1,300"),
    *zip(map(about_span, (9, 150, 2_400, 10_800)), ("9.00 s", "2 min", "40 min", "3 h"), strict=True),
    (about_span(432_000), "5 days"),
)
def test_what_grows_and_what_keeps_it_in_words(said: str, words: str) -> None:
    assert said == words


def test_the_table_has_three_rows_at_most_and_a_place_for_the_named_one_alone() -> None:
    kept = KeptResults((OTHER, OTHER, LOSSES, HISTORY))
    (table,) = kept_table(kept, LOSSES)
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [AT, "train.py:61", "train.py:12"]
    (without,) = kept_table(kept, None)
    finding = Finding(summary="", evidence=(without,), remedies=(Remedy("Change it"),), severity=Severity.NOTE)
    assert finding.at is None
    assert kept_table(KeptResults(()), None) == kept_table(None, None) == counts_table(()) == ()
    assert len(counts_table((GRAPH,))[0].rows) == 1
