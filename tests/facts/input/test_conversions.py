"""What converting the arguments takes, from the trace and what the agent noted of two calls."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.builders import Row, chart, executor, line, marker, recording, trace
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.terms.verdict import Location

STEPS = 6
MATRIX = {"place": "0", "kind": "numpy", "dtype": "float64", "shape": [300, 300], "same": True}
LABELS = {"place": "1", "kind": "numpy", "dtype": "int64", "shape": [300], "same": False}
TENSOR = {"place": "2", "kind": "tensor", "dtype": "<dtype: 'float32'>", "shape": [300]}


def converting(n: int, name: str = "step", tracing: str = "notTraced-nonXla") -> Iterable[Row]:
    """A call that converts for 2 and for 1 ms before its marked part begins."""
    at = 10.0 * n
    yield (name, at, at + 8, {"tf_function_call": tracing})
    yield ("tf.constant", at + 0.5, at + 2.5)
    yield ("tf.constant", at + 2.5, at + 3.5)
    yield marker(n, at + 4, at + 8)


def measured(*arguments: dict[str, Any], function: str = "step", rows: list[Row] | None = None) -> Conversions:
    fed = {"at": ["train.py", 41], "function": function, "arguments": list(arguments)}
    shown = rows or [row for n in range(STEPS) for row in converting(n)]
    beside = recording({"python": {"places": [], "fed": fed}})
    return chart(trace(host=[line("python", *shown)]), beside).fact(Conversions)


def test_each_argument_has_the_time_of_its_conversions() -> None:
    found = measured(MATRIX, LABELS, TENSOR)
    first, second = found.arrays
    assert found.at == Location("train.py", 41)
    # The last step has no end, and the first conversion lies before the first step.
    assert first.between_ms == pytest.approx(2.0, rel=0.2)
    assert second.between_ms == pytest.approx(1.0, rel=0.2)
    assert first.host_ms == 0.0
    assert (first.same, second.same) == (True, False)
    assert first.nbytes == 720_000


def test_tensors_are_no_arrays() -> None:
    assert measured(TENSOR).arrays == ()


@pytest.mark.parametrize(("arguments", "function"), [((MATRIX,), "step"), ((MATRIX, LABELS), "another")])
def test_calls_that_do_not_fit_the_arguments_are_not_guessed(
    arguments: tuple[dict[str, Any], ...], function: str
) -> None:
    with pytest.raises(Unavailable, match="does not show"):
        measured(*arguments, function=function)


def test_an_older_recording_does_not_tell_what_the_arguments_are() -> None:
    with pytest.raises(Unavailable, match="not recorded"):
        measured({"shape": [300, 300], "anew": True})


def test_a_cast_that_alone_reads_an_argument_is_found() -> None:
    operations = [
        {"name": "adj", "type": "Placeholder", "outputs": [["float64", [300, 300]]], "from": []},
        {
            "name": "Cast",
            "type": "Cast",
            "inputs": [["float64", [300, 300]]],
            "outputs": [["float32", [300, 300]]],
            "from": [0],
        },
    ]
    fed = {"at": ["train.py", 41], "function": "step", "arguments": [MATRIX, LABELS]}
    graphs = [{"name": "step", "operations": operations}]
    beside = recording({"python": {"places": [], "fed": fed}, "graphs": graphs})
    rows = [
        row
        for n in range(STEPS)
        for row in (*converting(n), ("FunctionRun", 10.0 * n + 4, 10.0 * n + 8, {"id": n + 1}))
    ]
    pool = [
        row
        for n in range(STEPS)
        for row in (
            ("ExecutorState::Process", 10.0 * n + 5, 10.0 * n + 8, {"id": n + 1}),
            ("Cast:Cast", 10.0 * n + 5, 10.0 * n + 7),
        )
    ]
    found = chart(trace(host=[line("python", *rows), line("pool", *pool)]), beside).fact(Conversions)
    first, second = found.arrays
    assert first.cast
    assert (first.cast.type, first.cast_to) == ("Cast", "float32")
    assert first.cast.ms == pytest.approx(2.0, rel=0.2)
    assert second.cast is None


@pytest.mark.parametrize("record", [{"python": {"places": []}}, {"python": {"fed": None}}])
def test_a_recorded_run_without_such_a_call_says_which_calls_are_looked_at(record: Any) -> None:
    """fit() takes arrays itself: the training function is given an iterator."""
    with pytest.raises(Unavailable, match="looked at only where") as why:
        chart(trace(host=[line("python", *converting(0))]), recording(record)).fact(Conversions)
    assert "tfdoctor profile" not in str(why.value)


def test_a_trace_alone_has_to_be_recorded_again() -> None:
    with pytest.raises(Unavailable, match="tfdoctor profile"):
        chart(trace(host=[line("python", *converting(0))]), recording()).fact(Conversions)


TABLE = {"place": "table", "kind": "numpy", "dtype": "float64", "shape": [60000, 100], "same": True}
TOKENS = {"place": "tokens", "kind": "numpy", "dtype": "int64", "shape": [64, 24], "same": False}


def fed(*arguments: dict[str, Any], starts: bool = True) -> Chart:
    """A session that prepares what it is fed for 3 of 6 ms before it starts the graph, in steps of 8 ms."""
    feeds = {"at": ["train.py", 39], "arguments": list(arguments)}
    rows = [
        row
        for n in range(STEPS)
        for row in (
            marker(n, 8.0 * n, 8.0 * n + 6.0),
            ("SessionRun" if starts else "FunctionRun", 8.0 * n + 3.0, 8.0 * n + 6.0, {"id": n + 1}),
        )
    ]
    pool = [
        row
        for n in range(STEPS)
        for row in (executor(8.0 * n + 4, 8.0 * n + 6, n + 1), ("a:Mul", 8.0 * n + 4, 8.0 * n + 6))
    ]
    host = [line("python", *rows), line("pool", *pool)]
    return chart(trace(host=host), recording({"python": {"places": [], "feeds": feeds}}))


def test_the_time_before_a_session_starts_its_graph_goes_to_the_arrays_by_their_bytes() -> None:
    found = fed({**TABLE, "fed_as": "float32"}, {**TABLE, "fed_as": "float64"}).fact(Conversions)
    first, second = found.arrays
    assert found.at == Location("train.py", 39)
    assert (first.host_ms, second.host_ms) == pytest.approx((3.0 * 12 / 28, 3.0 * 16 / 28), rel=0.05)
    assert (first.cast_to, first.place, first.fed, first.between_ms) == ("float32", "table", True, 0.0)


def test_a_small_array_gets_none_of_pythons_own_work_in_the_session() -> None:
    """Trap: weights of ten classes, alone beside a small batch."""
    found = fed({**TOKENS, "shape": [10], "same": True}, TOKENS).fact(Conversions)
    assert found.host_ms < 0.1


def test_what_lists_take_beside_arrays_is_unknown() -> None:
    with pytest.raises(Unavailable, match="fed lists beside arrays"):
        fed(TABLE, {"place": "rows", "kind": "python"}).fact(Conversions)


def test_a_trace_without_the_start_of_graphs_tells_nothing_of_feeds() -> None:
    with pytest.raises(Unavailable, match="does not show how Session"):
        fed(TABLE, starts=False).fact(Conversions)
