"""What the device's time went to, and what the program says of it."""

from itertools import product as every

from tests.facts.kit import *
from tfdoctor.facts.operations.matmuls import of_unknown_precision, repeated
from tfdoctor.facts.operations.operation_time import by_layer
from tfdoctor.facts.operations.shapes import einsum_flops, flops_of, shared_dimension_flops
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.run.program import Shape
from tfdoctor.terms.units import ratio

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


test_names_of_types_and_kernels = Names(__file__, "names").test(
    {
        "the type that the graph had before it was rewritten": base_type,
        "the precision of a kernel by its name": lambda kernel: (
            OperationTime(name="m/c", type="Conv2D", ms=1, ran=(kernel,)).precision
        ),
    }
)


@each("BiasAdd", "Relu")
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


@each(
    "",
    "StatefulPartitionedCall/",
    "StatefulPartitionedCall/StatefulPartitionedCall_3/",
    "while/body/_1/PartitionedCall/",
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


@cases(((3,), ("model.py", 3)), ((3, 4), ("train.py", 7)))
def test_the_line_is_the_layers_where_no_two_share_its_name(lines: tuple[int, ...], at: tuple[str, int]) -> None:
    layers = [{"name": "d", "class": "Dense", "at": ["/home/me/model.py", n]} for n in lines]
    record = program(graph_operation("seq/d/MatMul", "MatMul", layer="d", at=HERE), layers=layers)
    row = only(on_cpu(("seq/d/MatMul:MatMul", 0, 10), record=record))
    assert row.at == Location(f"/home/me/{at[0]}", at[1])


# Time


def test_the_operations_sum_to_the_devices_part_of_the_step() -> None:
    first = line("t/1", ("a:Conv2D", 0, 30), ("b:Relu", 50, 60))
    facts = chart(trace([markers(2, 100), first, line("t/2", ("c:Conv2D", 10, 30), ("a:Conv2D", 150, 190))]))
    found = facts.fact(Operations)
    assert found.total_ms == pytest.approx(facts.fact(Breakdown)["device"])
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


def on_gpu(*rows: Row) -> Operations:
    return chart(trace([markers(1, 10)], gpus=[v100(line("Stream #1", *rows))])).fact(Operations)


def test_the_kernels_of_one_operation_are_one_row() -> None:
    conv = {"tf_op": "m/c/Conv2D:Conv2D"}
    row = only(on_gpu(("nchwToNhwc", 0, 1, conv), ("volta_scudnn", 1, 9, conv)))
    assert (row.ms, row.calls) == pytest.approx((9, 1))
    assert row.ran == ("nchwToNhwc", "volta_scudnn")


@cases(
    ([("my_kernel", 0, 1), ("volta_scudnn", 1, 5, {"tf_op": "gradient_tape/m/c/Conv2D:Conv2D"})], 0.2, "20 %"),
    ([("my_kernel", 0, 1), ("volta_scudnn", 1, 10, {"tf_op": "gradient_tape/m/c/Conv2D:Conv2D"})], 0.1, ""),
    ([("k", 0, 10, {"tf_op": "m/dropout/Mul:Mul"})], 0, "no gradient"),  # no whole step to judge by
)
def test_work_whose_operation_is_unknown_is_counted_as_such(kernels: list[Row], unnamed: float, why: str) -> None:
    found = on_gpu(*kernels)
    assert found.unnamed == pytest.approx(unnamed)
    assert why in found.why_unnamed
    assert bool(why) == bool(found.why_unnamed)


test_what_is_not_known = unavailable(
    (lambda: chart(trace([markers(1, 10)], gpus=[v100()], errors=("libcupti",))).fact(Operations), "CUPTI"),
    (lambda: chart(trace([markers(1, 10)])).fact(Operations), "no operation"),
    (lambda: chart(trace([markers(1, 10), line("t", ("a:Conv2D", 50, 60))])).fact(Operations), "steady steps"),
    (lambda: chart(trace([])).fact(Program), "tfdoctor profile"),
)


# Arithmetic, by hand


def flops(operation: dict[str, Any], **more: Any) -> float | None:
    record = program(operation, **more)
    row = only(on_cpu((f"{operation['name']}:{operation['type']}", 0, 10), record=record))
    return row.flops


IMAGES, WEIGHTS, MAPS = f32(32, 28, 28, 16), f32(3, 3, 16, 24), f32(32, 26, 26, 24)


@each(["float32", None], f32(None, None))
def test_an_unknown_shape_gives_no_number(open_shape: Any) -> None:
    assert flops(graph_operation("m", "MatMul", [open_shape, f32(4, 8)], [f32(2, 8)])) is None


def test_attributes_of_the_record_tell_how_operands_lie() -> None:
    channels, turned = {"data_format": "NCHW"}, {"transpose_a": True}
    first = graph_operation("c", "Conv2D", [f32(32, 16, 28, 28), WEIGHTS], [f32(32, 24, 26, 26)], attrs=channels)
    assert flops(first) == 2 * 32 * 26 * 26 * 24 * 3 * 3 * 16
    product = graph_operation("m", "MatMul", [f32(100, 32), f32(100, 10)], [f32(32, 10)], attrs=turned)
    assert flops(product) == 2 * 32 * 100 * 10
    assert not flops(graph_operation("m", "MatMul", [f32(0, 4), f32(4, 8)], [f32(0, 8)]))


def test_the_open_batch_is_filled_in_when_the_run_says_it() -> None:
    matmul = graph_operation("m", "MatMul", [f32(None, 100), f32(100, 10)], [f32(None, 10)])
    assert flops(matmul) is None
    assert flops(matmul, run={"batch_size": 64}) == 2 * 64 * 100 * 10


@cases((["bfloat16", [10]], 400 + 20 + 400), (["resource", []], None))
def test_bytes_are_those_of_all_operands_and_results(other: Any, nbytes: int | None) -> None:
    add = graph_operation("a", "AddV2", [f32(10, 10), other], [f32(10, 10)])
    assert only(on_cpu(("a:AddV2", 0, 10), record=program(add))).nbytes == nbytes


def test_the_memorys_rate_is_that_of_large_elementwise_operations() -> None:
    large, small = f32(1000, 1000), f32(10)
    record = program(
        graph_operation("a", "AddV2", [large, large], [large]),
        graph_operation("b", "AddV2", [small, small], [small]),
        graph_operation("c", "Tanh", [large], [large]),
    )
    found = on_cpu(("a:AddV2", 0, 6), ("b:AddV2", 6, 20), ("c:Tanh", 20, 90), record=record)
    assert found.streaming_rate == pytest.approx(12e6 / 6e-3)
    without = on_cpu(("c:Tanh", 0, 9))  # such an operation; nor is a program needed
    assert (without.streaming_rate, only(without).layer) == (None, "")


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


def test_the_program_knows_the_precision_better_than_a_kernels_name() -> None:
    record = program(graph_operation("c", "Conv2D", [["bfloat16", [1, 8, 8, 3]], ["bfloat16", [3, 3, 3, 8]]]))
    assert only(on_cpu(("c:Conv2D", 0, 9), record=record)).precision == "bfloat16"


def test_the_kernel_of_a_filters_gradient_is_its_result() -> None:
    row = OperationTime(name="d", type="DepthwiseConv2dNativeBackpropFilter", ms=1)
    assert (row.is_depthwise, row.is_matrix) == (True, False)  # no work for a matrix unit
    for kind, weights in (("Conv2DBackpropFilter", WEIGHTS), ("Conv3DBackpropFilterV2", f32(3, 3, 3, 4, 8))):
        sizes = ["int32", [len(weights[1])]]
        record = program(graph_operation("c", kind, [IMAGES, sizes, MAPS], [weights]))
        assert only(on_cpu((f"c:{kind}", 0, 9), record=record)).kernel == tuple(weights[1])


# The program


def test_the_batch_size_is_that_of_the_dataset_that_feeds_the_training() -> None:
    def dataset(one: int, size: int | None, *inputs: int) -> dict[str, Any]:
        parameters = {"batch_size": size} if size else {}
        return {"id": one, "class": "D", "inputs": list(inputs), "parameters": parameters}

    datasets = [dataset(0, None), dataset(1, 16, 0), dataset(2, None, 1), dataset(9, 99)]
    record = {"graphs": [], "datasets": datasets, "feeds": 2}
    found = chart(trace([]), recording(record)).fact(Program)
    assert found.batch_size == 16
    assert [one.id for one in found.feeding] == [2, 1, 0]


@cases(
    ({"from": [0, None]}, ("hot", "")), ({}, ()), ({"from": [7]}, ("",)), ids=["known", "of before", "not there"]
)
def test_the_program_tells_which_operations_feed_which(recorded: dict[str, Any], sources: tuple[str, ...]) -> None:
    rows = [graph_operation("hot", "OneHot"), graph_operation("m", "MatMul", **recorded)]
    assert chart(trace([]), recording(program(*rows))).fact(Program).by_name["m"].sources == sources


# FLOPs of products from shapes, set against loops that count; unknown sizes stay unknown.

PROGRAM = Program(settings=RunSettings(batch_size=16))
SIZE = st.integers(1, 6)


def flops_of_kind(kind: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> float | None:
    tensors = tuple(("float32", shape) for shape in inputs)
    results = tuple(("float32", shape) for shape in outputs)
    one = Operation(name="x", type=kind, inputs=tensors, outputs=results, attrs=Attributes(**attrs))
    return flops_of(kind, one, PROGRAM)


@cases(
    ("MatMul", [(16, 8), (8, 4)], [(16, 4)], {}, 2 * 16 * 8 * 4),
    ("MatMul", [(8, 16), (8, 4)], [(16, 4)], {"transpose_a": True}, 2 * 16 * 8 * 4),
    ("MatMul", [(16, 8), (4, 8)], [(16, 4)], {}, 2 * 16 * 8 * 4),
    ("MatMul", [(None, 8), (8, 4)], [(None, 4)], {}, 2 * 16 * 8 * 4),
    ("BatchMatMulV2", [(3, 5, 7), (3, 7, 2)], [(3, 5, 2)], {}, 2 * 3 * 5 * 7 * 2),
    ("BatchMatMulV2", [(3, 7, 5), (3, 7, 2)], [(3, 5, 2)], {"adj_x": True}, 2 * 3 * 5 * 7 * 2),
    ("BatchMatMulV3", [(3, 5, 7), (7, 2)], [(3, 5, 2)], {}, 2 * 3 * 5 * 7 * 2),
    ("Einsum", [(2, 3, 4), (4, 5, 6)], [], {"equation": "abc,cde->abde"}, 2 * 2 * 3 * 4 * 5 * 6),
    ("Conv2D", [(2, 8, 8, 3), (3, 3, 3, 5)], [(2, 4, 4, 5)], {}, 2 * 2 * 16 * 9 * 3 * 5),
    ("Conv2D", [(2, 8, 8, 6), (3, 3, 2, 9)], [(2, 8, 8, 9)], {}, 2 * 2 * 64 * 9 * 2 * 9),
    ("Conv2D", [(2, 3, 8, 8), (3, 3, 3, 5)], [(2, 5, 4, 4)], {"data_format": "NCHW"}, 2 * 2 * 16 * 9 * 3 * 5),
    ("Conv3D", [(1, 4, 4, 4, 2), (3, 3, 3, 2, 5)], [(1, 4, 4, 4, 5)], {}, 2 * 64 * 27 * 2 * 5),
    (
        "Conv3DBackpropFilterV2",
        [(2, 9, 9, 9, 4), (5,), (2, 7, 7, 7, 8)],
        [(3, 3, 3, 4, 8)],
        {},
        2 * 2 * 7**3 * 8 * 27 * 4,
    ),
    ("Conv2DBackpropInput", [(4,), (3, 3, 3, 5), (2, 4, 4, 5)], [(2, 8, 8, 3)], {}, 2 * 2 * 16 * 9 * 3 * 5),
    ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [(3, 3, 3, 5)], {}, 2 * 2 * 16 * 9 * 3 * 5),
    ("DepthwiseConv2dNative", [(2, 8, 8, 6), (3, 3, 6, 2)], [(2, 8, 8, 12)], {}, 2 * 2 * 64 * 12 * 9),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        [(2, 8, 8, 6), (4,), (2, 8, 8, 6)],
        [(3, 3, 6, 1)],
        {},
        2 * 2 * 64 * 6 * 9,
    ),
    ("Conv2D", [(2, 8, 8, 3), (3, 3, 3, 5)], [], {}, None),
    ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [], {}, None),
    ("MatMul", [(16, 8)], [(16, 4)], {}, None),
    ("MatMul", [(16, None), (8, 4)], [(16, 4)], {}, None),
    ("Relu", [(16, 8)], [(16, 8)], {}, None),
)
def test_products_of_all_kinds(
    kind: str, inputs: list[Shape], outputs: list[Shape], attrs: dict[str, object], expected: object
) -> None:
    assert flops_of_kind(kind, inputs, outputs, **attrs) == expected


