"""What the device's time went to, and what the program says of it."""

from typing import Any

import pytest

from tests.builders import (
    Row,
    chart,
    device,
    executor,
    graph_operation,
    line,
    marker,
    markers,
    recording,
    trace,
    v100,
)
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.verdict import Location

HERE = ["/home/me/train.py", 7]


def f32(*shape: int | None) -> list[Any]:
    return ["float32", list(shape)]


def program(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"graphs": [{"kind": "function", "operations": list(operations)}], **more}


def on_cpu(*rows: Row, record: dict[str, Any] | None = None) -> Operations:
    """One step of 100 ms in which these operations run."""
    lane = line("tf_Compute/1", executor(0, 100), *rows)
    return chart(trace([markers(1, 100), lane]), recording(record)).fact(Operations)


def only(found: Operations) -> OperationTime:
    (row,) = found.rows
    return row


# Names


def test_an_operation_that_python_runs_is_not_the_graphs_of_the_same_name() -> None:
    """TensorFlow names both by their type: the casts of tf.summary and the first one of a compiled step."""
    python = line("python", ("EagerLocalExecute: Cast", 60, 90))
    graph = line("tf_Compute/1", executor(0, 50), ("Cast:Cast", 10, 30))
    record = program(graph_operation("Cast", "Cast", at=HERE))
    found = chart(trace([markers(1, 100), python, graph]), recording(record)).fact(Operations)
    assert {(row.name, row.at is None) for row in found.rows} == {
        ("Cast", False),
        ("EagerLocalExecute: Cast", True),
    }


@pytest.mark.parametrize(
    ("ran", "kind"),
    [
        ("Conv2D", "Conv2D"),
        ("_FusedConv2D", "Conv2D"),
        ("_MklNativeConv2D", "Conv2D"),
        ("_MklNativeFusedConv2D", "Conv2D"),
        ("_MklNativeConv2DBackpropFilter", "Conv2DBackpropFilter"),
        ("_MklNativeConv2DBackpropFilterWithBias", "Conv2DBackpropFilter"),
        ("_MklNativeConv2DWithBias", "Conv2D"),
        ("_MklNativeFusedMatMul", "MatMul"),
        ("_MklNativeFusedBatchMatMulV2", "BatchMatMulV2"),
        ("_MklNativeFusedDepthwiseConv2dNative", "DepthwiseConv2dNative"),
        ("_FusedBatchNormEx", "FusedBatchNormV3"),
        ("_MklFusedBatchNormGradV3", "FusedBatchNormGradV3"),
        ("FusedBatchNormV3", "FusedBatchNormV3"),
        ("Relu", "Relu"),
    ],
)
def test_the_type_that_the_graph_had_before_it_was_rewritten(ran: str, kind: str) -> None:
    assert base_type(ran) == kind


@pytest.mark.parametrize("last", ["BiasAdd", "Relu"])
def test_a_fused_convolution_is_found_under_its_activations_name(last: str) -> None:
    names = {"Conv2D": "seq/c1/convolution", "BiasAdd": "seq/c1/BiasAdd", "Relu": "seq/c1/Relu"}
    record = program(
        graph_operation("seq/c0/convolution", "Conv2D", layer="c0"),
        graph_operation("seq/c0/Relu", "Relu", layer="c0"),
        graph_operation(names["Conv2D"], "Conv2D", [f32(8, 9, 9, 3), f32(3, 3, 3, 16)], layer="c1", at=HERE),
        graph_operation("seq/c1/Reshape", "Reshape", layer="c1"),
        graph_operation(names["BiasAdd"], "BiasAdd", layer="c1"),
        graph_operation(names["Relu"], "Relu", layer="c1"),
    )
    row = only(on_cpu((f"{names[last]}:_FusedConv2D", 0, 10), record=record))
    assert (row.type, row.layer, row.kernel) == ("Conv2D", "c1", (3, 3, 3, 16))
    assert row.at == Location("/home/me/train.py", 7)
    assert row.ran == (f"{names[last]}:_FusedConv2D",)


