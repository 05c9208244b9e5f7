"""What is known of a machine, and what is not; and which of its devices the report is about."""

from typing import Any

import pytest

from tests.builders import chart, device, line, manifest, markers, recording, trace, v100
from tfdoctor.facts.device import NO_CUPTI, NO_KERNELS, NO_PERMISSION, Device
from tfdoctor.facts.hardware import GPU_RATES, Hardware
from tfdoctor.manifest import Host
from tfdoctor.verdict import Bound

KERNEL = line("Stream #1(Compute)", ("k", 0, 5))


def gpu(**stats: Any) -> Hardware:
    return chart(trace([], gpus=[device(KERNEL, **stats)])).fact(Hardware)


def capable(major: int, minor: int, **stats: Any) -> Hardware:
    return gpu(compute_cap_major=major, compute_cap_minor=minor, **stats)


def cpu(*flags: str, model: str = "AMD EPYC") -> Hardware:
    host = Host("vm", model, flags, 8, 4.0)
    return chart(trace([markers(1, 10)]), recording(manifest=manifest(host=host))).fact(Hardware)


def tpu(name: str, **stats: Any) -> Hardware:
    plane = device(line("XLA Ops", ("%a", 0, 1)), device_type_string=name, **stats)
    return chart(trace([], tpus=[plane])).fact(Hardware)


# GPUs


def test_a_v100_multiplies_in_float16() -> None:
    found = chart(trace([], gpus=[v100(KERNEL)])).fact(Hardware)
    assert found.matrix_unit == "Tensor Core"
    assert found.narrowing
    assert (found.narrowing.dtype, found.narrowing.scales) == ("float16", 1 / 8)
    assert found.narrowing.bound is Bound.AT_MOST
    assert found.peak_flop_s == pytest.approx(125.3e12, rel=1e-3)
    assert found.bandwidth_bytes_s == 900_096_000_000
    assert found.tile
    assert found.tile.multiple == 8


@pytest.mark.parametrize(
    ("capability", "dtype", "scales"),
    [
        ((7, 5), "float16", 1 / 8),
        ((8, 0), "bfloat16", 1 / 2),
        ((8, 6), "bfloat16", 1 / 2),
        ((8, 9), "bfloat16", 1 / 2),
        ((9, 0), "bfloat16", 1 / 2),
        ((10, 0), "bfloat16", 1 / 2),
        ((12, 0), "bfloat16", 1 / 2),
    ],
)
def test_from_ampere_on_float32_runs_as_tf32_already(
    capability: tuple[int, int], dtype: str, scales: float
) -> None:
    found = capable(*capability)
    assert found.narrowing
    assert (found.narrowing.dtype, found.narrowing.scales) == (dtype, scales)


@pytest.mark.parametrize("capability", [(6, 0), (6, 1), (3, 7), (8, 7), (13, 0)])
def test_a_gpu_that_is_not_in_the_table_is_unknown(capability: tuple[int, int]) -> None:
    found = capable(*capability, gpu_device_name="Tesla")
    assert (found.matrix_unit, found.narrowing, found.tile, found.peak_flop_s) == (
        "",
        None,
        None,
        None,
    )
    assert ".".join(map(str, capability)) in found.missing
    assert found.name == "Tesla"


def test_a_turing_card_without_tensor_cores_is_told_by_its_name() -> None:
    """Compute capability 7.5 is also that of the GTX 16 series, which has none."""
    found = capable(7, 5, gpu_device_name="NVIDIA GeForce GTX 1660 Ti")
    assert (found.matrix_unit, found.narrowing) == ("", None)
    assert "GTX 1660 Ti" in found.missing
    assert capable(7, 5, gpu_device_name="NVIDIA GeForce RTX 2060").narrowing


def test_a_gpu_of_another_make_is_unknown() -> None:
    amd = capable(9, 0, device_vendor="AMD", gpu_device_name="MI300X")
    assert amd.narrowing is None
    assert "NVIDIA" in amd.missing


def test_a_gpu_that_does_not_say_what_it_is_is_unknown() -> None:
    assert gpu().narrowing is None
    assert gpu().name == "GPU"