@given(st.lists(SIZE, min_size=1, max_size=5, unique=True), st.data())
def test_an_einsum_multiplies_once_for_each_value_of_all_its_indices(sizes: list[int], data: st.DataObject) -> None:
    letters = "abcde"[: len(sizes)]
    chosen = st.lists(st.sampled_from(letters), min_size=1, unique=True)
    left, right = data.draw(chosen), data.draw(chosen)
    used = dict(zip(letters, sizes, strict=True))
    count = sum(1 for _ in every(*(range(used[one]) for one in {*left, *right})))
    equation = f"{''.join(left)},{''.join(right)}->{''.join(left[:1])}"
    shapes: list[tuple[int, ...] | None] = [tuple(used[one] for one in left), tuple(used[one] for one in right)]
    assert einsum_flops(equation, shapes) == 2 * count


@cases(
    ("...ij,...jk->...ik", [(7, 2, 3), (7, 3, 5)], 2 * 7 * 2 * 3 * 5),
    ("...ij,jk->...ik", [(7, 8, 2, 3), (3, 5)], 2 * 7 * 8 * 2 * 3 * 5),
    ("ab->ba", [(2, 3)], 0),
    ("a,b,c->abc", [(2,), (3,), (4,)], None),
    ("ab,bc->ac", [(2, 3), None], None),
    ("ab,bc->ac", [(2, 3, 4), (3, 4)], None),
    ("", [(2, 3), (3, 4)], None),
)
def test_einsums(equation: str, shapes: list[tuple[int, ...] | None], expected: float | None) -> None:
    assert einsum_flops(equation, shapes) == expected


