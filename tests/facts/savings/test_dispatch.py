"""The time to dispatch operations, and what of it general rules may count."""

import pytest

from tests.rules.cases.hot_operation import group
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.terms.verdict import Stage, StepWork

TEN_CALLS = group(calls=10.0)


@pytest.mark.parametrize(
    ("left_ms", "subjects", "counted_ms"),
    [
        (9.0, frozenset(), 5.0),
        (2.0, frozenset(), 2.0),  # what other rules explain is none of theirs
        (9.0, frozenset({StepWork.LAUNCHING}), 0.0),
    ],
)
def test_only_what_is_unexplained_counts(left_ms: float, subjects: frozenset[str], counted_ms: float) -> None:
    dispatch = Dispatch(in_loops_ms=9.0, outside_ms=0.5)
    limited = dispatch.at_most([TEN_CALLS], Unexplained({Stage.HOST: left_ms}, subjects))
    assert limited.of_group(TEN_CALLS) == pytest.approx(counted_ms)
