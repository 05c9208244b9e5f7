"""tf.functions called many times in a step for one example: which, how often, where, and their time."""

from typing import Any

import pytest

from tests.builders import Row, executor, graph_operation, marker
from tests.facts.step_time.sampled import place, sampled
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.timed_line import SlowCall
from tfdoctor.rules.slow_call.single_calls import SingleCalls
from tfdoctor.terms.verdict import Location, Stage

STEPS = 20
WAYS: dict[str, Any] = {"calls": "tensorflow.Function.__call__", "inside": True}


def step(n: int, calls: int, computes: float) -> list[Row]:
    """Twenty ms: a training call of 4 that computes from 1 to 3, then calls of ``policy`` of 1 ms each."""
    at = 20.0 * n
    rows: list[Row] = [
        marker(n, at, at + 4),
        executor(at + 0.9, at + 3.1, n + 1),
        ("model/dense/MatMul:MatMul", at + 1, at + 3),
    ]
    for call in range(calls):
        begin = at + 4.5 + 1.2 * call
        rows += [
            ("policy", begin, begin + 1, {"tf_function_call": "notTraced-nonXla"}),
            executor(begin + 0.1, begin + 0.15 + computes, 100 * n + call + 50),
            ("policy/dense/MatMul:MatMul", begin + 0.1, begin + 0.1 + computes),
        ]
    return rows


def graph(*shapes: list[int | None], **more: Any) -> dict[str, Any]:
    operations = [
        graph_operation(f"x{number}", "Placeholder", [], [["float32", shape]])
        for number, shape in enumerate(shapes)
    ]
    return {"name": "policy", "kind": "function", "operations": operations, **more}


def found(*graphs: dict[str, Any], calls: int = 10, computes: float = 0.1, **python: Any) -> SingleCalls:
    rows = [row for n in range(STEPS) for row in step(n, calls, computes)]
    rows.append(("tfdoctor_end", 20.0 * STEPS, 20.0 * STEPS))
    at = [20 * n + 5.0 for n in range(STEPS - 1)]
    places = place(9, *(ms - 0.8 for ms in (*at, *at)), **WAYS), place(73, *at, **WAYS)
    return sampled(rows, *python.pop("places", places), program={"graphs": list(graphs)}, **python).fact(
        SingleCalls
    )


def test_the_calls_are_counted_and_all_but_one_are_spared() -> None:
    (one,) = found(graph([1, 192], [])).calls
    assert one.name == "policy"
    assert one.calls == pytest.approx(10.0)
    assert one.call_ms == pytest.approx(1.0, rel=0.05)
    assert (one.line.at, one.line.call) == (Location("train.py", 73), SlowCall.SINGLE)
    assert (one.line.seen, len(one.line.steps)) == (STEPS - 1, STEPS)
    parts = one.line.parts_ms
    assert parts[Stage.DEVICE] == pytest.approx(0.9 * 1.0, rel=0.1)
    assert parts[Stage.BETWEEN] == pytest.approx(0.9 * 9.0, rel=0.1)


@pytest.mark.parametrize(("calls", "reported"), [(8, True), (7, False)])
def test_a_few_calls_are_not_reported(calls: int, *, reported: bool) -> None:
    assert bool(found(graph([1, 192]), calls=calls).calls) is reported


@pytest.mark.parametrize(("computes", "reported"), [(0.4, True), (0.6, False)])
def test_calls_that_mostly_compute_are_not_reported(computes: float, *, reported: bool) -> None:
    assert bool(found(graph([1, 192]), computes=computes).calls) is reported


@pytest.mark.parametrize(
    ("graphs", "reported"),
    [
        ([graph([1, 192]), graph([None, 192])], True),
        ([graph([8, 192])], False),
        ([graph([1, 192]), graph([64, 192])], False),  # most calls may be for 64
        ([graph([None, 192])], False),
        ([graph([1, 192], [192])], False),  # a vector may be anything
        ([graph([192])], False),
        ([graph([])], False),
        ([graph([1, 192], outer="train")], False),
        ([graph([1, 192], [192, 4], captured=["x1"])], True),
        ([], False),
    ],
)
def test_the_graphs_say_whether_calls_are_for_one_example(graphs: list[dict[str, Any]], *, reported: bool) -> None:
    assert bool(found(*graphs).calls) is reported


def test_functions_that_update_variables_and_the_training_function_are_left_out() -> None:
    """Trap: online learning trains on one example at a time; one call for all is another training."""
    updates = graph([1, 192])
    updates["operations"].append(graph_operation("w", "AssignAddVariableOp"))
    assert not found(updates).calls
    assert not found(graph([1, 192]), fed={"function": "policy"}).calls


def test_without_samples_no_line_is_known() -> None:
    with pytest.raises(Unavailable, match="have no time"):
        found(graph([1, 192]), began_unix_ns=None)
    assert not found(graph([1, 192]), places=[]).calls