@given(st.tuples(SIZE, SIZE, SIZE), st.tuples(st.booleans(), st.booleans()))
def test_the_factors_alone_tell_the_flops_or_none(sizes: tuple[int, int, int], turned: tuple[bool, bool]) -> None:
    m, k, n = sizes
    a, b = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    told = shared_dimension_flops(a, b)
    assert told in (None, 2 * prod(sizes))
    assert told is not None or len({m, k, n}) < 3


def test_factors_of_different_batches_tell_nothing() -> None:
    assert shared_dimension_flops((3, 5, 7), (1, 7, 2)) is None
    assert shared_dimension_flops((3, 5, 7), (3, 7, 2)) == 2 * 3 * 5 * 7 * 2


# Operations by layer, and a part of the compute time, as it is stated.


def test_operations_are_grouped_by_layer_or_by_their_own_name_the_longest_first() -> None:
    rows = (
        OperationTime(name="c", type="Add", ms=1),
        OperationTime(name="a", type="Mul", ms=1, layer="l"),
        OperationTime(name="b", type="Add", ms=1, layer="l"),
    )
    layers = by_layer(rows)
    assert [(layer.name, len(layer.rows), layer.ms) for layer in layers] == [("l", 2, 2), ("c", 1, 1)]


@each(None, 0.1)
def test_a_part_of_the_compute_is_stated_with_its_share(least: float | None) -> None:
    assert str(ComputePart(5.0, 20.0)) == "5.00 ms per step, 25 % of the compute time"
    assert ComputePart(5.0, 20.0).measures("in casts", least) == (
        Measure("time in casts per step", ms(5.0)),
        Measure("share of the compute time in casts", ratio(0.25), ratio(least) if least else None),
    )
    assert ComputePart(0.0, 0.0).share == 0.0