def test_a_rewritten_operation_without_its_kind_nearby_keeps_what_its_name_says() -> None:
    record = program(graph_operation("m/act/Relu", "Relu", [f32(2, 2)], layer="act"))
    row = only(on_cpu(("m/act/Relu:_FusedConv2D", 0, 10), record=record))
    assert (row.type, row.layer) == ("Conv2D", "act")
    assert row.kernel is None
    assert row.flops is None
    assert row.nbytes is None


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "StatefulPartitionedCall/",
        "StatefulPartitionedCall/StatefulPartitionedCall_3/",
        "while/body/_1/PartitionedCall/",
    ],
)
def test_functions_within_functions_do_not_hide_an_operations_name(prefix: str) -> None:
    record = program(graph_operation("seq/d/MatMul", "MatMul", layer="d"))
    row = only(on_cpu((f"{prefix}seq/d/MatMul:MatMul", 0, 10), record=record))
    assert (row.name, row.layer) == ("seq/d/MatMul", "d")


def test_the_training_graph_goes_before_an_evaluation_with_the_same_names() -> None:
    def graph(batch: int, *more: dict[str, Any]) -> dict[str, Any]:
        shapes = [f32(batch, 4), f32(4, 8)]
        forward = graph_operation("seq/d/MatMul", "MatMul", shapes, [f32(batch, 8)])
        return {"kind": "function", "operations": [forward, *more]}

    training = graph(32, graph_operation("gradient_tape/seq/d/MatMul", "MatMul"))
    record = {"graphs": [graph(7), training, {**graph(9), "kind": "dataset"}]}
    row = only(on_cpu(("seq/d/MatMul:MatMul", 0, 10), record=record))
    assert row.flops == 2 * 32 * 4 * 8


def test_the_functions_of_datasets_are_no_part_of_the_step() -> None:
    mapped = graph_operation("add", "AddV2", layer="someones", at=HERE)
    record = {"graphs": [{"kind": "dataset", "operations": [mapped]}]}
    row = only(on_cpu(("add:AddV2", 0, 10), record=record))
    assert (row.layer, row.at) == ("", None)


def test_the_line_is_the_layers_where_that_is_known() -> None:
    layer = {"name": "d", "class": "Dense", "at": ["/home/me/model.py", 3]}
    record = program(graph_operation("seq/d/MatMul", "MatMul", layer="d", at=HERE), layers=[layer])
    row = only(on_cpu(("seq/d/MatMul:MatMul", 0, 10), record=record))
    assert row.at == Location("/home/me/model.py", 3)


def test_a_layers_name_that_two_lines_share_gives_no_line() -> None:
    layers = [{"name": "d", "class": "Dense", "at": ["/home/me/model.py", n]} for n in (3, 4)]
    record = program(graph_operation("seq/d/MatMul", "MatMul", layer="d", at=HERE), layers=layers)
    assert only(on_cpu(("seq/d/MatMul:MatMul", 0, 10), record=record)).at == Location("/home/me/train.py", 7)


# Time


def test_the_operations_sum_to_the_devices_part_of_the_step() -> None:
    lanes = [
        line("t/1", ("a:Conv2D", 0, 30), ("b:Relu", 50, 60)),
        line("t/2", ("c:Conv2D", 10, 30), ("a:Conv2D", 150, 190)),
    ]
    facts = chart(trace([markers(2, 100), *lanes]))
    found, breakdown = facts.fact(Operations), facts.fact(Breakdown)
    assert found.total_ms == pytest.approx(breakdown["device"])
    assert {row.name: row.ms for row in found.rows} == pytest.approx({"a": (10 + 10 + 40) / 2, "b": 5, "c": 5})
    assert found.rows[0].name == "a"
    assert {row.name: row.calls for row in found.rows} == {"a": 1, "b": 0.5, "c": 0.5}


def test_operations_of_outlying_steps_do_not_count() -> None:
    starts = [0, 1000, 1100, 1200, 1300, 1400]
    steps = [marker(n, at, at + 90) for n, at in enumerate(starts)]
    rows: list[Row] = [("slow:Conv2D", 0, 900), *(("a:Conv2D", at, at + 50) for at in starts[1:])]
    end: Row = ("tfdoctor_end", 1500, 1500)
    found = chart(trace([line("p", *steps, end), line("t", *rows)])).fact(Operations)
    assert [row.name for row in found.rows] == ["a"]
    assert only(found).ms == pytest.approx(50)