def test_without_a_clock_there_is_no_peak() -> None:
    assert capable(7, 0).peak_flop_s is None


def test_a_gpu_whose_kernels_were_not_recorded_keeps_its_name() -> None:
    found = chart(trace([], gpus=[v100()])).fact(Hardware)
    assert found.name == "Tesla V100-SXM2-16GB"
    assert found.matrix_unit == "Tensor Core"


def test_every_rate_is_at_least_that_of_float32() -> None:
    assert all(half >= full or half == 0 for full, half, _ in GPU_RATES.values())


# CPUs


@pytest.mark.parametrize(
    ("flags", "unit", "tile"),
    [
        (("avx2", "avx512f", "avx512_bf16", "amx_bf16"), "AMX", 16),
        (("avx2", "avx512f", "avx512_bf16"), "AVX512-BF16", 16),
        (("avx2", "avx512f"), "", 16),
        (("avx2",), "", None),
    ],
)
def test_a_cpus_flags_tell_its_unit(flags: tuple[str, ...], unit: str, tile: int | None) -> None:
    found = cpu(*flags)
    assert found.matrix_unit == unit
    assert (found.tile.multiple if found.tile else None) == tile
    assert (found.narrowing is None) == (not unit)
    assert bool(found.missing) == (not unit)


def test_the_cores_that_the_run_may_use() -> None:
    assert cpu().cores == 4.0
    assert chart(trace([])).fact(Hardware).cores is None


def test_a_cpu_that_nobody_recorded_is_unknown() -> None:
    found = chart(trace([])).fact(Hardware)
    assert (found.kind, found.narrowing) == ("CPU", None)
    assert "tfdoctor profile" in found.missing
    assert cpu("amx_bf16", model="").narrowing is None


# TPUs


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("TPU v2", 128),
        ("TPU v3", 128),
        ("TPU v4", 128),
        ("TPU v5 lite", 128),
        ("TPU v5p", 128),
        ("TPU v6 lite", 256),
        ("TPU v7x", 256),
        ("TPU7x", 256),
    ],
)
def test_the_width_of_a_tpus_unit_by_generation(name: str, width: int) -> None:
    found = tpu(name, peak_teraflops_per_second=197.0, peak_hbm_bw_gigabytes_per_second=819.0)
    assert found.tile
    assert found.tile.multiple == width
    assert (found.matrix_unit, found.name) == ("MXU", name)
    assert (found.peak_flop_s, found.bandwidth_bytes_s) == (197e12, 819e9)


# Devices


def test_without_an_accelerator_the_cpu_did_the_work() -> None:
    found = chart(trace([markers(1, 10)])).fact(Device)
    assert (found.kind, found.visible, found.used, found.missing) == ("CPU", 1, 1, "")


def test_the_report_is_about_the_busiest_device() -> None:
    idle, busy = v100(), v100(line("Stream #1", ("k", 0, 9)))
    little = v100(line("Stream #1", ("k", 0, 1)), line("Kernels", ("k", 0, 99)))
    found = chart(trace([], gpus=[idle, little, busy])).fact(Device)
    assert (found.visible, found.used) == (3, 2)
    assert found.busiest
    assert found.busiest.name == "/device:GPU:2"


def test_a_tpu_goes_before_a_gpu() -> None:
    both = trace([], gpus=[v100(KERNEL)], tpus=[device(line("XLA Ops", ("%a", 0, 1)))])
    assert chart(both).fact(Device).kind == "TPU"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("Failed to load libcupti (is it installed and accessible?)", NO_CUPTI),
        ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", NO_PERMISSION),
        ("CUPTI: the user does not have privileges to profile", NO_PERMISSION),
        ("", NO_KERNELS),
    ],
)
def test_why_a_gpu_has_no_kernels(error: str, reason: str) -> None:
    for told in ({"errors": (error,)}, {"warnings": (error,)}):
        found = chart(trace([], gpus=[v100()], **told)).fact(Device)
        assert (found.missing, found.used) == (reason, 0)