# How fast an operation can get at best.

GPU = Hardware(DeviceKind.GPU, "x", peak_flop_s=100e12, bandwidth_bytes_s=1e12)
CPU = Hardware(DeviceKind.CPU, "x")


def floor(row: OperationTime, hardware: Hardware = GPU, *others: OperationTime) -> float:
    return Roofline.measure(Operations((row, *others)), hardware).floors.get(row.name, 0.0)


@cases(
    (matmul(ms=10.0, nbytes=4e9), 2.0),  # its bytes have to come from memory, in 16 bits
    (matmul(ms=10.0, nbytes=4e9, dtype="bfloat16"), 4.0),
    (matmul(ms=10.0, flops=3e11), 3.0),  # its products have to be computed
    (matmul(ms=10.0, flops=3e11, calls=2.0), 6.0),
    (matmul(ms=1.0, nbytes=1.9e6), 0.0),  # fits into caches
    (matmul(ms=1.0, nbytes=4e9), 1.0),  # no floor is above what was measured
)
def test_how_fast_an_operation_can_get(row: OperationTime, least: float) -> None:
    assert floor(row) == pytest.approx(least)


def test_a_cpus_rate_is_what_the_runs_own_operations_stream() -> None:
    add = OperationTime(name="add", type="AddV2", ms=2.0, nbytes=4e7)  # 20 GB/s
    assert floor(matmul(ms=10.0, nbytes=8e7), CPU, add) == pytest.approx(2.0)
    with pytest.raises(Unavailable, match="peak rates"):
        floor(matmul(ms=1.0, nbytes=4e9), CPU)


