"""What the device's time went to, and what the program says of it."""

from itertools import product as every

from tests.facts.kit import *
from tfdoctor.facts.operations.matmuls import of_unknown_precision, repeated
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.run.program import Shape
from tfdoctor.terms.units import count

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


told = Told()
KNOWN = "name type layer at ms calls kernel flops nbytes precision ran is_matrix is_depthwise"


def known(of: Operations) -> object:
    """What is known of operations, one after the other."""
    return [{name: value for name, value in fields(row, KNOWN).items() if value} for row in of.rows]


def seen(*rows: Row, record: dict[str, Any] | None = None) -> object:
    return known(on_cpu(*rows, record=record))


def of_kernels(*rows: Row) -> object:
    """What is known of the operations of a GPU's kernels, and how much is of unknown ones."""
    found = chart(trace([markers(1, 10)], gpus=[v100(line("Stream #1", *rows))])).fact(Operations)
    return known(found), fields(found, "unnamed why_unnamed")


def on_threads(*threads: Thread) -> object:
    """What is known of the operations, and what the device's part of the step is."""
    facts = chart(trace(threads))
    return known(facts.fact(Operations)), facts.fact(Breakdown)["device"]


@told
def an_operation_that_python_runs_is_not_the_graphs_of_the_same_name() -> object:
    """TensorFlow names both by their type: the casts of tf.summary and the first one of a compiled step."""
    python = line("python", ("EagerLocalExecute: Cast", 60, 90))
    graph = line("tf_Compute/1", executor(0, 50), ("Cast:Cast", 10, 30))
    record = recording(program(graph_operation("Cast", "Cast", at=HERE)))
    return known(chart(trace([markers(1, 100), python, graph]), record).fact(Operations))


test_names_of_types_and_kernels = Names(__file__, "names").test(
    {
        "the type that the graph had before it was rewritten": base_type,
        "the precision of a kernel by its name": lambda kernel: (
            OperationTime(name="m/c", type="Conv2D", ms=1, ran=(kernel,)).precision
        ),
    }
)

FUSED = program(
    graph_operation("seq/c0/convolution", "Conv2D", layer="c0"),
    graph_operation("seq/c0/Relu", "Relu", layer="c0"),
    graph_operation("seq/c1/convolution", "Conv2D", [f32(8, 9, 9, 3), f32(3, 3, 3, 16)], layer="c1", at=HERE),
    graph_operation("seq/c1/Reshape", "Reshape", layer="c1"),
    graph_operation("seq/c1/BiasAdd", "BiasAdd", layer="c1"),
    graph_operation("seq/c1/Relu", "Relu", layer="c1"),
)
RELU = program(graph_operation("m/act/Relu", "Relu", [f32(2, 2)], layer="act"))
DENSE_D = graph_operation("seq/d/MatMul", "MatMul", layer="d", at=HERE)
MAPPED = {"kind": "dataset", "operations": [graph_operation("add", "AddV2", layer="someones", at=HERE)]}
CALLS = (
    "",
    "StatefulPartitionedCall/",
    "StatefulPartitionedCall/StatefulPartitionedCall_3/",
    "while/body/_1/PartitionedCall/",
)


def batched(batch: int, *more: dict[str, Any], kind: str = "function") -> dict[str, Any]:
    forward = graph_operation("seq/d/MatMul", "MatMul", [f32(batch, 4), f32(4, 8)], [f32(batch, 8)])
    return {"kind": kind, "operations": [forward, *more]}


TRAINING = batched(32, graph_operation("gradient_tape/seq/d/MatMul", "MatMul"))
THREE_GRAPHS = {"graphs": [batched(7), TRAINING, batched(9, kind="dataset")]}


def layered(*lines: int) -> dict[str, Any]:
    """The record of a model whose layers of one name were made on these lines."""
    return program(DENSE_D, layers=[{"name": "d", "class": "Dense", "at": ["/home/me/model.py", n]} for n in lines])


told[lambda name, record: seen((name, 0, 10), record=record)] = {
    "a fused convolution is found under its bias's name": ("seq/c1/BiasAdd:_FusedConv2D", FUSED),
    "or under its activation's": ("seq/c1/Relu:_FusedConv2D", FUSED),
    "without its kind nearby it keeps what its name says": ("m/act/Relu:_FusedConv2D", RELU),
    **{f"within functions: {call or None}": (f"{call}seq/d/MatMul:MatMul", program(DENSE_D)) for call in CALLS},
    "the training graph goes before an evaluation": ("seq/d/MatMul:MatMul", THREE_GRAPHS),
    "the functions of datasets are no part of the step": ("add:AddV2", {"graphs": [MAPPED]}),
    "the line is the layers": ("seq/d/MatMul:MatMul", layered(3)),
    "where no two share its name": ("seq/d/MatMul:MatMul", layered(3, 4)),
}

