"""Bodies of loops: which of them pass nothing to the next iteration, and what only looks like it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tfdoctor.facts.operations.loop_work import independent
from tfdoctor.facts.run.program import Operation, Program, Shape

SCALAR = ()
ROW = (32, 8)
W = "map/while"
COUNTER = f"{W}/{W}/loop_counter"
LOOP = Operation(name=W, type="While", sources=(f"{W}/loop_counter",), graph=0)


def op(name: str, kind: str, *sources: str, dtype: str = "float32", shape: Shape | None = ROW) -> Operation:
    return Operation(name=name, type=kind, sources=sources, outputs=((dtype, shape),), graph=1)


def given(name: str, dtype: str = "float32", shape: Shape | None = ROW) -> Operation:
    return op(name, "Placeholder", dtype=dtype, shape=shape)


def returned(name: str, of: Operation) -> Operation:
    return op(name, "Identity", of.name, dtype=of.outputs[0][0], shape=of.outputs[0][1])


ONE = op("one", "Const", dtype="int32", shape=SCALAR)
COUNT = given(COUNTER, "int32", SCALAR)
INDEX = given("index", "int32", SCALAR)
LIST = given("list", "variant", SCALAR)
STATE = given("state")
NEXT_COUNT = op("next_count", "AddV2", COUNT.name, "one", dtype="int32", shape=SCALAR)
NEXT_INDEX = op("next_index", "AddV2", "index", "one", dtype="int32", shape=SCALAR)


def is_independent(
    variables: Iterable[tuple[Operation, Operation]], *inner: Operation, loop: Operation = LOOP
) -> bool:
    """Build a body from its variables, as they enter and as they leave, and the operations between."""
    pairs = [(COUNT, NEXT_COUNT), (INDEX, NEXT_INDEX), *variables]
    entering = [old for old, _ in pairs]
    leaving = [returned(f"out{n}", new) for n, (_, new) in enumerate(pairs)]
    made = [new for _, new in pairs if new not in entering and new not in inner]
    body = (*entering, ONE, *inner, *made, *leaving)
    return W in independent(Program((loop, *body)), [loop])


ROWS = given("rows", "variant", SCALAR)
READ = op("read", "TensorListGetItem", "rows", "index")
WORK = op("work", "Square", "read")


def written(value: str, into: str = "list") -> Operation:
    return op("write", "TensorListSetItem", into, "index", value, dtype="variant", shape=SCALAR)


def test_a_map_writes_what_it_makes_of_its_row() -> None:
    assert is_independent([(LIST, written("work"))], ROWS, READ, WORK)


def test_random_numbers_are_drawn_in_any_order() -> None:
    noise = op("noise", "RandomStandardNormal", "one")
    assert is_independent([(LIST, written("noise"))], noise)


def test_a_value_that_stays_the_same_is_no_state() -> None:
    work = op("work", "Mul", "read", "state")
    assert is_independent([(LIST, written("work")), (STATE, STATE)], ROWS, READ, work)


def test_a_state_is_needed_by_the_next_iteration() -> None:
    """Trap: tf.scan writes a list as tf.map_fn does."""
    new = op("new", "MatMul", "state", "read")
    assert not is_independent([(LIST, written("new")), (STATE, new)], ROWS, READ)


def test_a_sum_over_the_iterations_is_a_state() -> None:
    total = op("total", "AddV2", "state", "read")
    assert not is_independent([(STATE, total)], ROWS, READ)


def test_the_last_value_is_no_state() -> None:
    """A value that each iteration replaces, and none reads."""
    assert is_independent([(STATE, WORK)], ROWS, READ)


def test_a_list_that_is_read_and_written_is_a_state() -> None:
    """Trap: dynamic programming over a table."""
    before = op("before", "TensorListGetItem", "list", "index")
    assert not is_independent([(LIST, written("before"))], before)


def test_a_whole_number_that_does_not_count_is_a_state() -> None:
    """Trap: a token that the next iteration reads."""
    token = given("token", "int32", SCALAR)
    new = op("new", "ArgMax", "logits", dtype="int32", shape=SCALAR)
    logits = op("logits", "GatherV2", "table", "token")
    assert not is_independent([(token, new), (LIST, written("logits"))], logits, given("table"))
    double = op("double", "AddV2", "token", "token", dtype="int32", shape=SCALAR)
    assert not is_independent([(token, double)])
    assert not is_independent([(token, op("new", "AddV2", "token", "x"))], op("x", "Mul", "token"))


@pytest.mark.parametrize("kind", ["AssignAddVariableOp", "ResourceScatterAdd", "EagerPyFunc"])
def test_iterations_can_depend_on_each_other_without_an_edge(kind: str) -> None:
    assert not is_independent([(LIST, written("work"))], ROWS, READ, WORK, op("side", kind, "read"))


def test_a_lookup_in_a_table_is_no_effect() -> None:
    row = op("row", "ResourceGather", "table", "index")
    assert is_independent([(LIST, written("row"))], row, given("table", "resource", SCALAR))


def test_a_loop_whose_body_is_not_recorded_is_unknown() -> None:
    assert independent(Program((LOOP,)), [LOOP]) == frozenset()
    assert independent(None, [LOOP]) == frozenset()
    assert not is_independent([(LIST, written("work"))], ROWS, READ, WORK, loop=replace(LOOP, sources=()))


def test_the_condition_is_no_body() -> None:
    """It begins with the same placeholder, and returns a bool."""
    less = op("less", "Less", COUNTER, "one", dtype="bool", shape=SCALAR)
    condition = (COUNT, INDEX, LIST, ONE, less, returned("out", less))
    assert independent(Program((LOOP, *condition)), [LOOP]) == frozenset()
