"""What a report shows beside the verdicts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import (
    chart,
    device,
    executor,
    graph_operation,
    iterator,
    line,
    manifest,
    markers,
    recording,
    trace,
    v100,
    wait,
)
from tfdoctor.diagnose.summary import machine, run
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import AgentError, Missing, StepsSeen, UntracedSteps
from tfdoctor.recording.manifest import Ending, Manifest, Sampling
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Trace
from tfdoctor.trace.xprof import InputVerdict, Opinion

EMPTY = chart(trace([]))


def on_cpu(*, record: Any = None, samples: Any = (), beside: Manifest | None = None) -> Chart:
    """Four steps of 100 ms: 40 ms of waiting for a map, 50 ms of compute."""
    times = [100 * n for n in range(4)]
    get_next = [
        row
        for at in times
        for row in (
            wait(at, at + 40),
            iterator("Root", at, at + 40, 1),
            iterator("Root::Prefetch", at, at + 39.95, 2, 1, name="inject/prefetch_Map/_3"),
        )
    ]
    made = [
        row
        for at in times
        for row in (
            iterator("Root::Prefetch::Map", at, at + 90, 3, 2, name="MapDataset:1"),
            iterator("Root::Prefetch::Map::Zip", at, at + 10, 4, 3),
            iterator("Root::Prefetch::Map::Zip[0]::Range", at, at + 5, 5, 4),
        )
    ]
    work = [
        row
        for at in times
        for row in (
            executor(at + 40, at + 90),
            ("m/c/Conv2D:_MklNativeConv2D", at + 40, at + 80),
            ("m/c/BiasAdd:BiasAdd", at + 80, at + 85),
            ("m/d/MatMul:MatMul", at + 85, at + 90),
        )
    ]
    lanes = [
        markers(4, 100, call=95),
        line("tf_data_iterator_get_next/1", *get_next),
        line("tf_data_iterator_resource/1", *made),
        line("tf_Compute/1", *work),
    ]
    return chart(trace(lanes), recording(record, samples, manifest=beside or manifest()))


RECORD = {
    "graphs": [
        {
            "operations": [
                graph_operation(
                    "m/c/Conv2D",
                    "Conv2D",
                    [["float32", [None, 28, 28, 3]], ["float32", [3, 3, 3, 8]]],
                    layer="c",
                    at=["/home/me/train.py", 7],
                ),
                graph_operation("m/c/BiasAdd", "BiasAdd", layer="c"),
                graph_operation("m/d/MatMul", "MatMul", layer="d"),
            ]
        }
    ],
    "datasets": [
        {
            "id": 1,
            "class": "_MapDataset",
            "trace_name": "MapDataset:1",
            "function": {"name": "decode", "at": ["/home/me/train.py", 2]},
            "at": ["/home/me/train.py", 5],
        }
    ],
    "feeds": 1,
    "run": {"policy": "float32", "jit_compile": False, "batch_size": 32, "strategy": None},
}


def failing(kind: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Let one fact fail to be measured."""

    def instead(function: Callable[..., Any]) -> Any:
        if function == kind.measure:
            raise ZeroDivisionError
        return call(function)

    return instead


# The subject


def test_the_subject_is_what_was_run_and_where() -> None:
    beside = manifest(
        command=("python", "train.py"), versions={"tensorflow": "2.21.0", "cuda": None}, outcome=Ending(exit_code=3)
    )
    gpu = v100(line("Stream #1", ("k", 0, 1)))
    found = run.subject(chart(trace([], gpus=[gpu, v100()]), recording(manifest=beside)), "t")
    assert (found.title, found.command, found.exit_code) == ("t", ("python", "train.py"), 3)
    assert (found.device, found.device_name) == ("GPU", "Tesla V100-SXM2-16GB")
    assert (found.devices_used, found.devices_visible) == (1, 2)
    assert (found.framework, found.hosts) == ({"tensorflow": "2.21.0"}, ("vm",))


def test_a_bare_trace_has_a_subject_too() -> None:
    found = run.subject(EMPTY, "t")
    assert (found.command, found.exit_code, found.framework) == ((), None, {})


# Steps


def test_the_steps_and_what_they_went_to() -> None:
    found = run.steps(on_cpu())
    assert (found.source, found.count, found.median_ms) == ("markers", 4, 100)
    assert found.between_ms == pytest.approx(5)
    assert found.breakdown_ms
    assert {part: round(ms, 6) for part, ms in found.breakdown_ms.items() if ms} == {
        "input": 40,
        "host": 5,
        "device": 50,
        "between": 5,
    }
    assert set(found.breakdown_ms) == set(PARTS)
    assert [row.number for row in found.rows] == [0, 1, 2, 3]
    assert all(sum(row.parts_ms.values()) == pytest.approx(row.total_ms) for row in found.rows)
    assert all(row.steady for row in found.rows)


