"""The lines that the host's time goes to: samples count where the trace shows nothing else at work."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import Row, chart, executor, line, manifest, marker, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.host_lines import (
    HostLine,
    HostLines,
    LineWork,
    by_caller,
    shown,
    work_of,
)
from tfdoctor.recording.program import SeenPlace
from tfdoctor.verdict import Location, Stage

STEPS, BEGAN_NS = 8, 1_000_000_000_000
CALLS, RUNS = (
    "tensorflow.python.polymorphic_function.Function.__call__",
    "tensorflow.execute.quick_execute",
)


def step(n: int) -> list[Row]:
    """Ten ms: a call of 8 that computes from 2 to 4 and from 5 to 6."""
    at = 10.0 * n
    return [
        marker(n, at, at + 8),
        executor(at + 1.9, at + 6.1, n + 1),
        ("model/dense/MatMul:MatMul", at + 2, at + 4),
        ("model/loss/Mul:Mul", at + 5, at + 6),
    ]


def place(number: int, *offsets_ms: float, **more: Any) -> dict[str, Any]:
    """A place that was seen in each step, so many ms after the step began."""
    when = [round(1e3 * (10 * n + ms)) for n in range(STEPS - 1) for ms in offsets_ms]
    return {"at": ["/home/me/train.py", number], "seen": len(when), "when_us": when, **more}


def found(*places: dict[str, Any], **python: Any) -> HostLines:
    rows = [row for n in range(STEPS) for row in step(n)]
    python = {"began_unix_ns": BEGAN_NS, "places": list(places), **python}
    recorded = replace(trace(host=[line("python", *rows)]), started_unix_ns=BEGAN_NS)
    return chart(recorded, recording({"python": python}, manifest=manifest())).fact(HostLines)


def test_samples_count_where_the_device_is_idle() -> None:
    lines = found(place(3, 1.0, 7.0), place(4, 3.0, calls=CALLS, runs=RUNS, inside=True))
    (host,) = lines.parts[Stage.HOST]
    assert (host.at, host.seen) == (Location("train.py", 3), 14)
    assert host.ms == pytest.approx(5.0, rel=0.03)  # all: 2 + 1 + 2 ms; the last step has no end
    assert lines.parts[Stage.BETWEEN] == ()


def test_a_part_is_divided_by_samples() -> None:
    lines = found(place(3, 1.0, 1.2, 7.0), place(4, 7.5), place(5, 9.0))
    assert [one.ms for one in lines.own(Stage.HOST)] == pytest.approx([3.75, 1.25], rel=0.03)
    assert [one.at for one in lines.own(Stage.BETWEEN)] == [Location("train.py", 5)]


def test_a_wait_between_two_operations_is_not_the_line_s_own_work() -> None:
    waits = place(3, 1.0, 4.5, calls=CALLS, runs=RUNS, inside=True)
    lines = found(waits, place(3, 7.0))
    assert lines.dispatching_ms == pytest.approx(5 / 3, rel=0.03)
    works = sorted(one.work for one in lines.own(Stage.HOST))
    assert works == [LineWork.ENTERING, LineWork.PYTHON]


@pytest.mark.parametrize("missing", [{"began_unix_ns": None}])
def test_samples_without_a_time_tell_nothing(missing: dict[str, Any]) -> None:
    with pytest.raises(Unavailable, match="no time in the trace"):
        found(place(3, 1.0), **missing)


@pytest.mark.parametrize(
    ("calls", "runs", "inside", "expected"),
    [
        ("numpy.histogram", "numpy.linspace", False, LineWork.PYTHON),
        ("", "", False, LineWork.PYTHON),
        ("tensorflow.ops._EagerTensorBase.numpy", "tensorflow.ops._numpy", False, LineWork.READING),
        ("tensorflow.convert_to_tensor", "tensorflow.x.convert", False, LineWork.CONVERTING),
        (CALLS, "tensorflow.constant_op.convert_to_eager_tensor", True, LineWork.CONVERTING),
        ("tensorflow._slice", "tensorflow.convert_to_eager_tensor", False, LineWork.OPERATIONS),
        (CALLS, RUNS, True, LineWork.ENTERING),
        (CALLS, "tensorflow.ops._EagerTensorBase.shape", True, LineWork.LOOPING),
        ("keras.src.trainer.Trainer.fit", RUNS, True, LineWork.ENTERING),
        ("keras.src.trainer.Trainer.fit", "tensorflow.optional_has_value", True, LineWork.LOOPING),
        ("keras.src.trainer.Trainer.call", "tensorflow.add", False, LineWork.OPERATIONS),
        (CALLS, RUNS, False, LineWork.OPERATIONS),
    ],
)
def test_what_a_line_does_follows_from_the_functions_below_it(
    calls: str, runs: str, *, inside: bool, expected: LineWork
) -> None:
    assert work_of(SeenPlace(1, calls=calls, runs=runs, inside=inside)) is expected


def test_within_a_compiled_function_s_call_the_innermost_function_is_shown() -> None:
    assert shown(SeenPlace(1, calls=CALLS, runs=RUNS, inside=True)) == RUNS
    assert shown(SeenPlace(1, calls="numpy.dot", runs="numpy.x", inside=True)) == "numpy.dot"


def test_the_lines_of_a_function_are_merged_by_its_caller() -> None:
    caller = Location("train.py", 30)
    lines = [
        HostLine(Location("train.py", n), 3, 1.5, calls={"": 3}, callers={caller: 3})
        for n in (4, 5)
    ]
    (merged,) = by_caller([*lines, HostLine(Location("train.py", 9), 8, 4.0)])
    assert (merged.at, merged.seen, merged.ms) == (caller, 6, 3.0)
    assert merged.calls == {"": 6}
