"""Waiting for other hosts on a CPU is told from computing."""

import pytest

from tests.builders import chart, executor, line, markers, trace
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.trace.names import COLLECTIVE_OPERATION


def test_a_reduction_over_hosts_is_no_computing() -> None:
    host = [
        markers(4, 10, 9),
        *(
            line(
                f"tf_Compute/{n}",
                executor(10 * n + 1, 10 * n + 8, n + 1),
                ("m/MatMul:MatMul", 10 * n + 1, 10 * n + 3),
            )
            for n in range(4)
        ),
        *(line(f"collective_ops/{n}", ("r/Reduce:CollectiveReduceV2", 10 * n + 2, 10 * n + 8)) for n in range(4)),
    ]
    found = chart(trace(host))
    parts = found.fact(Breakdown)
    assert parts["device"] == pytest.approx(2)
    assert parts["collective"] == pytest.approx(5)
    assert [row.type for row in found.fact(Operations).rows] == ["MatMul"]


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        ("CollectiveReduceV2", True),
        ("CollectiveReduceScatterV2", True),
        ("CollectiveBcastRecv", True),
        ("CollectiveGatherV2", True),
        ("CollectiveAssignGroupV2", False),
        ("Mean", False),
    ],
)
def test_operations_in_which_hosts_wait_are_known_by_type(kind: str, *, waits: bool) -> None:
    assert bool(COLLECTIVE_OPERATION.fullmatch(kind)) is waits
