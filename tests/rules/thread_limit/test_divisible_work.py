"""DivisibleWork: operations that more threads would share, and what ran beside them."""

from dataclasses import replace

import pytest

from tests.builders import chart, executor, line, markers, recording, trace
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity, tabulate
from tfdoctor.rules.thread_limit import FLOP, DivisibleWork
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import EventType, Intervals


@pytest.mark.parametrize(
    ("row", "divided"),
    [
        (OperationTime(name="a", type="MatMul", ms=1.0, flops=FLOP), True),
        (OperationTime(name="a", type="MatMul", ms=1.0, flops=FLOP - 1, nbytes=1e8), False),
        (OperationTime(name="a", type="Mul", ms=1.0, nbytes=1e6), True),
        (OperationTime(name="a", type="Mul", ms=1.0, nbytes=1e6 - 1), False),
        (OperationTime(name="a", type="Mul", ms=1.0), False),
    ],
)
def test_small_operations_are_not_divided(row: OperationTime, divided: bool) -> None:  # noqa: FBT001
    row = replace(row, ran=("a",))
    work = tabulate([(("a", row.type, "a"), EventType("a"), 0, 1)])
    activity = Activity(Intervals(), {Stage.DEVICE: work}, Intervals())
    found = DivisibleWork.measure(activity, Operations((row,)), Steps.uniform(3, 10.0))
    assert found.rows == (row,) * divided


def test_an_operation_that_runs_beside_another_uses_two_cores_already() -> None:
    """Each takes half of the time alone, and half beside the other one: 1.33 at a time in its wall time."""
    program = {
        "graphs": [
            {
                "operations": [
                    {"name": name, "type": "MatMul", "inputs": [["float32", [512, 512]]] * 2,
                     "outputs": [["float32", [512, 512]]]}
                    for name in ("m/a", "m/b")
                ]
            }
        ]
    }  # fmt: skip
    host = [
        markers(4, 10, 9),
        *(
            line(f"tf_Compute/{n}", executor(10 * n + 1, 10 * n + 8, n + 1), ("m/a:MatMul", 10 * n + 1, 10 * n + 5))
            for n in range(4)
        ),
        *(
            line(f"tf_Other/{n}", executor(10 * n + 1, 10 * n + 8, n + 9), ("m/b:MatMul", 10 * n + 3, 10 * n + 7))
            for n in range(4)
        ),
    ]
    found = chart(trace(host), recording(program)).fact(DivisibleWork)
    assert found.beside == pytest.approx({"m/a": 4 / 3, "m/b": 4 / 3})
    assert [effect.scales for effect in found.effects(1.0, 2.0)] == pytest.approx([2 / 3] * 2)
    assert [effect.scales for effect in found.effects(2.0, 2.0)] == [1.0] * 2