def test_a_trace_without_steps_says_why() -> None:
    found = run.steps(EMPTY)
    assert (found.source, found.rows) == ("none", ())
    assert "tfdoctor profile" in found.missing


# The pipeline


def test_the_pipeline_is_listed_from_the_consumer_to_the_source() -> None:
    found = run.pipeline(on_cpu(record=RECORD))
    assert [(stage.name, stage.parent) for stage in found] == [
        ("Root", None),
        ("Prefetch", 0),
        ("Map", 1),
        ("Zip", 2),
        ("Range", 3),
    ]
    assert [stage.critical for stage in found] == [False, False, True, True, True]
    assert [round(stage.self_ms, 6) for stage in found] == [0.05, 0, 80, 5, 5]


def test_a_stage_is_shown_as_it_was_written() -> None:
    found = {stage.name: stage for stage in run.pipeline(on_cpu(record=RECORD))}
    assert found["Map"].written == ".map(decode)"
    assert found["Map"].at == Location("train.py", 5)
    assert found["Range"].written == ""
    assert found["Prefetch"].note == "added by tf.data"


def test_without_a_pipeline_there_is_nothing_to_list() -> None:
    assert run.pipeline(EMPTY) == ()
    assert EMPTY.why_missing(InputPipeline)


# Operations


def test_operations_are_grouped_by_layer_and_type_the_heaviest_first() -> None:
    found = run.operations(on_cpu(record=RECORD))
    assert [(row.layer, row.operation) for row in found] == [("c", "Conv2D"), ("c", "BiasAdd"), ("d", "MatMul")]
    assert [row.self_ms for row in found] == pytest.approx([40, 5, 5])
    assert [row.share for row in found] == pytest.approx([0.4, 0.05, 0.05])
    assert found[0].at == Location("train.py", 7)
    assert found[0].detail == "float32[?,28,28,3] x float32[3,3,3,8]"


def test_without_operations_there_is_nothing_to_list() -> None:
    assert run.operations(EMPTY) == ()


# The model, the machine, the samples


def test_every_number_of_the_model_is_shown() -> None:
    samples = [{"unix_ns": 1, "host": {"run_cpu_pct": 300.0}}]
    shown = {m.label: m.value.value for m in run.model(on_cpu(samples=samples))}
    assert shown["measured step (median)"] == pytest.approx(100)
    assert shown["input wait, not overlapped"] == pytest.approx(40)
    assert shown["device, not overlapped"] == pytest.approx(50)
    assert shown["input work, overlapped: Map > Zip > Range"] == pytest.approx(90)
    assert shown["input work before the step: Root"] == pytest.approx(0.05)
    assert shown["share of busy cores"] == 0.75
    assert "launch work on the host" not in shown
    assert "transfer, not overlapped" not in shown


def test_on_an_accelerator_the_launching_is_shown() -> None:
    gpu = v100(line("Stream #1", ("k", 0, 5)))
    shown = [m.label for m in run.model(chart(trace([markers(4, 10)], gpus=[gpu])))]
    assert "launch work on the host" in shown


def test_without_a_model_there_is_nothing_to_show() -> None:
    assert run.model(EMPTY) == ()


def test_the_machine_and_the_settings_of_the_run() -> None:
    rows = dict(machine.machine(on_cpu(record=RECORD, beside=manifest(versions={"python": "3.11"}))))
    assert rows["device"] == "AMD EPYC"
    assert rows["matrix unit"] == "AVX512-BF16"
    assert rows["usable cores"] == "4 of 4"
    assert rows["precision policy"] == "float32"
    assert rows["jit_compile"] == "False"
    assert rows["batch size"] == "32"
    assert rows["Python"] == "3.11"
    assert rows["distribution strategy"] == ""


def test_what_was_sampled() -> None:
    samples = [{"unix_ns": 1, "host": {"run_cpu_pct": 150.0}, "gpu": [{"gpu_pct": 40}]}]
    shown = {m.label: m.value.value for m in machine.samples(on_cpu(samples=samples))}
    assert shown == {"cores used by the run": 1.5, "GPU utilization (NVML)": 0.4}
    assert machine.samples(EMPTY) == ()


# What is missing, and how far to trust the rest


def test_everything_that_is_missing_is_said_once() -> None:
    beside = manifest(
        missing=(Missing("program", "no room"),),
        agent_errors=(AgentError("graph", "boom"),),
        samplers=(Sampling("nvml", "unavailable", "no library"), Sampling("host", "on")),
    )
    silent = trace([], gpus=[v100()], errors=("Failed to load libcupti",), warnings=("w", "w"))
    said = machine.unrecorded(chart(silent, recording(manifest=beside)))
    assert said[:3] == ("program: no room", "agent, graph: boom", "sampler nvml: no library")
    assert "CUPTI" in said[3]
    assert said[4:] == ("Failed to load libcupti", "w")