def test_several_training_steps_in_a_call_share_its_operations() -> None:
    steps = line("p", marker(0, 0, 100, steps=4), ("tfdoctor_end", 100, 100))
    found = chart(trace([steps, line("t", ("a:Conv2D", 0, 40))])).fact(Operations)
    assert (only(found).ms, only(found).calls) == (10, 0.25)


def test_the_kernels_of_one_operation_are_one_row() -> None:
    conv = {"tf_op": "m/c/Conv2D:Conv2D"}
    gpu = v100(line("Stream #1", ("nchwToNhwc", 0, 1, conv), ("volta_scudnn", 1, 9, conv)))
    row = only(chart(trace([markers(1, 10)], gpus=[gpu])).fact(Operations))
    assert row.ms == pytest.approx(9)
    assert row.ran == ("nchwToNhwc", "volta_scudnn")
    assert row.calls == 1


def test_work_whose_operation_is_unknown_is_counted_as_such() -> None:
    known = {"tf_op": "m/c/Conv2D:Conv2D"}
    gpu = v100(line("Stream #1", ("my_kernel", 0, 1), ("volta_scudnn", 1, 5, known)))
    found = chart(trace([markers(1, 10)], gpus=[gpu])).fact(Operations)
    assert found.unnamed == pytest.approx(0.2)
    assert "20 %" in found.why_unnamed


def test_a_few_unnamed_kernels_do_not_stop_a_statement() -> None:
    known = {"tf_op": "gradient_tape/m/c/Conv2D:Conv2D"}
    gpu = v100(line("Stream #1", ("my_kernel", 0, 1), ("volta_scudnn", 1, 10, known)))
    found = chart(trace([markers(1, 10)], gpus=[gpu])).fact(Operations)
    assert found.unnamed == pytest.approx(0.1)
    assert not found.why_unnamed


def test_a_step_without_a_gradient_is_no_whole_step_to_judge_by() -> None:
    gpu = v100(line("Stream #1", ("k", 0, 10, {"tf_op": "m/dropout/Mul:Mul"})))
    found = chart(trace([markers(1, 10)], gpus=[gpu])).fact(Operations)
    assert "no gradient" in found.why_unnamed


def test_a_gpu_whose_kernels_were_not_recorded_has_no_operations() -> None:
    silent = trace([markers(1, 10)], gpus=[v100()], errors=("Failed to load libcupti",))
    with pytest.raises(Unavailable, match="CUPTI"):
        chart(silent).fact(Operations)


def test_a_step_without_any_operation_has_none() -> None:
    with pytest.raises(Unavailable, match="no operation"):
        chart(trace([markers(1, 10)])).fact(Operations)


def test_work_outside_of_the_typical_steps_is_not_the_steps() -> None:
    outside = line("t", ("a:Conv2D", 50, 60))
    with pytest.raises(Unavailable, match="steady steps"):
        chart(trace([markers(1, 10), outside])).fact(Operations)


# Arithmetic, by hand


def flops(operation: dict[str, Any], **more: Any) -> float | None:
    record = program(operation, **more)
    row = only(on_cpu((f"{operation['name']}:{operation['type']}", 0, 10), record=record))
    return row.flops


IMAGES, WEIGHTS, MAPS = f32(32, 28, 28, 16), f32(3, 3, 16, 24), f32(32, 26, 26, 24)
CONVOLUTION = 2 * 32 * 26 * 26 * 24 * 3 * 3 * 16


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [
        ("Conv2D", [IMAGES, WEIGHTS], [MAPS]),
        ("Conv2DBackpropInput", [["int32", [4]], WEIGHTS, MAPS], [IMAGES]),
        ("Conv2DBackpropFilter", [IMAGES, ["int32", [4]], MAPS], [WEIGHTS]),
    ],
)
def test_a_convolution_and_its_gradients_multiply_equally_often(
    kind: str, inputs: list[Any], outputs: list[Any]
) -> None:
    assert flops(graph_operation("c", kind, inputs, outputs)) == CONVOLUTION


