"""What Python does in and between the steps: tracing, single operations, compiling, and where it was seen."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import Row, chart, line, manifest, marker, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.step_time.python_work import CompileTime, EagerWork, Retracing
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.recording.run_log import LoopMakers, RunLog, RunProcess
from tfdoctor.terms.verdict import Location

STEPS = 6


def retraced(at: float) -> Iterable[Row]:
    """A call that builds its graph for 4 of 10 ms, prepares it for 2 and runs for 1; the marker is inside."""
    yield ("train_step", at, at + 8, {"tf_function_call": "traced-nonXla", "tracing_count": 9})
    yield ("tf.function-graph_building", at, at + 4)
    yield marker(int(at / 10), at + 4.5, at + 8)
    yield ("EagerExecute", at + 5, at + 8)
    yield ("EagerKernelExecute", at + 7, at + 8)
    yield ("EagerLocalExecute: __inference_train_step_1", at + 7, at + 8)


def test_tracing_is_building_and_preparing_inside_and_outside_of_the_call() -> None:
    rows = [row for n in range(STEPS) for row in retraced(10.0 * n)]
    graphs = [{"name": "train_step", "given": ["x", str(n)], "operations": []} for n in range(3)]
    beside = recording({"graphs": graphs})
    found = chart(trace(host=[line("python", *rows)]), beside).fact(Retracing)
    (one,) = found.functions
    assert (one.name, one.traced, one.calls, one.tracings) == ("train_step", 5, 5, 9)
    assert one.changed == ("0", "1", "2")
    assert found.host_ms == pytest.approx(2.0, rel=0.25)
    assert found.between_ms == pytest.approx(4.0 * 5 / 6, rel=0.25)  # the last step has no end


def test_calls_that_do_not_trace_are_told_from_their_marked_part() -> None:
    rows = [
        row
        for n in range(STEPS)
        for row in (
            ("step", 10.0 * n, 10.0 * n + 5, {"tf_function_call": "notTraced-nonXla"}),
            marker(n, 10.0 * n + 1, 10.0 * n + 5),
        )
    ]
    found = chart(trace(host=[line("python", *rows)])).fact(Retracing)
    assert found.total_ms == 0.0
    assert found.calling_ms == pytest.approx(1.0, rel=0.2)


def eager(n: int) -> Iterable[Row]:
    yield marker(n, 10.0 * n, 10.0 * n + 9)
    for k in range(4):
        yield ("EagerLocalExecute: MatMul", 10.0 * n + 2 * k, 10.0 * n + 2 * k + 1)


def test_single_operations_are_counted_on_the_threads_of_python() -> None:
    rows = [row for n in range(STEPS) for row in eager(n)]
    elsewhere = [("EagerLocalExecute: Mul", 10.0 * n, 10.0 * n + 1) for n in range(STEPS)]
    beside = recording({"run": {"run_eagerly": True, "fit_at": ["/home/me/train.py", 7]}}, manifest=manifest())
    found = chart(trace(host=[line("python", *rows), line("tf_data_py_function", *elsewhere)]), beside).fact(
        EagerWork
    )
    assert found.operations == pytest.approx(4.0)
    assert found.operations_ms == pytest.approx(4.0, rel=0.05)
    assert found.functions_ms == 0.0
    assert (found.asked, found.at) == (True, Location("train.py", 7))


def test_a_trace_without_python_s_calls_tells_nothing_of_them() -> None:
    with pytest.raises(Unavailable, match="does not show what Python ran"):
        chart(trace(host=[line("python", *(marker(n, n, n + 1) for n in range(4)))])).fact(EagerWork)


@pytest.mark.parametrize(
    "name", ["CpuCompiler::RunBackend", "XlaCompileBackend:#module=step#", "GpuCompiler::RunHloPasses"]
)
def test_the_compiler_s_time_is_the_host_s(name: str) -> None:
    rows = [marker(n, 10.0 * n, 10.0 * n + 10) for n in range(STEPS)]
    compiles = [(name, 10.0 * n + 2, 10.0 * n + 6) for n in range(3, STEPS)]
    found = chart(trace(host=[line("python", *rows, *compiles)])).fact(CompileTime)
    assert (found.steps, found.of, found.late) == (3, STEPS, 3)
    assert found.longest_ms == pytest.approx(4.0)
    assert found.host_ms == pytest.approx(2.0, rel=0.25)


def test_what_few_steps_compile_is_told_apart_from_the_typical_ones() -> None:
    rows = [marker(n, 10.0 * n, 10.0 * n + 10) for n in range(STEPS)]
    compiles = [("XlaCompile", 10.0 * n, 10.0 * n + 8) for n in (1, STEPS - 1)]
    found = chart(trace(host=[line("python", *rows, *compiles)])).fact(CompileTime)
    assert found.apart == {1, STEPS - 1}
    assert found.share == pytest.approx(16 / (10 * STEPS))
    assert found.total_ms == 0.0


def seen(**python: Any) -> StackSamples:
    return chart(trace(), recording({"python": python}, manifest=manifest())).fact(StackSamples)


def test_the_lines_that_make_batches_count_where_they_make_them_anew() -> None:
    places = [
        {"at": ["/home/me/train.py", 3], "callback": None, "makes": True, "seen": 3},
        {"at": None, "callback": "Log.on_epoch_end", "makes": None, "seen": 1},
    ]
    fed = {"at": ["/home/me/train.py", 4], "arguments": [{"shape": [8, 4], "anew": True}]}
    found = seen(places=places, fed=fed)
    assert found.sample_count == 4
    assert [place.at for place in found.makers] == [Location("train.py", 3)]
    assert found.share(found.makers) == pytest.approx(0.75)
    assert seen(places=places, fed=None).makers == ()


def test_the_source_says_which_lines_make_batches() -> None:
    lines = {4: 4, 9: 5, 7: 7, 8: None}  # of samples, and those of the loop that they are in
    places = [{"at": ["/home/me/train.py", at], "seen": 1, "looped": looped} for at, looped in lines.items()]
    python = {"places": places, "fed": {"at": ["/home/me/train.py", 6]}}
    made = LoopMakers(("/home/me/train.py", 6), ((3, 5), (6, 6)))
    run = RunLog(RunProcess(), {}, {}, (), makers=(made,))
    known = replace(recording({"python": python}, manifest=manifest()), run=run)
    found = chart(trace(), known).fact(StackSamples)
    assert [one.makes for one in found.places] == [True, True, False, None]


def test_an_older_record_does_not_tell() -> None:
    with pytest.raises(Unavailable, match="was not sampled"):
        chart(trace(), recording({"graphs": []})).fact(StackSamples)