NO_GPU = Sampling("nvml", "unavailable", "NVML Shared Library Not Found")


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (replace(NO_GPU, absent=True), False),
        (replace(NO_GPU, absent=False), True),  # it is there, but its library is not
        (NO_GPU, False),  # from before that was recorded: the run used no GPU
        (replace(NO_GPU, count=9), True),  # it was sampled until then
        (Sampling("tpu", "unavailable", "this machine has no TPU"), False),
        (Sampling("host", "unavailable", "a reading hung"), True),
    ],
)
def test_a_device_that_the_machine_lacks_is_no_missing_data(sampling: Sampling, *, said: bool) -> None:
    shown = machine.unrecorded(on_cpu(beside=manifest(samplers=(sampling,))))
    assert shown == ((f"sampler {sampling.name}: {sampling.reason}",) if said else ())


def test_a_whole_recording_lacks_nothing() -> None:
    assert machine.unrecorded(on_cpu()) == ()


def test_trust_falls_with_every_doubt() -> None:
    doubted = on_cpu(beside=manifest(steps=StepsSeen(untraced=UntracedSteps(count=9, median_ms=85.0))))
    found = run.trust(doubted)
    assert found.level == "medium"
    assert any("tracing made the steps" in reason for reason in found.reasons)
    assert run.trust(EMPTY).level == "low"


def test_a_model_that_explains_too_little_lowers_the_trust() -> None:
    exposed = dict.fromkeys(map(str, PARTS), 0.0) | {"input": 40.0, "device": 10.0}
    given = [on_cpu().fact(Trace), on_cpu().fact(Recording)]

    def reasons(made_ms: float) -> str:
        segments = (PipelineSegment({"a": made_ms}, overlapped=True),)
        model = StepModel(device=DeviceKind.CPU, exposed=exposed, segments=segments)
        return " ".join(run.trust(Chart([*given, model])).reasons)

    assert "savings are estimates" not in reasons(50.0)
    assert "savings are estimates" in reasons(10.0)


def test_a_defect_in_the_model_is_told_with_the_trust() -> None:
    broken = on_cpu()
    broken.fact(Breakdown)
    broken.call = failing(StepModel, broken.call)  # type: ignore[method-assign] # a defect is planted
    found = run.trust(broken)
    assert found.level != "high"
    assert sum("failed to measure StepModel" in reason for reason in found.reasons) == 1


def test_a_defect_in_a_fact_does_not_stop_the_summary() -> None:
    broken = on_cpu()
    broken.call = failing(Operations, broken.call)  # type: ignore[method-assign] # a defect is planted
    assert run.operations(broken) == ()
    assert "failed to measure" in broken.why_missing(Operations)
    assert broken.why_missing(Steps) == ""


# The second opinion


def opinion(**parts: Any) -> Opinion:
    given: dict[str, Any] = {"conclusion": "HIGHLY input-bound", "input_percent": 40.0, "steps": 4}
    given |= parts
    return Opinion(**given, verdict=InputVerdict.of(given["conclusion"]))


@pytest.mark.parametrize(("percent", "agrees"), [(40.0, True), (45.0, True), (45.1, False), (34.9, False)])
def test_two_figures_within_five_percent_agree(percent: float, *, agrees: bool) -> None:
    found = run.second_opinion(on_cpu(), opinion(input_percent=percent))
    assert found
    assert found.agrees is agrees
    assert bool(found.why) is not agrees


def test_where_they_differ_it_is_said_why() -> None:
    gpu = v100(line("Stream #1", ("k", 0, 5)))
    found = run.second_opinion(chart(trace([markers(4, 10)], gpus=[gpu])), opinion(input_percent=50.0))
    assert found
    assert "GPU" in found.why
    assert "50 %" in found.why


@pytest.mark.parametrize("said", [opinion(error="it crashed"), opinion(input_percent=None), opinion(steps=0)])
def test_without_a_figure_there_is_nothing_to_agree_on(said: Opinion) -> None:
    found = run.second_opinion(on_cpu(), said)
    assert found
    assert found.agrees is None


def test_without_an_opinion_there_is_none() -> None:
    assert run.second_opinion(on_cpu(), None) is None


def test_on_a_tpu_the_summary_is_whole() -> None:
    kinds = {"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}}
    tpu = device(
        line("XLA Ops", *(("%fusion", 10 * n, 10 * n + 9) for n in range(5))),
        line("Steps", *((str(n), 10 * n, 10 * n + 10) for n in range(5))),
        kinds=kinds,
        device_type_string="TPU v4",
    )
    facts = chart(trace([], tpus=[tpu]))
    assert run.subject(facts, "t").device_name == "TPU v4"
    assert run.steps(facts).source == "tpu-steps"
    assert [row.operation for row in run.operations(facts)] == ["convolution fusion"]
    assert run.trust(facts).level == "high"
