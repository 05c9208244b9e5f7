"""Shapes of a run without program record, from what the profiler wrote beside operations."""

from tests.facts.kit import *
from tfdoctor.facts.operations.loop_work import independent
from tfdoctor.facts.operations.shapes import parse
from tfdoctor.facts.run.program import Shape

X, W, Y = "float[2,8,8,3]", "float[3,3,3,16]", "[2,4,4,16]"
POSITIONS = 2 * 4 * 4
CONVOLUTION = 2 * POSITIONS * 9 * 3 * 16


def kernel(operation: str, shape: str, start: float = 0) -> Row:
    return ("volta_sgemm_nn", start, start + 1, {"tf_op": operation, "shape": shape})


def measured(*kernels: Row) -> OperationTime:
    gpu: Machine = v100(line("Stream #1", *kernels))
    (row,) = chart(trace([markers(1, 100)], gpus=[gpu])).fact(Operations).rows
    return row


@cases(
    ("m/d/MatMul:MatMul", ["(half[32,100];half[100,10])"], 2 * 32 * 100 * 10, (100, 10)),
    ("m/d/MatMul:MatMul", ["(half[32,9];half[9,10])", "(half[7,9];half[9,10])"], None, None),  # runs that differ
    # the gradient by a convolution's input needs no more; that by its weights has an operand of sizes
    ("g/C:Conv2DBackpropInput", [f"(int32[4];{W};float{Y})"], CONVOLUTION, (3, 3, 3, 16)),
    ("g/C:Conv2DBackpropFilter", [f"({X};int32[4];float{Y})"], None, None),
)
def test_a_products_flops_and_dimensions(
    operation: str, shapes: list[str], flops: float | None, dimensions: Any
) -> None:
    row = measured(*(kernel(operation, shape, 2.0 * n) for n, shape in enumerate(shapes)))
    assert (row.flops, row.kernel) == (flops, dimensions)
    assert row.precision == ("float16" if "half" in shapes[0] and len(shapes) == 1 else "float32")


def test_a_convolution_needs_its_result_which_a_trace_lacks() -> None:
    assert measured(kernel("m/c/Conv2D:Conv2D", f"({X};{W})")).flops is None


def test_a_trace_without_shapes_has_none() -> None:
    found = chart(trace([markers(1, 9)], gpus=[v100(line("Stream #1", ("k", 0, 1)))]))
    assert found.fact(TracedShapes).operations == {}


test_texts_of_shapes = Names(__file__, "shapes").test(parse)

# Bodies of loops: which of them pass nothing to the next iteration, and what only looks like it.

SCALAR = ()
ROW = (32, 8)
WHILE = "map/while"
COUNTER = f"{WHILE}/{WHILE}/loop_counter"
LOOP = Operation(name=WHILE, type="While", sources=(f"{WHILE}/loop_counter",), graph=0)


def op(name: str, kind: str, *sources: str, dtype: str = "float32", shape: Shape | None = ROW) -> Operation:
    return Operation(name=name, type=kind, sources=sources, outputs=((dtype, shape),), graph=1)


def entering(name: str, dtype: str = "float32", shape: Shape | None = ROW) -> Operation:
    return op(name, "Placeholder", dtype=dtype, shape=shape)


def returned(name: str, of: Operation) -> Operation:
    return op(name, "Identity", of.name, dtype=of.outputs[0][0], shape=of.outputs[0][1])


ONE = op("one", "Const", dtype="int32", shape=SCALAR)
COUNT = entering(COUNTER, "int32", SCALAR)
INDEX = entering("index", "int32", SCALAR)
LIST = entering("list", "variant", SCALAR)
STATE = entering("state")
NEXT_COUNT = op("next_count", "AddV2", COUNT.name, "one", dtype="int32", shape=SCALAR)
NEXT_INDEX = op("next_index", "AddV2", "index", "one", dtype="int32", shape=SCALAR)