STARTS = [0, 1000, 1100, 1200, 1300, 1400]
OUTLYING = line("p", *(marker(n, at, at + 90) for n, at in enumerate(STARTS)), ("tfdoctor_end", 1500, 1500))
SLOW = line("t", ("slow:Conv2D", 0, 900), *(("a:Conv2D", at, at + 50) for at in STARTS[1:]))
ONCE = line("t/1", ("a:Conv2D", 0, 30), ("b:Relu", 50, 60))
TWICE = line("t/2", ("c:Conv2D", 10, 30), ("a:Conv2D", 150, 190))
FOUR = line("p", marker(0, 0, 100, steps=4), ("tfdoctor_end", 100, 100))
CONV, GRADIENT = {"tf_op": "m/c/Conv2D:Conv2D"}, {"tf_op": "gradient_tape/m/c/Conv2D:Conv2D"}

told[on_threads] = {
    "the operations sum to the device's part": (markers(2, 100), ONCE, TWICE),
    "operations of outlying steps do not count": (OUTLYING, SLOW),
    "several training steps in a call share its operations": (FOUR, line("t", ("a:Conv2D", 0, 40))),
}
told[of_kernels] = {
    "the kernels of one operation are one row": (("nchwToNhwc", 0, 1, CONV), ("volta_scudnn", 1, 9, CONV)),
    "a fifth is of unknown operations": (("my_kernel", 0, 1), ("volta_scudnn", 1, 5, GRADIENT)),
    "a tenth is": (("my_kernel", 0, 1), ("volta_scudnn", 1, 10, GRADIENT)),
    "no whole step to judge by": [("k", 0, 10, {"tf_op": "m/dropout/Mul:Mul"})],
}

# Arithmetic, by hand

IMAGES, WEIGHTS, MAPS = f32(32, 28, 28, 16), f32(3, 3, 16, 24), f32(32, 26, 26, 24)


def counted(name: str, kind: str, inputs: list[Any], outputs: Any = (), run: Any = None, **attrs: Any) -> object:
    record = program(graph_operation(name, kind, inputs, outputs, attrs=attrs), run=run or {})
    return seen((f"{name}:{kind}", 0, 10), record=record)


HALVES = [["bfloat16", [1, 8, 8, 3]], ["bfloat16", [3, 3, 3, 8]]]
DEPTHWISE = OperationTime(name="d", type="DepthwiseConv2dNativeBackpropFilter", ms=1)
OPEN = ("m", "MatMul", [f32(None, 100), f32(100, 10)], [f32(None, 10)])
FROM_CHANNELS, TO_CHANNELS = [f32(32, 16, 28, 28), WEIGHTS], [f32(32, 24, 26, 26)]
VOLUME = f32(3, 3, 3, 4, 8)

told[counted] = {
    "an unknown rank gives no number": ("m", "MatMul", [["float32", None], f32(4, 8)], [f32(2, 8)]),
    "nor do unknown dimensions": ("m", "MatMul", [f32(None, None), f32(4, 8)], [f32(2, 8)]),
    "a product of nothing": ("m", "MatMul", [f32(0, 4), f32(4, 8)], [f32(0, 8)]),
    "an open batch": OPEN,
    "an open batch that the run says": (*OPEN, {"batch_size": 64}),
    "bytes are those of all operands and results": ("a", "AddV2", [f32(10, 10), ["bfloat16", [10]]], [f32(10, 10)]),
    "of a resource unknown": ("a", "AddV2", [f32(10, 10), ["resource", []]], [f32(10, 10)]),
    "the program knows the precision better than a kernel's name": ("c", "Conv2D", HALVES),
    "a filter's gradient": ("c", "Conv2DBackpropFilter", [IMAGES, ["int32", [4]], MAPS], [WEIGHTS]),
    "of a volume too": ("c", "Conv3DBackpropFilterV2", [IMAGES, ["int32", [5]], MAPS], [VOLUME]),
}
told.add("channels first", lambda: counted("c", "Conv2D", FROM_CHANNELS, TO_CHANNELS, data_format="NCHW"))
told.add("turned", lambda: counted("m", "MatMul", [f32(100, 32), f32(100, 10)], [f32(32, 10)], transpose_a=True))
told.add("a depthwise filter's gradient is no work for a matrix unit", lambda: known(Operations((DEPTHWISE,))))