def test_a_convolution_with_the_channels_first() -> None:
    inputs, outputs = [f32(32, 16, 28, 28), WEIGHTS], [f32(32, 24, 26, 26)]
    first = graph_operation("c", "Conv2D", inputs, outputs, attrs={"data_format": "NCHW"})
    assert flops(first) == CONVOLUTION


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [
        ("Conv3D", [f32(2, 9, 9, 9, 4), f32(3, 3, 3, 4, 8)], [f32(2, 7, 7, 7, 8)]),
        ("Conv3DBackpropFilterV2", [f32(2, 9, 9, 9, 4), ["int32", [5]], f32(2, 7, 7, 7, 8)], [f32(3, 3, 3, 4, 8)]),
    ],
)
def test_a_convolution_in_three_dimensions(kind: str, inputs: list[Any], outputs: list[Any]) -> None:
    assert flops(graph_operation("c", kind, inputs, outputs)) == 2 * 2 * 7**3 * 8 * 27 * 4


def test_a_depthwise_convolution_multiplies_each_channel_alone() -> None:
    inputs, outputs = [f32(8, 10, 10, 32), f32(3, 3, 32, 2)], [f32(8, 8, 8, 64)]
    assert flops(graph_operation("c", "DepthwiseConv2dNative", inputs, outputs)) == (2 * 8 * 8 * 8 * 64 * 9)


@pytest.mark.parametrize(
    ("a", "b", "attrs"),
    [
        (f32(32, 100), f32(100, 10), {}),
        (f32(32, 100), f32(10, 100), {"transpose_b": True}),
        (f32(100, 32), f32(100, 10), {"transpose_a": True}),
    ],
)
def test_a_matmul_however_its_operands_lie(a: Any, b: Any, attrs: dict[str, bool]) -> None:
    matmul = graph_operation("m", "MatMul", [a, b], [f32(32, 10)], attrs=attrs)
    assert flops(matmul) == 2 * 32 * 100 * 10


def test_an_empty_batch_costs_nothing() -> None:
    assert not flops(graph_operation("m", "MatMul", [f32(0, 4), f32(4, 8)], [f32(0, 8)]))


def test_the_open_batch_is_filled_in_when_the_run_says_it() -> None:
    matmul = graph_operation("m", "MatMul", [f32(None, 100), f32(100, 10)], [f32(None, 10)])
    assert flops(matmul) is None
    assert flops(matmul, run={"batch_size": 64}) == 2 * 64 * 100 * 10


def test_an_unknown_shape_gives_no_number() -> None:
    assert flops(graph_operation("m", "MatMul", [["float32", None], f32(4, 8)], [f32(2, 8)])) is None
    assert flops(graph_operation("m", "MatMul", [f32(None, None), f32(4, 8)], [])) is None


def test_bytes_are_those_of_all_operands_and_results() -> None:
    add = graph_operation("a", "AddV2", [f32(10, 10), ["bfloat16", [10]]], [f32(10, 10)])
    row = only(on_cpu(("a:AddV2", 0, 10), record=program(add)))
    assert row.nbytes == 400 + 20 + 400


def test_bytes_with_one_unknown_operand_are_unknown() -> None:
    add = graph_operation("a", "AddV2", [f32(10, 10), ["resource", []]], [f32(10, 10)])
    assert only(on_cpu(("a:AddV2", 0, 10), record=program(add))).nbytes is None


def test_the_memorys_rate_is_that_of_large_elementwise_operations() -> None:
    large, small = f32(1000, 1000), f32(10)
    record = program(
        graph_operation("a", "AddV2", [large, large], [large]),
        graph_operation("b", "AddV2", [small, small], [small]),
        graph_operation("c", "Tanh", [large], [large]),
    )
    found = on_cpu(("a:AddV2", 0, 6), ("b:AddV2", 6, 20), ("c:Tanh", 20, 90), record=record)
    assert found.streaming_rate == pytest.approx(12e6 / 6e-3)


def test_without_such_operations_the_memorys_rate_is_unknown() -> None:
    assert on_cpu(("c:Tanh", 0, 9)).streaming_rate is None


def test_a_tpu_counts_its_own_flops_and_bytes() -> None:
    hlo = "%fusion.1 = bf16[128,256]{1,0} fusion()"
    stats = {
        "hlo_category": "convolution fusion", "flops": 1000, "bytes_accessed": 50,
        "tf_op": "m/d/MatMul:MatMul",
    }  # fmt: skip
    tpu = device(line("XLA Ops", (hlo, 0, 9)), line("Steps", ("0", 0, 10)), kinds={hlo: stats})
    row = only(chart(trace([], tpus=[tpu])).fact(Operations))
    assert (row.type, row.flops, row.nbytes) == ("MatMul", 1000, 50)
    assert row.is_matrix
    assert row.precision == "bfloat16"


