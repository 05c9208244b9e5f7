"""How many batches one pass over recorded datasets has, and how recorded lines are shown."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.mutation.cases import write_intact
from scripts.mutation.originals import ON_CPU, originals
from tests.h100 import h100
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnose.engine import examine
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.facts.run.operation_types import CALLS, OPAQUE, RANDOM, READS, SHAPES, UPDATES
from tfdoctor.facts.run.program import FOREVER, Dataset, DatasetParameters, Operation, Places, batches_of, line_of
from tfdoctor.facts.run.xla_operations import XlaOperations, operation
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Errored, Location
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction, Pass, Shape


def chain(*stages: tuple[str, int | None], batch: int = 10) -> tuple[Dataset, ...]:
    """A line of datasets, consumers first, each with its kind and cardinality."""
    parameters = DatasetParameters(batch_size=batch)
    return tuple(
        Dataset(
            id=at,
            kind=f"_{kind}Dataset",
            inputs=(at + 1,) if at + 1 < len(stages) else (),
            cardinality=number,
            parameters=parameters if kind == "Batch" else DatasetParameters(),
        )
        for at, (kind, number) in enumerate(stages)
    )


def test_the_feeding_datasets_own_cardinality() -> None:
    assert batches_of(chain(("Prefetch", 20), ("Batch", 20), ("TensorSlice", 195))) == 20


def test_a_repeated_pass_is_that_of_what_is_repeated() -> None:
    stages = chain(("Batch", FOREVER), ("Repeat", FOREVER), ("Shuffle", 200), ("TensorSlice", 200))
    assert batches_of(stages) == 20


def test_unknown_where_a_stage_expands_its_elements() -> None:
    assert batches_of(chain(("Batch", None), ("FlatMap", None), ("TensorSlice", 3))) is None
    assert batches_of(()) is None


def test_a_line_ends_where_several_sources_meet() -> None:
    zipped = Dataset(id=0, kind="ZipDataset", inputs=(1, 2))
    sources = (Dataset(id=1, kind="RangeDataset"), Dataset(id=2, kind="RangeDataset"))
    assert line_of((zipped, *sources)) == (zipped,)
    assert line_of((zipped, *sources), sources[1]) == (sources[1],)


def shown(path: str, *command: str, cwd: str = "/data/run") -> str:
    return Places(Manifest(command=command, cwd=cwd).folders).shown(path)


def test_a_file_below_the_folder_of_the_run_is_shown_relative_to_it() -> None:
    assert shown("/data/run/models/net.py", "python", "train.py") == "models/net.py"
    assert Places(("/data/run",))(("/data/run/net.py", 3)) == Location("net.py", 3)


def test_a_script_elsewhere_is_shown_relative_to_its_folder() -> None:
    assert shown("/code/job/train.py", "python", "/code/job/train.py") == "train.py"
    assert shown("/data/job/models/net.py", "python", "../job/train.py") == "models/net.py"


def test_a_file_below_both_is_shown_relative_to_the_folder_of_the_run() -> None:
    assert shown("/data/run/net.py", "python", "/data/train.py") == "net.py"


def test_other_files_keep_their_path() -> None:
    assert shown("/data/runs/net.py", "python", "train.py") == "/data/runs/net.py"
    assert shown("/code/net.py", "python", "-m", "job") == "/code/net.py"
    assert shown("/code/net.py", cwd="") == "/code/net.py"
    assert shown("/net.py", "python", "train.py", cwd="/") == "net.py"


# XLA's instructions as operations, by real traces of a GPU.


def by_name(trace: str) -> dict[str, Operation]:
    operations = h100(trace).fact(XlaOperations).operations.items()
    return {name: found for (_, name), found in operations}


@pytest.mark.parametrize(
    ("instruction", "kind", "kernel"),
    [
        ("cudnn-conv.7", "Conv2D", 1),
        ("cudnn-conv-bw-input.9", "Conv2DBackpropInput", 1),
        ("cudnn-conv-bw-filter.7", "Conv2DBackpropFilter", None),
    ],
)
def test_calls_of_cudnn_have_the_sizes_of_the_convolution(instruction: str, kind: str, kernel: int | None) -> None:
    found = by_name("convnet-bfloat16-130")[instruction]
    weights = found.outputs[0] if kernel is None else found.inputs[kernel]
    assert (found.type, weights) == (kind, ("bfloat16", (1, 9, 130, 130)))
    assert found.at == Location("/home/user/jx/train.py", 18)
    assert found.name.endswith(f"conv_general_dilated/{instruction}")


@pytest.mark.parametrize(
    ("trace", "instruction"),
    [
        ("mlp-bfloat16-4000", "custom-call.1"),  # of cuBLASLt
        ("mlp-bfloat16-4001", "gemm_fusion_dot_general.24"),  # of Triton
    ],
)
def test_matmuls_of_a_library_and_of_triton_have_their_sizes(trace: str, instruction: str) -> None:
    found, width = by_name(trace)[instruction], int(trace[-4:])
    assert found.type == "MatMul"
    assert found.inputs == (("bfloat16", (4096, width)), ("bfloat16", (width, width)))
    assert found.outputs == (("bfloat16", (4096, width)),)


def test_what_a_fusion_reads_and_writes() -> None:
    found = by_name("mlp-bfloat16-4000")["loop_subtract_fusion.7"]
    assert found.type == "sub (fused)"
    assert {dtype for dtype, _ in found.inputs} == {"float32", "bfloat16"}
    assert found.outputs == (("float32", (4000, 4000)),)


def test_a_fusion_that_gathers_moves_an_unknown_number_of_bytes() -> None:
    table, row = (Shape("f32", (1000, 8)),), (Shape("f32", (4, 8)),)
    inner = Instruction("gather.1", "gather", row, ("p",), ())
    fusion = Instruction("fusion.1", "fusion", row, ("p",), (2,), "f/take")
    program = HloProgram("f", 1, {1: (fusion,), 2: (inner,)}, donates=False)
    assert operation(program, fusion, {"p": table}).inputs == (("float32", None),)


def test_a_depthwise_convolution_is_no_matmul() -> None:
    sizes = HloMatmul(1, 64, 32, 1, 9, 32, "f32", Pass.FORWARD)
    call = Instruction("c", "custom-call", (Shape("f32", (64, 32)),), (), (), "f/conv", sizes)
    program = HloProgram("f", 1, {1: (call,)}, donates=False)
    assert operation(program, call, {}).type == "DepthwiseConv2dNative"


# What each type of operation does: the forms of which earlier lists missed some.


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


# Pipelines that take what they make, and long or doubled ones, end in time without a failed fact or rule.


LONG = 3000


def stages(first: dict[str, Any], number: int, times: int, kind: str) -> list[dict[str, Any]]:
    """Return so many stages, each of which takes the next one so many times."""
    return [
        {**first, "id": at, "class": kind, "inputs": [at + 1] * times * (at < number - 1)} for at in range(number)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        lambda found: [{**one, "inputs": [one["id"]]} for one in found],
        lambda found: [{**one, "inputs": [found[at - 1]["id"]]} for at, one in enumerate(found)],
        lambda found: [{**one, "inputs": [other["id"] for other in found]} for one in found],
        lambda found: stages(found[0], LONG, 1, "RepeatDataset"),
        lambda found: stages(found[0], 60, 2, "RepeatDataset"),
        lambda found: stages(found[0], 60, 2, "ZipDataset"),
    ],
    ids=["itself", "circle", "all", "long", "doubled", "doubled-zip"],
)
def test_a_pipeline_of_any_shape_breaks_nothing(changed: Any, tmp_path: Path) -> None:
    original = next(one for one in originals() if one.name == ON_CPU)
    program = deepcopy(original.program)
    program["datasets"] = changed(program["datasets"])
    write_intact(tmp_path, replace(original, program=program))
    chart = chart_of(Recording.open(tmp_path))
    outcomes = [result.outcome for result in examine(chart, tuple(all_rules()))]
    assert [one.traceback for one in outcomes if isinstance(one, Errored)] == []
    assert not chart.defects


@pytest.mark.parametrize("kind", ["Identity", "AddV2", "Cast"])
def test_a_graph_in_circles_breaks_nothing(kind: str, tmp_path: Path) -> None:
    original = next(one for one in originals() if one.name == ON_CPU)
    program = deepcopy(original.program)
    for graph in program["graphs"]:
        number = len(graph["operations"])
        for at, one in enumerate(graph["operations"]):
            one |= {"from": [(at + 1) % number, (at + 2) % number], "type": kind}
    write_intact(tmp_path, replace(original, program=program))
    chart = chart_of(Recording.open(tmp_path))
    outcomes = [result.outcome for result in examine(chart, tuple(all_rules()))]
    assert [one.traceback for one in outcomes if isinstance(one, Errored)] == []
    assert not chart.defects