@told
def a_tpu_counts_its_own_flops_and_bytes() -> object:
    hlo = "%fusion.1 = bf16[128,256]{1,0} fusion()"
    counts = {"flops": 1000, "bytes_accessed": 50}
    stats = {"hlo_category": "convolution fusion", "tf_op": "m/d/MatMul:MatMul", **counts}
    tpu = device(line("XLA Ops", (hlo, 0, 9)), line("Steps", ("0", 0, 10)), kinds={hlo: stats})
    return known(chart(trace([], tpus=[tpu])).fact(Operations))


def test_the_memorys_rate_is_that_of_large_elementwise_operations() -> None:
    large, small = f32(1000, 1000), f32(10)
    record = program(
        graph_operation("a", "AddV2", [large, large], [large]),
        graph_operation("b", "AddV2", [small, small], [small]),
        graph_operation("c", "Tanh", [large], [large]),
    )
    found = on_cpu(("a:AddV2", 0, 6), ("b:AddV2", 6, 20), ("c:Tanh", 20, 90), record=record)
    assert found.streaming_rate == pytest.approx(12e6 / 6e-3)
    assert on_cpu(("c:Tanh", 0, 9)).streaming_rate is None  # such an operation; nor is a program needed


def test_the_batch_size_is_that_of_the_dataset_that_feeds_the_training() -> None:
    def dataset(one: int, size: int | None, *inputs: int) -> dict[str, Any]:
        parameters = {"batch_size": size} if size else {}
        return {"id": one, "class": "D", "inputs": list(inputs), "parameters": parameters}

    datasets = [dataset(0, None), dataset(1, 16, 0), dataset(2, None, 1), dataset(9, 99)]
    record = {"graphs": [], "datasets": datasets, "feeds": 2}
    found = chart(trace([]), recording(record)).fact(Program)
    assert found.batch_size == 16
    assert [one.id for one in found.feeding] == [2, 1, 0]


def sources(**recorded: Any) -> object:
    rows = [graph_operation("hot", "OneHot"), graph_operation("m", "MatMul", **recorded)]
    return chart(trace([]), recording(program(*rows))).fact(Program).by_name["m"].sources


def test_the_program_tells_which_operations_feed_which() -> None:
    assert sources(**{"from": [0, None]}) == ("hot", "")
    assert sources() == ()
    assert sources(**{"from": [7]}) == ("",)  # not there


# FLOPs of products from shapes, set against loops that count; unknown sizes stay unknown.

PROGRAM = Program(settings=RunSettings(batch_size=16))
SIZE = st.integers(1, 6)


def flops_of_kind(kind: str, inputs: list[Shape], outputs: list[Shape], **attrs: Any) -> float | None:
    tensors = tuple(("float32", shape) for shape in inputs)
    results = tuple(("float32", shape) for shape in outputs)
    one = Operation(name="x", type=kind, inputs=tensors, outputs=results, attrs=Attributes(**attrs))
    return flops_of(kind, one, PROGRAM)


test_products_of_all_kinds = answers(
    lambda kind, inputs, outputs, attrs: flops_of_kind(kind, inputs, outputs, **attrs),
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
    ("Conv3DBackpropFilterV2", [(2, 9, 9, 9, 4), (5,), (2, 7, 7, 7, 8)], [(3, 3, 3, 4, 8)], {}, 2 * 2 * 7**3 * 864),
    ("Conv2DBackpropInput", [(4,), (3, 3, 3, 5), (2, 4, 4, 5)], [(2, 8, 8, 3)], {}, 2 * 2 * 16 * 9 * 3 * 5),
    ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [(3, 3, 3, 5)], {}, 2 * 2 * 16 * 9 * 3 * 5),
    ("DepthwiseConv2dNative", [(2, 8, 8, 6), (3, 3, 6, 2)], [(2, 8, 8, 12)], {}, 2 * 2 * 64 * 12 * 9),
    (f"{DEPTHWISE.type}", [(2, 8, 8, 6), (4,), (2, 8, 8, 6)], [(3, 3, 6, 1)], {}, 2 * 2 * 64 * 6 * 9),
    ("Conv2D", [(2, 8, 8, 3), (3, 3, 3, 5)], [], {}, None),
    ("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 4, 4, 5)], [], {}, None),
    ("MatMul", [(16, 8)], [(16, 4)], {}, None),
    ("MatMul", [(16, None), (8, 4)], [(16, 4)], {}, None),
    ("Relu", [(16, 8)], [(16, 8)], {}, None),
)


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


