"""Kernels of real traces are told apart as the traces' README measured them by hand."""

from collections import defaultdict

from tests.facts.kit import *
from tfdoctor.facts.operations.kernel_kinds import kernel
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.run.operation_types import CONVOLUTIONS
from tfdoctor.rules import float32_matmul, idle_matrix_unit

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")

NORMALIZE = {"FusedBatchNormV3", "FusedBatchNormGradV3"}

TYPES = {
    ("tf24-v100-resnet50-fp32", frozenset(CONVOLUTIONS)): 226,
    ("tf24-v100-resnet50-fp32", frozenset(NORMALIZE)): 48.5,
    ("tf24-v100-resnet50-fp32", frozenset({"ReluGrad", "BiasAdd", "Relu"})): 43.8,
    ("tf24-v100-input-wait", frozenset(NORMALIZE)): 5.1,
    ("tf23-p4-alexnet-fp32", frozenset(CONVOLUTIONS)): 103,
    ("tf23-p4-alexnet-fp32", frozenset(NORMALIZE)): 26.9,
    ("tf24-t4-lenet", frozenset({"Conv2DBackpropFilter"})): 2.4,
    ("v100x8-bert-partial-step", frozenset({"Cast"})): 6.4,
    ("v100x8-bert-partial-step", frozenset({"RandomUniform"})): 4.0,
    ("v100x8-bert-partial-step", frozenset({"GreaterEqual"})): 2.7,
    ("v100x8-bert-partial-step", frozenset({"Mul"})): 1.8,
}
"""ms of operations by type, as the README has them."""

FLOAT32 = ["tf24-v100-resnet50-fp32", "tf24-v100-input-wait", "tf24-rtx2060-launch-bound", "tf24-t4-lenet"]

KERNELS = {
    ("mi300x-jax-conv", "^Cijk"): 1.5,
    ("mi300x-jax-conv", "transpose"): 1.8,
    ("mi355x-jax-te-attention", "FmhaBwdDQDKDV"): 4.3,
    ("mi355x-jax-te-attention", "FmhaFwd"): 2.1,
    ("mi355x-jax-te-attention", "gemm_fusion"): 3.6,
}
"""ms of kernels by what their names hold."""


@cache
def opened(name: str) -> Chart:
    return Chart([xplane.read(next((TRACES / name).rglob("*.xplane.pb"))), recording()])


def by_kernel(name: str) -> dict[str, float]:
    """Return the ms of each kernel on the busiest device, whatever the steps."""
    plane = opened(name).fact(Device).busiest
    assert plane is not None
    found: dict[str, float] = defaultdict(float)
    for line in work_lines(plane):
        for event in line.events():
            found[event.name] += event.duration_ps / 1e9
    return found


@pytest.mark.parametrize(("name", "types"), TYPES)
def test_operations_take_what_was_measured_by_hand(name: str, types: frozenset[str]) -> None:
    rows = opened(name).fact(Operations).rows
    taken = sum(row.ms for row in rows if row.type in types)
    assert taken == pytest.approx(TYPES[name, types], rel=0.05)


@pytest.mark.parametrize("name", FLOAT32)
def test_no_kernel_of_the_float32_runs_uses_tensor_cores(name: str) -> None:
    unit = opened(name).fact(MatrixUnit)
    assert (unit.on_unit_ms, unit.unknown_ms) == (0, 0)
    assert unit.off_unit_ms
    assert unit.matrix_ms == pytest.approx(unit.off_unit_ms + unit.beside_ms)
    assert [precision for precision, _ in unit.precisions] == ["fp32"]
    assert unit.unused_ms == 0  # float32 does not run on these cards' Tensor Cores
    found = opened(name).call(float32_matmul.check)
    assert isinstance(found, Finding)
    assert "mixed_float16" in found.remedies[0].code


def test_a_card_without_tensor_cores_is_never_advised_to_use_them() -> None:
    facts = opened("tf23-p4-alexnet-fp32")
    assert facts.fact(Hardware).without_unit
    with pytest.raises(Unavailable, match=r"6\.1 have no Tensor Cores"):
        facts.fact(MatrixUnit)
    assert isinstance(facts.call(float32_matmul.check), NotApplicable)


def test_a_partial_step_without_products_has_no_matrix_work() -> None:
    unit = opened("v100x8-bert-partial-step").fact(MatrixUnit)
    assert (unit.matrix_ms, unit.on_unit_ms, unit.off_unit_ms) == (0, 0, 0)
    assert not isinstance(idle_matrix_unit.check(unit), Finding)


@pytest.mark.parametrize(("name", "part"), KERNELS)
def test_kernels_of_amds_gpus_take_what_was_measured_by_hand(name: str, part: str) -> None:
    sums = by_kernel(name)
    if part == "transpose":
        taken = sum(ms for kernel_, ms in sums.items() if kernel_ == "input_transpose_fusion.kd")
    else:
        taken = sum(ms for kernel_, ms in sums.items() if part.lstrip("^") in kernel_)
    assert taken == pytest.approx(KERNELS[name, part], rel=0.05)


@cases(("mi300x-jax-conv", 1.5, 0), ("mi300x-jax-attention", 1.53, 0.36), ("mi355x-jax-te-attention", 6.93, 3.63))
def test_matrix_cores_of_amds_gpus_are_recognised(name: str, on: float, maybe: float) -> None:
    """Triton's products are unknown, everything else is told by its name."""
    sums: dict[bool | None, float] = defaultdict(float)
    for name_, ms in by_kernel(name).items():
        if kernel(name_).role is KernelRole.MATMUL:
            sums[kernel(name_).on_unit] += ms
    assert sums[True] == pytest.approx(on, rel=0.05)
    assert sums[None] == pytest.approx(maybe, rel=0.05)
    assert sums[False] == 0


def test_the_share_of_products_in_the_attention_on_amd() -> None:
    sums = by_kernel("mi300x-jax-attention")
    total = sum(sums.values())
    products = sum(ms for name, ms in sums.items() if kernel(name).role is KernelRole.MATMUL)
    assert products / total == pytest.approx(0.49, rel=0.05)
    assert sums["loop_convert_fusion.kd"] / total == pytest.approx(0.40, rel=0.05)


@cases(("mi300x-jax-conv", "gfx942", 1307e12, 5.3e12), ("mi355x-jax-te-attention", "gfx950", 2517e12, 8.0e12))
def test_amds_gpus_are_known_by_their_planes(name: str, chip: str, peak: float, bandwidth: float) -> None:
    """Peaks of the data sheets, which name neither trace's plane."""
    found = opened(name).fact(Hardware)
    assert chip in found.name
    assert found.peak_flop_s == pytest.approx(peak, rel=0.01)
    assert found.bandwidth_bytes_s == pytest.approx(bandwidth, rel=0.05)
    assert found.matrix_unit == "Matrix Core"
