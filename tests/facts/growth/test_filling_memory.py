"""MemoryTrends: which memory grows, and when it would be full."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.growth.memory_trends import FillingMemory, MemoryTrends, about_span
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.terms.verdict import Severity

RESIDENT = Trend(what=Grows.RESIDENT, first=1e9, last=2e9, slope=1e7, low=9e6, high=2e7, steady=True, points=100)

DEVICE = replace(RESIDENT, what=Grows.DEVICE, last=9e9)

ENDING = RunEnding(kind=EndKind.EXIT, limit_bytes=32e9)

GPU = DeviceMemory((Allocator("GPU_0_bfc", 16e9, 9e9),))


def test_each_memory_has_its_own_limit() -> None:
    resident, device = MemoryTrends.measure(RunGrowth((DEVICE, RESIDENT), 100.0), ENDING, GPU, None).memories
    assert (resident.trend, resident.limit, resident.left_s) == (RESIDENT, 32e9, 3_000.0)
    assert (device.trend, device.limit, device.left_s) == (DEVICE, 16e9, 700.0)


def test_an_unknown_limit_has_no_end() -> None:
    (memory,) = MemoryTrends.measure(RunGrowth((RESIDENT,), 100.0), None, None, None).memories
    assert (memory.left_s, memory.end, memory.severity) == (None, "", Severity.NOTE)


@pytest.mark.parametrize(("allocator", "out"), [("", [True, False]), ("GPU_0_bfc", [False, True])])
def test_the_memory_that_ran_out_is_told(allocator: str, out: list[bool]) -> None:
    ending = replace(ENDING, kind=EndKind.OUT_OF_MEMORY, allocator=allocator)
    trends = MemoryTrends.measure(RunGrowth((DEVICE, RESIDENT), 100.0), ending, GPU, None)
    assert [memory.ran_out for memory in trends.memories] == out


@pytest.mark.parametrize(
    ("epochs", "planned", "expected"), [(2, 10, 400.0), (10, 10, 0.0), (0, 10, 0.0), (2, None, 0.0)]
)
def test_a_plan_tells_how_long_the_run_goes_on(epochs: int, planned: int | None, expected: float) -> None:
    calls = RunCalls((), epochs=epochs, planned_epochs=planned)
    (memory,) = MemoryTrends.measure(RunGrowth((RESIDENT,), 100.0), ENDING, None, calls).memories
    assert memory.planned_s == expected


def test_without_a_trend_of_memory_it_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="too short"):
        MemoryTrends.measure(RunGrowth((), 2.0), ENDING, GPU, None)


@given(st.floats(1.0, 1e12), st.floats(1.0, 1e12), st.floats(1.0, 1e9))
def test_a_faster_growth_is_never_less_severe(limit: float, last: float, slope: float) -> None:
    slow = FillingMemory(trend=replace(RESIDENT, last=last, slope=slope), limit=limit)
    fast = FillingMemory(trend=replace(RESIDENT, last=last, slope=2 * slope), limit=limit)
    assert fast.severity >= slow.severity
    assert fast.left_s is not None
    assert fast.left_s >= 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9.0, "9.00 s"), (150.0, "2 min"), (2_400.0, "40 min"), (10_800.0, "3 h"), (432_000.0, "5 days")],
)
def test_spans_are_told_in_their_own_unit(seconds: float, words: str) -> None:
    assert about_span(seconds) == words
