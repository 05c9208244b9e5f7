"""What each type of operation does: the forms of which earlier lists missed some."""

import pytest

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.facts.run.operation_types import CALLS, OPAQUE, RANDOM, READS, SHAPES, UPDATES

WRITES = (
    "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "Assign", "AssignSub", "ResourceApplyAdam",
    "ResourceSparseApplyAdagrad", "ResourceApplyGradientDescent", "ApplyMomentum", "ResourceScatterAdd",
    "ResourceScatterSub", "ResourceScatterMax", "ResourceScatterNdUpdate", "ScatterUpdate",
    "ResourceStridedSliceAssign",
)  # fmt: skip


@pytest.mark.parametrize("kind", WRITES)
def test_an_update_changes_a_variable(kind: str) -> None:
    assert UPDATES.fullmatch(kind)
    assert not READS.search(kind)


@pytest.mark.parametrize("kind", ["ReadVariableOp", "ResourceGather", "ResourceGatherNd"])
def test_a_read_does_not(kind: str) -> None:
    assert READS.search(kind)
    assert not UPDATES.fullmatch(kind)


@pytest.mark.parametrize("kind", ["TensorScatterAdd", "ScatterNd", "ApplyTensorFunction", "StridedSlice", "MatMul"])
def test_what_makes_a_new_tensor_is_neither(kind: str) -> None:
    assert not UPDATES.fullmatch(kind)
    assert not READS.search(kind)


@pytest.mark.parametrize("kind", ["RandomUniform", "TruncatedNormal", "StatelessTruncatedNormalV2", "Multinomial"])
def test_what_is_drawn_at_random(kind: str) -> None:
    assert RANDOM.search(kind)


@pytest.mark.parametrize("kind", ["StatefulPartitionedCall", "StatelessWhile", "StatelessIf", "Case", "XlaLaunch"])
def test_the_work_of_a_call_is_in_another_graph(kind: str) -> None:
    assert CALLS.search(kind)
    assert OPAQUE.search(kind)


def test_python_is_opaque_and_no_graph() -> None:
    assert OPAQUE.search("EagerPyFunc")
    assert not CALLS.search("EagerPyFunc")


def test_a_shape_is_no_value() -> None:
    assert {"Shape", "ShapeN", "Rank", "Size"} == SHAPES


@pytest.mark.parametrize("kind", ["ApplyMomentum", "ResourceApplyAdam", "SparseApplyFtrl", "AssignSubVariableOp"])
def test_an_optimizers_whole_step_is_told_in_graphs_of_sessions_too(kind: str) -> None:
    row = OperationTime(name="update", type=kind, ms=1.0)
    work = OptimizerWork.measure(Operations((row,)))
    assert bool(work.rows) is (kind != "AssignSubVariableOp")
