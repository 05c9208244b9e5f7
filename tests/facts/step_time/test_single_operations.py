"""Operations that Python runs one by one, within the call and between two."""

import pytest

from tests.builders import Row, chart, line, marker, trace
from tfdoctor.facts.step_time.single_operations import SingleOperations


def step(n: int) -> list[Row]:
    """A function of 4 ms, then an operation of 1 ms in the call and one of 2 ms after it."""
    at = 10.0 * n
    return [
        marker(n, at, at + 6),
        ("train_step", at + 0.5, at + 4.5, {"tf_function_call": "notTraced-nonXla"}),
        ("EagerLocalExecute: Mul", at + 4.6, at + 5.8, {}),
        ("mul:Mul", at + 4.7, at + 5.7, {}),
        ("EagerLocalExecute: RangeDataset", at + 7, at + 9.2, {}),
        ("RangeDataset:RangeDataset", at + 7.1, at + 9.1, {}),
    ]


def test_operations_are_divided_by_the_end_of_the_call() -> None:
    rows = [row for n in range(6) for row in step(n)]
    found = chart(trace(host=[line("python", *rows)])).fact(SingleOperations)
    assert found.inside_ms == pytest.approx(1.0, rel=0.1)
    assert found.between_ms == pytest.approx(2.0, rel=0.15)