# What an operation is computed from, and whether only metrics use it.

HANDLE = (("resource", ()),)
METRIC = KerasPart("metric", "AUC")


def op(name: str, kind: str, *sources: str, origin: KerasPart | None = None) -> Operation:
    outputs = HANDLE if kind == "handle" else ()
    kind = "Placeholder" if kind == "handle" else kind
    return Operation(name=name, type=kind, sources=sources, origin=origin, outputs=outputs)


DATAFLOW = Dataflow(
    Program(
        operations=(
            op("x", "Placeholder"),
            op("w", "handle"),
            op("read", "ReadVariableOp", "w"),
            op("limit", "Const"),
            op("range", "Range", "limit", "limit"),
            op("svd", "Svd", "read"),
            op("noise", "RandomUniform", "limit"),
            op("y", "MatMul", "x", "read"),
            op("gradient_tape/y", "MatMul", "y"),
            op("decoded", "CTCBeamSearchDecoder", "y"),
            op("sum", "Sum", "decoded", origin=METRIC),
            op("numpy", "EagerPyFunc", "limit"),
            op("truncated", "StatelessTruncatedNormalV2", "limit"),
            op("iterator", "handle"),
            op("next", "IteratorGetNext", "iterator"),
            op("lost", "Mul", "", "limit"),
            op("average", "AssignVariableOp", "w", "range"),
            op("rows", "Gather", "y"),
            op("looked at", "Mean", "rows", origin=METRIC),
            op("lazy", "ResourceSparseApplyAdagradV2", "w", "rows"),
        )
    )
)


@cases(
    ("range", ()),
    ("svd", (Source.VARIABLES,)),
    ("noise", (Source.RANDOM,)),
    ("y", (Source.BATCH, Source.VARIABLES)),
    ("lost", (Source.UNKNOWN,)),
    ("numpy", (Source.UNKNOWN,)),
    ("truncated", (Source.RANDOM,)),
    ("next", (Source.BATCH,)),
    ("absent", (Source.UNKNOWN,)),
)
def test_sources(name: str, sources: tuple[Source, ...]) -> None:
    assert DATAFLOW.sources(name) == frozenset(sources)


def test_what_a_gradient_or_a_variable_takes_is_not_for_metrics_only() -> None:
    names = ("sum", "decoded", "y", "gradient_tape/y", "range", "rows")  # rows: a sparse update is an update
    assert [name for name in names if DATAFLOW.only_metrics(name)] == ["sum", "decoded"]
    assert (DATAFLOW.feeds_gradients("y"), DATAFLOW.feeds_gradients("average")) == (True, False)


# Products of graphs that were not recorded: a recurrent layer's, in the body of its loop.

DENSE = matmul("MatMul", ms=1.0, layer="dense")


def looped(ms: float, calls: float = 80.0, ran: str = "") -> OperationTime:
    return matmul("MatMul", ms=ms, dtype="", name="MatMul", ran=ran, calls=calls)


@cases(
    (looped(0.12), True),
    (looped(0.11), False),
    (looped(5.0, ran="volta_sgemm_128x64_nn"), False),
    ids=["more than a tenth", "less", "a kernel that tells the precision"],
)
def test_the_products_of_a_loop_are_said_to_be_unknown_with_their_share(row: OperationTime, *, told: bool) -> None:
    assert bool(of_unknown_precision(Operations((row, DENSE)))) is told
    said = of_unknown_precision(Operations((looped(5.0), DENSE)))
    assert said.startswith("the precision of 5.00 ms of 6.00 ms of matmuls and convolutions per step is")


@cases(
    (4.0, 0.8, True),
    (3.0, 0.6, False),
    (4.0, 0.81, False),
    (80.0, 0.0006 * 80, False),
    (80.0, 0.0007 * 80, True),  # a twentieth of the compute
)
def test_what_runs_again_and_again_is_small_and_often(calls: float, ms: float, *, told: bool) -> None:
    assert bool(repeated(Operations((looped(ms, calls), DENSE)), 4.0, 0.2, 0.05)) is told
