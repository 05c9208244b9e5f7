"""Tensor Core time, precision and FLOPs of synthetic GPU runs are what their scripts put there."""

from pathlib import Path

import pytest

from scripts.synthetic import gpu, kernels
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from tests.builders import recording
from tests.xspaces import save
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.matmuls import MatrixUnit, is_eligible
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.trace import xplane

RUNS = sorted(
    (device, precision)
    for device, one in gpu.GPUS.items()
    if device != "gtx1660"  # has no Tensor Cores
    for precision in one.rates
)
Runs = dict[tuple[str, str], tuple[Chart, Truth]]
NETWORK = Network(batch=8, size=32, depthwise=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    path = tmp_path_factory.mktemp("runs") / "vm.xplane.pb"
    return {(device, precision): opened(device, precision, path) for device, precision in RUNS}


def opened(device: str, precision: str, path: Path) -> tuple[Chart, Truth]:
    made = Run(device=device, precision=precision, network=NETWORK, steps=4)
    save(gpu.build(made), path)
    return Chart([xplane.read(path), recording()]), gpu.truth(made)


@pytest.mark.parametrize(("device", "precision"), RUNS)
def test_tensor_core_time(device: str, precision: str, runs: Runs) -> None:
    """Convolutions of sm80_xmma and products of nvjet included, which xprof does not recognise."""
    facts, truth = runs[device, precision]
    unit = facts.fact(MatrixUnit)
    on = 0.0 if precision == "fp32" else truth.matrix_ms
    assert unit.on_unit_ms == pytest.approx(on, rel=0.02)
    assert unit.off_unit_ms == pytest.approx(truth.matrix_ms - on, rel=0.02)
    assert (unit.unknown_ms, unit.beside_ms) == (0, 0)
    assert dict(unit.precisions) == pytest.approx({precision: truth.matrix_ms}, rel=0.02)


@pytest.mark.parametrize(("device", "precision"), RUNS)
def test_what_could_run_on_tensor_cores(device: str, precision: str, runs: Runs) -> None:
    """Float32 from Ampere on (as TF32), though its kernels did not; never on Volta and Turing."""
    facts, truth = runs[device, precision]
    idle = precision == "fp32" and device in ("a100", "h100")
    assert facts.fact(MatrixUnit).unused_ms == pytest.approx(truth.matrix_ms if idle else 0)
    rows = facts.fact(Operations).rows
    assert not any(is_eligible(row, facts.fact(Hardware)) for row in rows if not row.is_matrix)


@pytest.mark.parametrize(("device", "precision"), [("v100", "fp32"), ("a100", "bf16")])
def test_flops_of_a_run_without_program_record_come_from_its_shapes(
    device: str, precision: str, runs: Runs
) -> None:
    """Where the factors' shapes tell them: not for convolutions, whose strides are not in the trace."""
    facts, _ = runs[device, precision]
    rows = {row.name: row for row in facts.fact(Operations).matrix}
    designed = {op.name: op for op in NETWORK.training_step() if op.is_matrix}
    known = {name for name, row in rows.items() if row.flops is not None}
    assert {name: rows[name].flops for name in known} == {
        name: pytest.approx(designed[name].flops) for name in known
    }
    assert {designed[name].type for name in known} == {"MatMul", "Conv2DBackpropInput"}
    assert facts.fact(MatrixUnit).utilization is None


def test_the_operands_of_gradients_are_written_as_tensorflow_has_them() -> None:
    steps = {op.type: op for op in NETWORK.training_step()}
    text = kernels.shapes(steps["Conv2DBackpropFilter"], "fp16")
    assert text.split(";")[1] == "int32[4]"
    assert text.startswith("(half[")
    assert kernels.shapes(steps["Conv2DBackpropInput"], "fp32").startswith("(int32[4];float[3,")
