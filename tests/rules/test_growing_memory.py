"""growing-memory: a leak, told from what warms up, levels off, is small or is what the run must keep."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.applied import applied
from tests.rules.cases.growing_memory import example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.growth.memory_trends import FillingMemory, KeptResult, KeptResults, MemoryTrends
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.rules import growing_memory
from tfdoctor.terms.kinds import KeptValue, Phase, RunCall
from tfdoctor.terms.verdict import Concern, Finding, Healthy, Location, NotApplicable, RunFailure, Severity, Table

RESIDENT = Trend(
    what=Grows.RESIDENT, first=1e9, last=1.4e9, slope=4e6, low=3e6, high=5e6, steady=True, points=100
)  # fmt: skip

TENSORS = replace(RESIDENT, what=Grows.OBJECTS, name="EagerTensor", first=1_000, last=9_000)

PHASES = RunPhases(total_ms=110_000.0, times={Phase.STEPS: 100_000.0, Phase.IMPORTS: 10_000.0}, once_ms=10_000.0)


check = partial(example, phases=PHASES, seconds=100.0)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, Finding),
        ({"last": 1.1e9}, Finding),
        ({"last": 1.0999e9}, Healthy),
        ({"last": 1.003e9}, Healthy),  # trap: a list of losses that grows harmlessly
        ({"first": 10e9, "last": 10.49e9}, Healthy),  # within what a large heap varies by
        ({"steady": False}, Healthy),  # trap: memory that only warms up has a plateau
        ({"low": -1.0}, Healthy),
    ],
)
def test_both_sides_of_each_limit(changes: dict[str, Any], kind: type) -> None:
    assert isinstance(check(replace(RESIDENT, **changes)), kind)


@pytest.mark.parametrize(("grown", "kind"), [(50e6, Finding), (49e6, Healthy)])
def test_less_is_enough_where_live_objects_grow_along(grown: float, kind: type) -> None:
    small = replace(RESIDENT, last=1e9 + grown)
    assert isinstance(check(small, TENSORS), kind)
    assert isinstance(check(small), Healthy)


@pytest.mark.parametrize(
    ("slope", "planned_s", "limit", "severity"),
    [
        (4e6, 0.0, 32e9, Severity.WARNING),  # in about 2 h
        (4e6, 8_000.0, 32e9, Severity.CRITICAL),  # within the planned run
        (9e6, 0.0, 32e9, Severity.CRITICAL),  # within an hour
        (0.3e6, 0.0, 32e9, Severity.NOTE),  # in more than a day
        (4e6, 0.0, None, Severity.NOTE),
    ],
)
def test_the_severity_follows_when_memory_is_full(
    slope: float, planned_s: float, limit: float | None, severity: Severity
) -> None:
    trend = replace(RESIDENT, slope=slope, low=slope / 2)
    assert as_finding(check(trend, planned_s=planned_s, limit=limit)).severity is severity


def test_the_end_is_told() -> None:
    finding = as_finding(check(RESIDENT, TENSORS))
    assert finding.summary == (
        "Resident memory grew from 1 GB to 1.4 GB in 100 s, which fills 32 GB in about 2 h; "
        "live EagerTensor objects grew from 1,000 to 9,000"
    )
    assert finding.concern is Concern.RUN
    assert finding.at is None  # no line is proved
    assert "ran out" in as_finding(check(RESIDENT, ran_out=True)).summary
    assert as_finding(check(RESIDENT, ran_out=True)).severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("what", "name", "words"),
    [
        (Grows.OBJECTS, "EagerTensor", "not the tensors"),
        (Grows.OBJECTS, "Functional", "Forget each model"),
        (Grows.GRAPH, "", "all operations once"),
        (Grows.FUNCTIONS, "", "tf.function once"),
        (Grows.FILES, "", "Close the files"),
        (Grows.BLOCKS, "", "Keep numbers"),
        (Grows.OBJECTS, "Experience", "Find the line"),
    ],
)
def test_the_remedy_follows_what_grows_along(what: Grows, name: str, words: str) -> None:
    counts = replace(TENSORS, what=what, name=name, last=90_000)
    assert words in as_finding(check(RESIDENT, counts)).remedies[0].action


def test_graphs_that_are_traced_again_and_again_explain_the_blocks_of_python() -> None:
    functions = replace(TENSORS, what=Grows.FUNCTIONS, name="", first=46, last=138)
    blocks = replace(TENSORS, what=Grows.BLOCKS, name="", first=1e6, last=2e6)
    (remedy,) = as_finding(check(RESIDENT, functions, blocks)).remedies
    assert remedy.action == "Trace each tf.function once"


KEPT = KeptResult(Location("train.py", 47), "history", "loss", KeptValue.RESULT, each=True)


@pytest.mark.parametrize("counts", [(), (TENSORS,), (replace(TENSORS, what=Grows.BLOCKS, last=9e5),)])
def test_the_statement_that_keeps_results_is_the_line(counts: tuple[Trend, ...]) -> None:
    finding = as_finding(check(RESIDENT, *counts, kept=KeptResults((KEPT,))))
    assert finding.at == finding.remedies[0].at == KEPT.at
    assert finding.summary.endswith("; train.py:47 adds loss to history in each step")
    assert "Keep numbers" in finding.remedies[0].action
    assert len(finding.remedies) == 1
    table = finding.evidence[-1]
    assert isinstance(table, Table)
    assert table.rows == ((KEPT.at, "loss", "history"),)


def test_what_certainly_grows_a_graph_is_changed_before() -> None:
    graph = replace(TENSORS, what=Grows.GRAPH, name="", last=90_000)
    finding = as_finding(check(RESIDENT, graph, kept=KeptResults((KEPT,))))
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
    table = finding.evidence[-1]
    assert isinstance(table, Table)
    assert len(table.rows) == len(statements)


def test_statements_alone_make_no_finding() -> None:
    small = replace(RESIDENT, last=1.003e9)
    assert check(small, kept=KeptResults((KEPT,))) == check(small)


@pytest.mark.parametrize(("slope", "failure"), [(9e6, RunFailure.AHEAD), (4e6, RunFailure.NONE)])
def test_memory_that_is_full_within_an_hour_comes_before_savings(slope: float, failure: RunFailure) -> None:
    assert as_finding(check(replace(RESIDENT, slope=slope))).failure is failure


def test_a_loop_of_predict_is_named_as_a_call() -> None:
    at = Location("score.py", 9)
    call = MadeCall(call=RunCall.PREDICT, name="Model.predict", at=at, count=500, ms=4e4, looped=True)
    assert as_finding(check(RESIDENT, calls=RunCalls((call,)))).remedies[0].at == at


@pytest.mark.parametrize(("epochs", "severity"), [(1, Severity.NOTE), (2, Severity.WARNING)])
def test_a_cache_that_fills_in_the_first_epoch_is_a_note(epochs: int, severity: Severity) -> None:
    program = Program(datasets=(Dataset(id=1, kind="_CacheDataset"),))
    finding = as_finding(check(RESIDENT, calls=RunCalls((), epochs=epochs), program=program))
    assert finding.severity is severity


@pytest.mark.parametrize(("counts", "severity"), [((), Severity.NOTE), ((TENSORS,), Severity.WARNING)])
def test_results_of_a_program_that_trains_nothing_are_a_note(counts: tuple[Trend, ...], severity: Severity) -> None:
    phases = replace(PHASES, times={Phase.PREDICTION: 100_000.0, Phase.IMPORTS: 10_000.0})
    assert as_finding(check(RESIDENT, *counts, phases=phases)).severity is severity


def test_nothing_is_judged_where_most_of_the_run_loads_data() -> None:
    loading = replace(PHASES, once_ms=60_000.0)
    assert isinstance(check(RESIDENT, phases=loading), NotApplicable)
    assert isinstance(check(RESIDENT, phases=replace(PHASES, once_ms=55_000.0)), Finding)


@pytest.mark.parametrize(("models", "kind"), [(3, NotApplicable), (2, Finding)])
def test_models_built_one_after_another_are_left_to_tuning_loop(models: int, kind: type) -> None:
    fit = MadeCall(call=RunCall.FIT, name="Model.fit", at=None, count=9, ms=9e4, models=models)
    assert isinstance(check(RESIDENT, calls=RunCalls((fit,), fits=9, epochs=9)), kind)


MEMORY = MemoryTrends((FillingMemory(trend=RESIDENT),))


def test_a_window_is_not_judged() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    assert applied(growing_memory, part, MEMORY, RunGrowth((RESIDENT,), 100.0)) == NotApplicable(
        reason="only its window was traced"
    )


def test_healthy_states_the_growth() -> None:
    small = as_healthy(check(replace(RESIDENT, last=1.003e9)))
    assert small.summary == "Resident memory grew by 3 MB in 100 s, which is little"
    assert "did not grow" in as_healthy(check(replace(RESIDENT, last=0.9e9))).summary


@pytest.mark.parametrize(("seconds", "kind"), [(20.0, Finding), (19.0, NotApplicable)])
def test_a_short_run_still_warms_up(seconds: float, kind: type) -> None:
    assert isinstance(check(RESIDENT, seconds=seconds), kind)


@pytest.mark.parametrize(("seconds", "kind"), [(8.0, Finding), (7.9, NotApplicable)])
def test_a_statement_that_keeps_results_explains_growth_in_a_short_run(seconds: float, kind: type) -> None:
    kept = KeptResults((KEPT,))
    assert isinstance(check(RESIDENT, TENSORS, seconds=seconds, kept=kept), kind)
    assert isinstance(check(RESIDENT, TENSORS, seconds=seconds), NotApplicable)


def test_memory_that_traced_functions_hold_is_retracings_to_end() -> None:
    functions = replace(RESIDENT, what=Grows.FUNCTIONS, first=10, last=400)
    critical = replace(RESIDENT, slope=1e9, low=0.9e9, high=1.1e9)
    assert as_finding(check(critical, TENSORS)).failure is RunFailure.AHEAD
    assert as_finding(check(critical, functions)).failure is RunFailure.NONE


@pytest.mark.parametrize(("grown", "kind"), [(0.0, Healthy), (0.1e9, Healthy), (0.38e9, Finding)])
def test_memory_that_was_reserved_before_is_no_leak(grown: float, kind: type) -> None:
    """A replay memory is made of zeros at the start, and each of its pages becomes resident when it is written."""
    reserved = replace(RESIDENT, what=Grows.RESERVED, first=6e9, last=6e9 + grown)
    found = check(RESIDENT, reserved=reserved)
    assert isinstance(found, kind)
    if isinstance(found, Healthy):
        assert "where memory was reserved before" in found.summary