test_einsums = answers(
    einsum_flops,
    ("...ij,...jk->...ik", [(7, 2, 3), (7, 3, 5)], 2 * 7 * 2 * 3 * 5),
    ("...ij,jk->...ik", [(7, 8, 2, 3), (3, 5)], 2 * 7 * 8 * 2 * 3 * 5),
    ("ab->ba", [(2, 3)], 0),
    ("a,b,c->abc", [(2,), (3,), (4,)], None),
    ("ab,bc->ac", [(2, 3), None], None),
    ("ab,bc->ac", [(2, 3, 4), (3, 4)], None),
    ("", [(2, 3), (3, 4)], None),
)


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
    shown = [(name, number, time) for name, _, _, number, time in layer_table(rows).rows]
    assert shown == [("l", count(2), ms(2)), ("c", count(1), ms(1))]


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


test_how_fast_an_operation_can_get = answers(
    floor,
    (matmul(ms=10.0, nbytes=4e9), 2.0),  # its bytes have to come from memory, in 16 bits
    (matmul(ms=10.0, nbytes=4e9, dtype="bfloat16"), 4.0),
    (matmul(ms=10.0, flops=3e11), 3.0),  # its products have to be computed
    (matmul(ms=10.0, flops=3e11, calls=2.0), 6.0),
    (matmul(ms=1.0, nbytes=1.9e6), 0.0),  # fits into caches
    (matmul(ms=1.0, nbytes=4e9), 1.0),  # no floor is above what was measured
    # A CPU's rate is what the run's own operations stream: 20 GB/s.
    (matmul(ms=10.0, nbytes=8e7), CPU, OperationTime(name="add", type="AddV2", ms=2.0, nbytes=4e7), 2.0),
)

test_what_is_not_known = unavailable(
    (lambda: chart(trace([markers(1, 10)], gpus=[v100()], errors=("libcupti",))).fact(Operations), "CUPTI"),
    (lambda: chart(trace([markers(1, 10)])).fact(Operations), "no operation"),
    (lambda: chart(trace([markers(1, 10), line("t", ("a:Conv2D", 50, 60))])).fact(Operations), "steady steps"),
    (lambda: chart(trace([])).fact(Program), "tfdoctor profile"),
    (lambda: floor(matmul(ms=1.0, nbytes=4e9), CPU), "peak rates"),
)

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


def test_sources() -> None:
    given = {
        (): "range",
        (Source.VARIABLES,): "svd",
        (Source.RANDOM,): "noise truncated",
        (Source.BATCH, Source.VARIABLES): "y",
        (Source.UNKNOWN,): "lost numpy",
        (Source.BATCH,): "next",
    }
    known = DATAFLOW.computed_from()
    for sources, names in given.items():
        assert {known[name] for name in names.split()} == {frozenset(sources)}, names


def test_what_a_gradient_or_a_variable_takes_is_not_for_metrics_only() -> None:
    names = ("sum", "decoded", "y", "gradient_tape/y", "range", "rows")  # rows: a sparse update is an update
    assert [name for name in names if DATAFLOW.only_metrics(name)] == ["sum", "decoded"]
    assert (DATAFLOW.feeds_gradients("y"), DATAFLOW.feeds_gradients("average")) == (True, False)


# Products of graphs that were not recorded: a recurrent layer's, in the body of its loop.

DENSE = matmul("MatMul", ms=1.0, layer="dense")


def looped(ms: float, calls: float = 80.0, ran: str = "") -> OperationTime:
    return matmul("MatMul", ms=ms, dtype="", name="MatMul", ran=ran, calls=calls)


def test_the_products_of_a_loop_are_said_to_be_unknown_with_their_share() -> None:
    rows = looped(0.12), looped(0.11), looped(5.0, ran="volta_sgemm_128x64_nn")  # a kernel tells the precision
    assert [bool(of_unknown_precision(Operations((row, DENSE)))) for row in rows] == [True, False, False]
    said = of_unknown_precision(Operations((looped(5.0), DENSE)))
    assert said.startswith("the precision of 5.00 ms of 6.00 ms of matmuls and convolutions per step is")


test_what_runs_again_and_again_is_small_and_often = answers(
    lambda calls, ms: bool(repeated(Operations((looped(ms, calls), DENSE)), 4.0, 0.2, 0.05)),
    (4.0, 0.8, True),
    (3.0, 0.6, False),
    (4.0, 0.81, False),
    (80.0, 0.0006 * 80, False),
    (80.0, 0.0007 * 80, True),  # a twentieth of the compute
)

test_operations = told.test("operations")
