"""CopiedWork: the operations of further replicas, by the scopes that TensorFlow gives them."""

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.rules.shared_device import VALUES, CopiedWork


def row(name: str, width: int = 64, ms: float = 1.0) -> OperationTime:
    tensor = ("float32", (width,))
    made = Operation(name=name, type="Mul", inputs=(tensor,), outputs=(tensor,))
    return OperationTime(name=name, type="Mul", ms=ms, operation=made)


def measured(*names: str, program: Program | None = None) -> CopiedWork:
    return CopiedWork.measure(Operations(tuple(map(row, names))), program or Program())


def test_the_first_replica_is_no_copy() -> None:
    found = measured("dense/Mul", "replica_1/dense/Mul", "gradient_tape/replica_3/dense/Mul")
    assert [one.name for one in found.spared] == ["replica_1/dense/Mul", "gradient_tape/replica_3/dense/Mul"]


def test_each_replica_updates_variables_of_its_own() -> None:
    found = measured("replica_1/a", "adam/update_0_4/Mul", "adam/update_1_4/Mul", "update_1/Assign")
    assert [one.name for one in found.updates] == ["adam/update_1_4/Mul", "update_1/Assign"]


@pytest.mark.parametrize(("width", "fixed"), [(VALUES, 1.0), (VALUES + 1, 0.0)])
def test_one_replica_takes_over_the_work_on_large_tensors(width: int, fixed: float) -> None:
    rows = (row("replica_1/dense/Mul", width),)
    found = CopiedWork.measure(Operations(rows), Program())
    assert found.fixed_share == fixed
    assert bool(found.growing) != bool(fixed)


def test_gradients_are_packed_for_the_exchange_and_unpacked_after_it() -> None:
    program = Program(
        operations=(
            Operation(name="adam/concat", type="ConcatV2"),
            Operation(name="adam/reduce", type="CollectiveReduceV2", sources=("adam/concat",)),
            Operation(name="adam/split", type="SplitV", sources=("adam/reduce",)),
            Operation(name="adam/other", type="SplitV", sources=("adam/split",)),
        )
    )
    found = measured("replica_1/a", *(one.name for one in program.operations), program=program)
    assert [one.name for one in found.packing] == ["adam/concat", "adam/split"]


def test_without_a_second_replica_there_is_nothing_to_measure() -> None:
    with pytest.raises(Unavailable, match="second replica"):
        measured("dense/Mul", "adam/update_0/Mul")
