"""Memory that grows, counts that grow along, and statements that keep what they are given."""

from tests.facts.kit import *
from tfdoctor.facts.growth.memory_trends import LEAST, about_span, clause, counts_table, growing_counts, kept_table

RESIDENT = Trend(what=Grows.RESIDENT, first=1e9, last=2e9, slope=1e7, low=9e6, steady=True)
DEVICE = replace(RESIDENT, what=Grows.DEVICE, last=9e9)
ENDING = RunEnding(kind=EndKind.EXIT, limit_bytes=32e9)
FULL = replace(ENDING, kind=EndKind.OUT_OF_MEMORY)
GPU = DeviceMemory((Allocator("GPU_0_bfc", 16e9, 9e9),))
told = Told()


def memories(*trends: Trend, ending: Any = ENDING, device: Any = GPU, calls: Any = None) -> Sequence[FillingMemory]:
    return MemoryTrends.measure(RunGrowth(trends, 100.0), ending, device, calls).memories


def planned(epochs: int, planned: int | None) -> object:
    return memories(RESIDENT, device=None, calls=RunCalls((), epochs=epochs, planned_epochs=planned))


told[memories] = {"each memory has its own limit": (DEVICE, RESIDENT)}
told.add("a limit may be unknown", lambda: memories(RESIDENT, ending=None, device=None))
told[lambda allocator: memories(DEVICE, RESIDENT, ending=replace(FULL, allocator=allocator))] = {
    "the run's memory ran out": "",
    "the device's did": "GPU_0_bfc",
}
told[planned] = {
    "a plan tells how long the run goes on": (2, 10),
    "at its end": (10, 10),
    "before the first epoch it does not": (0, 10),
    "nor without a plan": (2, None),
}


@given(st.floats(1.0, 1e12), st.floats(1.0, 1e12), st.floats(1.0, 1e9))
def test_a_faster_growth_is_never_less_severe(limit: float, last: float, slope: float) -> None:
    slow = FillingMemory(trend=replace(RESIDENT, last=last, slope=slope), limit=limit)
    fast = FillingMemory(trend=replace(RESIDENT, last=last, slope=2 * slope), limit=limit)
    assert fast.severity >= slow.severity
    assert fast.left_s is not None
    assert fast.left_s >= 0


GRAPH = replace(RESIDENT, what=Grows.GRAPH, first=100, last=1_300, slope=4, low=3, over_steps=100)


def growing(*trends: Trend) -> tuple[Trend, ...]:
    return growing_counts(RunGrowth(trends, 100.0))


def test_counts_come_in_the_order_in_which_they_explain() -> None:
    objects = replace(GRAPH, what=Grows.OBJECTS, name="Tensor")
    blocks = replace(GRAPH, what=Grows.BLOCKS, last=90_000)
    lists = replace(objects, name="builtins.list", slope=9)
    resident = replace(GRAPH, what=Grows.RESIDENT, last=1e9)
    assert growing(resident, blocks, lists, objects, GRAPH) == (GRAPH, objects, lists, blocks)


@each(*LEAST)
def test_both_sides_of_the_least_growth(what: Grows) -> None:
    at = replace(GRAPH, what=what, first=0, last=LEAST[what], over_steps=0)
    assert growing(at, replace(at, last=LEAST[what] - 1)) == (at,)


def test_what_does_not_certainly_grow_is_left_out() -> None:
    uneven = replace(GRAPH, low=-1.0)  # of operations and traced functions there is no noise
    assert growing(uneven, replace(uneven, what=Grows.FILES)) == (uneven,)
    assert growing(replace(GRAPH, steady=False), replace(GRAPH, first=12_100, last=13_300)) == ()
    assert growing_counts(None) == ()


def test_blocks_are_compared_with_the_steps() -> None:
    few = replace(GRAPH, what=Grows.BLOCKS, first=1e6, last=1e6 + 49_000, over_steps=100_000)
    blocks = replace(few, last=1e6 + 50_000)
    assert growing(few, blocks, replace(blocks, over_steps=0)) == (blocks,)


AT = Location("train.py", 47)
LOSSES = KeptResult(AT, "history", "(loss, z)", KeptValue.RESULT, each=True)
OTHER = KeptResult(Location("train.py", 12), "memory", "transition")
MODEL = KeptResult(Location("train.py", 60), "models", "model", KeptValue.MODEL, fits=True)
HISTORY = KeptResult(Location("train.py", 61), "runs", "run", KeptValue.HISTORY, fits=True, each=True)


def test_statements_become_places_in_the_order_of_lines(tmp_path: Path) -> None:
    """The log is read as the agent writes it, but for a statement without a line."""
    kept: dict[str, Any] = {
        "kind": "kept",
        "at": [f"{FOLDER}/train.py", 47],
        "container": "history",
        "value": "(loss, z)",
    }
    kept |= {"what": "result", "fits": False, "each": True}
    lines = {"kind": "process", "pid": 7}, kept, {"kind": "kept", "container": "no line"}
    (tmp_path / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = Run()
    run.python(1.0)
    log = sure(run_log(tmp_path, Notes()))
    assert len(log.kept) == 1
    run.kept = [*log.kept, KeptStatement((f"{FOLDER}/train.py", 12), "memory", "transition")]
    assert KeptResults.measure(run.recording()) == KeptResults((OTHER, LOSSES))


test_what_is_not_known = unavailable(
    (memories, "too short"), (lambda: KeptResults.measure(recording()), "not recorded")
)


def only(*statements: KeptResult) -> object:
    kept = KeptResults(statements)
    return kept.only(KeptValue.RESULT), kept.only(KeptValue.HISTORY, KeptValue.MODEL, fits=True)


test_one_is_named_only_if_it_is_the_only_one = answers(
    only,
    ((None, None),),
    (OTHER, (None, None)),
    (LOSSES, OTHER, (LOSSES, None)),
    (LOSSES, KeptResult(AT, "more", "z", KeptValue.RESULT), (None, None)),
    (MODEL, LOSSES, (LOSSES, MODEL)),
    (HISTORY, (None, HISTORY)),
    (MODEL, HISTORY, (None, None)),
    (KeptResult(AT, "x", "y", KeptValue.RESULT, fits=True), (None, None)),
)

told[lambda said: said] = {
    **{f"a statement that keeps {one.value}": one.clause for one in (LOSSES, OTHER, MODEL, HISTORY)},
    "a graph that grows": clause(GRAPH),
    "over no steps": clause(replace(GRAPH, over_steps=0)),
    **{
        f"{what} that grow": clause(replace(GRAPH, what=what, name="Tensor"))
        for what in (Grows.FUNCTIONS, Grows.OBJECTS, Grows.BLOCKS, Grows.FILES)
    },
    "spans": ", ".join(map(about_span, (9, 150, 2_400, 10_800, 432_000))),
}

test_memory_trends = told.test("memory_trends")


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