def is_independent(variables: Iterable[Any], *inner: Operation, loop: Operation = LOOP) -> bool:
    """Build a body from its variables, as they enter and as they leave, and the operations between."""
    pairs = [(COUNT, NEXT_COUNT), (INDEX, NEXT_INDEX), *variables]
    entering = [old for old, _ in pairs]
    leaving = [returned(f"out{n}", new) for n, (_, new) in enumerate(pairs)]
    made = [new for _, new in pairs if new not in entering and new not in inner]
    body = (*entering, ONE, *inner, *made, *leaving)
    return WHILE in independent(Program((loop, *body)), [loop])


ROWS = entering("rows", "variant", SCALAR)
READ = op("read", "TensorListGetItem", "rows", "index")
WORK = op("work", "Square", "read")


def written(value: str, into: str = "list") -> Operation:
    return op("write", "TensorListSetItem", into, "index", value, dtype="variant", shape=SCALAR)


ADDED = op("new", "Mul", "read", "state")
NOISE = op("noise", "RandomStandardNormal", "one")
BEFORE = op("before", "TensorListGetItem", "list", "index")
ROW_OF = op("row", "ResourceGather", "table", "index")
TABLE, STATES = entering("table", "resource", SCALAR), entering("table")
TOTAL = op("total", "AddV2", "state", "read")
TOKEN = entering("token", "int32", SCALAR)
LOGITS = op("logits", "GatherV2", "table", "token")
CHOSEN = op("new", "ArgMax", "logits", dtype="int32", shape=SCALAR)
DOUBLE = op("double", "AddV2", "token", "token", dtype="int32", shape=SCALAR)

test_iterations_that_need_none_of_another = answers(
    is_independent,
    ([(LIST, written("work"))], ROWS, READ, WORK, True),  # a map writes what it makes of its row
    ([(LIST, written("noise"))], NOISE, True),  # random numbers are drawn in any order
    ([(LIST, written("new")), (STATE, STATE)], ROWS, READ, ADDED, True),  # what stays the same is no state
    ([(STATE, WORK)], ROWS, READ, True),  # each iteration replaces it, and none reads it
    ([(LIST, written("row"))], ROW_OF, TABLE, True),  # a lookup has no effect
    # Trap: tf.scan writes a list as tf.map_fn does.
    ([(LIST, written("new")), (STATE, ADDED)], ROWS, READ, False),
    ([(STATE, TOTAL)], ROWS, READ, False),  # a sum
    ([(LIST, written("before"))], BEFORE, False),  # Trap: dynamic programming over a table.
    # Trap: a token that the next iteration reads, a whole number that does not count.
    ([(TOKEN, CHOSEN), (LIST, written("logits"))], LOGITS, STATES, False),
    ([(TOKEN, DOUBLE)], False),
    ([(TOKEN, op("new", "AddV2", "token", "x"))], op("x", "Mul", "token"), False),
    # iterations that depend on each other without an edge
    *(
        ([(LIST, written("work"))], ROWS, READ, WORK, op("side", kind, "read"), False)
        for kind in ("AssignAddVariableOp", "ResourceScatterAdd", "EagerPyFunc")
    ),
)


def test_a_loop_whose_body_is_not_recorded_is_unknown() -> None:
    assert independent(Program((LOOP,)), [LOOP]) == frozenset()
    assert independent(None, [LOOP]) == frozenset()
    assert not is_independent([(LIST, written("work"))], ROWS, READ, WORK, loop=replace(LOOP, sources=()))


def test_the_condition_is_no_body() -> None:
    """It begins with the same placeholder, and returns a bool."""
    less = op("less", "Less", COUNTER, "one", dtype="bool", shape=SCALAR)
    condition = (COUNT, INDEX, LIST, ONE, less, returned("out", less))
    assert independent(Program((LOOP, *condition)), [LOOP]) == frozenset()
