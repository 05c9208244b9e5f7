"""What tfdoctor measures in a synthetic run is what is known of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.synthetic import gpu, samples
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import xplane

RUNS = {
    "v100": Run(device="v100", copy="pageable", dispatch_us=40.0),
    "v100 half": Run(device="v100", precision="fp16", network=Network(batch=16)),
    "t4 unfused": Run(device="t4", network=Network(batch=8, batch_norm="unfused", depthwise=True)),
    "t4 half, odd width": Run(device="t4", precision="fp16", network=Network(width=100)),
    "a100 waits": Run(device="a100", precision="tf32", input_ms=3.0),
    "a100 overlaps": Run(device="a100", precision="bf16", overlap=True, copy="pageable"),
    "h100 launches": Run(device="h100", precision="fp16", gap_us=20.0, between_ms=1.0),
    "v3": Run(device="v3", input_ms=2.0, network=Network(depthwise=True)),
    "v5e": Run(device="v5e", precision="bf16", network=Network(width=144, batch_norm="none")),
    "v6e": Run(device="v6e", precision="bf16", gap_us=5.0, steps=6),
}
GPUS = [name for name, run in RUNS.items() if run.device in gpu.GPUS]
TPUS = [name for name in RUNS if name not in GPUS]

MARKETED = {"v100": "V100", "t4": "T4", "a100": "A100", "h100": "H100", "v3": "TPU v3",
            "v5e": "TPU v5 Lite", "v6e": "TPU v6 Lite"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    run: Run
    truth: Truth
    chart: Chart


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    return {name: case(run, tmp_path_factory.mktemp("run")) for name, run in RUNS.items()}


def case(run: Run, folder: Path) -> Case:
    truth = samples.write(run, folder)
    recording = Recording.open(folder)
    return Case(run, truth, Chart([xplane.read(recording.traces[0]), recording]))


def close(expected: float, rel: float = 1e-6) -> object:
    return pytest.approx(expected, rel=rel, abs=1e-6)


@pytest.mark.parametrize("name", RUNS)
def test_steps(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    steps = case.chart.fact(Steps)
    assert steps.count == case.truth.steps
    assert steps.median_ms == close(case.truth.step_ms)


@pytest.mark.parametrize("name", RUNS)
def test_breakdown(cases: dict[str, Case], name: str) -> None:
    truth, parts = cases[name].truth, cases[name].chart.fact(Breakdown)
    assert parts[Stage.INPUT] == close(truth.input_wait_ms)
    assert parts[Stage.DEVICE] == close(truth.compute_ms)
    assert parts[Stage.BETWEEN] == close(truth.between_ms)
    assert parts.step_ms == close(truth.step_ms)


@pytest.mark.parametrize("name", GPUS)
def test_copies(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    loss = 0.003  # is copied back
    exposed = case.chart.fact(Breakdown)[Stage.TRANSFER]
    assert exposed == close(case.truth.copy_exposed_ms + loss)


def test_an_overlapped_copy_is_hidden(cases: dict[str, Case]) -> None:
    truth = cases["a100 overlaps"].truth
    assert truth.copy_exposed_ms < truth.copy_ms / 2
    assert cases["v100"].truth.copy_exposed_ms == cases["v100"].truth.copy_ms


@pytest.mark.parametrize("name", RUNS)
def test_operations(cases: dict[str, Case], name: str) -> None:
    truth, operations = cases[name].truth, cases[name].chart.fact(Operations)
    rows = operations.rows
    assert len(rows) == truth.operations
    assert operations.total_ms == close(truth.compute_ms)
    assert operations.unnamed == 0
    assert sum(row.ms for row in rows if row.is_depthwise) == close(truth.depthwise_ms)
    normal = [row for row in rows if "batch_normalization" in row.name]
    assert sum(row.ms for row in normal) == close(truth.batch_norm_ms)


@pytest.mark.parametrize("name", RUNS)
def test_matrix_work(cases: dict[str, Case], name: str) -> None:
    rows = cases[name].chart.fact(Operations).matrix
    products = sum(row.ms for row in rows if not row.is_depthwise)
    assert products == close(cases[name].truth.matrix_ms)


@pytest.mark.parametrize("name", TPUS)
def test_a_tpus_matrix_unit_and_flops(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    assert case.chart.fact(MatrixUnit).utilization == close(case.truth.matrix_unit_use)
    flops = sum((r.flops or 0) * r.calls for r in case.chart.fact(Operations).rows)
    assert flops == case.truth.flops


@pytest.mark.parametrize("name", GPUS)
def test_a_gpus_kernels_tell_their_precision(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    on_unit = case.chart.fact(MatrixUnit).on_unit_ms
    assert on_unit == close(0.0 if case.run.precision == "fp32" else case.truth.matrix_ms)


@pytest.mark.parametrize("name", RUNS)
def test_input_pipeline(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    pipeline = case.chart.fact(InputPipeline)
    assert pipeline.work_ms == close(case.truth.input_work_ms, rel=0.03)
    assert [stage.kind for stage in pipeline.stages] == [
        "Root", "Prefetch", "BatchV2", "Map", "TensorSlice",
    ]  # fmt: skip
    assert pipeline.critical is not None
    assert pipeline.critical.kind == "Map"


@pytest.mark.parametrize("name", RUNS)
def test_the_device_is_the_one_that_was_asked_for(cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    device, hardware = case.chart.fact(Device), case.chart.fact(Hardware)
    assert device.kind == ("GPU" if name in GPUS else "TPU")
    assert device.used == (2 if case.run.device == "v3" else 1)
    assert MARKETED[case.run.device] in hardware.name