# Kinds and precision


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("volta_sgemm_128x64_nn", "float32"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "float32"),
        ("ampere_sgemm_64x64_nt", "float32"),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", "float32"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", "float32"),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw", "float32"),
        ("volta_h884gemm_64x128_ldg8_nn", "float16"),
        ("volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_exp", "float16"),
        ("turing_fp16_s1688cudnn_fp16_128x128", "float16"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8", "float16"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8", "bfloat16"),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc", "float16"),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "bfloat16"),
        ("nvjet_hsh_128x256_64x4", "float16"),
        ("%fusion = f32[128,256]{1,0} fusion(%a)", "float32"),
        ("%fusion = (bf16[128,256]{1,0}, f32[256]{0}) fusion(%a)", "bfloat16"),
        ("some_kernel", ""),
    ],
)
def test_the_precision_of_a_kernel_by_its_name(kernel: str, precision: str) -> None:
    row = OperationTime(name="m/c", type="Conv2D", ms=1, ran=(kernel,))
    assert row.precision == precision


def test_the_program_knows_the_precision_better_than_a_kernels_name() -> None:
    record = program(graph_operation("c", "Conv2D", [["bfloat16", [1, 8, 8, 3]], ["bfloat16", [3, 3, 3, 8]]]))
    assert only(on_cpu(("c:Conv2D", 0, 9), record=record)).precision == "bfloat16"


def test_the_kernel_of_a_filters_gradient_is_its_result() -> None:
    for kind, weights in (("Conv2DBackpropFilter", WEIGHTS), ("Conv3DBackpropFilterV2", f32(3, 3, 3, 4, 8))):
        sizes = ["int32", [len(weights[1])]]
        record = program(graph_operation("c", kind, [IMAGES, sizes, MAPS], [weights]))
        assert only(on_cpu((f"c:{kind}", 0, 9), record=record)).kernel == tuple(weights[1])


def test_a_depthwise_convolution_is_no_work_for_a_matrix_unit() -> None:
    row = OperationTime(name="d", type="DepthwiseConv2dNativeBackpropFilter", ms=1)
    assert (row.is_depthwise, row.is_matrix) == (True, False)


# The program


def test_without_a_program_record_it_is_said_how_to_get_one() -> None:
    with pytest.raises(Unavailable, match="tfdoctor profile"):
        chart(trace([])).fact(Program)


def test_operations_do_not_need_a_program() -> None:
    assert only(on_cpu(("c:Conv2D", 0, 9))).layer == ""


def test_the_batch_size_is_that_of_the_dataset_that_feeds_the_training() -> None:
    def dataset(one: int, size: int | None, *inputs: int) -> dict[str, Any]:
        parameters = {"batch_size": size} if size else {}
        return {"id": one, "class": "D", "inputs": list(inputs), "parameters": parameters}

    datasets = [dataset(0, None), dataset(1, 16, 0), dataset(2, None, 1), dataset(9, 99)]
    record = {"graphs": [], "datasets": datasets, "feeds": 2}
    found = chart(trace([]), recording(record)).fact(Program)
    assert found.batch_size == 16
    assert [one.id for one in found.feeding] == [2, 1, 0]


def test_the_program_tells_which_operations_feed_which() -> None:
    rows = [
        graph_operation("hot", "OneHot", **{"from": [None]}),
        graph_operation("m", "MatMul", **{"from": [0, None]}),
    ]
    record = {"graphs": [{"kind": "function", "operations": rows}]}
    found = chart(trace([]), recording(record)).fact(Program)
    assert found.by_name["m"].sources == ("hot", "")


def test_a_record_of_before_tells_no_sources() -> None:
    record = {"graphs": [{"operations": [graph_operation("m", "MatMul")]}]}
    assert chart(trace([]), recording(record)).fact(Program).by_name["m"].sources == ()


def test_a_source_that_is_not_there_has_no_name() -> None:
    record = {"graphs": [{"operations": [graph_operation("m", "MatMul", **{"from": [7]})]}]}
    assert chart(trace([]), recording(record)).fact(Program).by_name["m"].sources == ("",)
