"""What grows along: counts that certainly grow, by enough, in words."""

from dataclasses import replace

import pytest

from tfdoctor.facts.growth.memory_trends import LEAST, clause, counts_table, growing_counts
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend

GRAPH = Trend(
    what=Grows.GRAPH, first=100, last=1_300, slope=4, low=3, high=5, steady=True, points=90, over_steps=100
)  # fmt: skip


def test_counts_come_in_the_order_in_which_they_explain() -> None:
    objects = replace(GRAPH, what=Grows.OBJECTS, name="Tensor")
    blocks = replace(GRAPH, what=Grows.BLOCKS, last=90_000)
    lists = replace(objects, name="builtins.list", slope=9)
    resident = replace(GRAPH, what=Grows.RESIDENT, last=1e9)
    growth = RunGrowth((resident, blocks, lists, objects, GRAPH), 100.0)
    assert growing_counts(growth) == (GRAPH, objects, lists, blocks)


@pytest.mark.parametrize("what", LEAST)
def test_both_sides_of_the_least_growth(what: Grows) -> None:
    at = replace(GRAPH, what=what, first=0, last=LEAST[what], over_steps=0)
    assert growing_counts(RunGrowth((at,), 9.0)) == (at,)
    assert growing_counts(RunGrowth((replace(at, last=LEAST[what] - 1),), 9.0)) == ()


def test_operations_and_traced_functions_have_no_noise() -> None:
    uneven = replace(GRAPH, low=-1.0)
    assert growing_counts(RunGrowth((uneven,), 9.0)) == (uneven,)
    assert growing_counts(RunGrowth((replace(uneven, what=Grows.FILES),), 9.0)) == ()


@pytest.mark.parametrize("changes", [{"steady": False}, {"first": 12_100, "last": 13_300}])
def test_what_does_not_certainly_grow_is_left_out(changes: dict[str, float]) -> None:
    assert growing_counts(RunGrowth((replace(GRAPH, **changes),), 9.0)) == ()  # type: ignore[arg-type] # by name
    assert growing_counts(None) == ()


@pytest.mark.parametrize(
    ("trend", "words"),
    [
        (GRAPH, "the default graph grew by 12 operations a step"),
        (replace(GRAPH, over_steps=0), "the default graph grew from 100 to 1,300 operations"),
        (replace(GRAPH, what=Grows.FUNCTIONS), "1,200 functions were traced meanwhile"),
        (replace(GRAPH, what=Grows.OBJECTS, name="Tensor"), "live Tensor objects grew from 100 to 1,300"),
        (replace(GRAPH, what=Grows.BLOCKS), "Python kept 12 memory blocks more a step"),
        (replace(GRAPH, what=Grows.FILES), "open files grew from 100 to 1,300"),
    ],
)
def test_growth_in_words(trend: Trend, words: str) -> None:
    assert clause(trend) == words


@pytest.mark.parametrize(("grown", "named"), [(50_000, True), (49_000, False)])
def test_blocks_are_compared_with_the_steps(grown: int, *, named: bool) -> None:
    blocks = replace(GRAPH, what=Grows.BLOCKS, first=1e6, last=1e6 + grown, over_steps=100_000)
    assert bool(growing_counts(RunGrowth((blocks,), 9.0))) is named
    assert growing_counts(RunGrowth((replace(blocks, over_steps=0),), 9.0)) == ()


def test_without_counts_there_is_no_table() -> None:
    assert counts_table(()) == ()
    assert len(counts_table((GRAPH,))[0].rows) == 1
