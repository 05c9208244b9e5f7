"""What is known of a machine, and what is not; and which of its devices the report is about."""

from tests.facts.kit import *
from tfdoctor.facts.run.device import NO_CUPTI, NO_GPU, NO_KERNELS, NO_PERMISSION
from tfdoctor.facts.run.hardware import AMD_RATES, GPU_RATES

KERNEL = line("Stream #1(Compute)", ("k", 0, 5))


def gpu(**stats: Any) -> Hardware:
    return chart(trace([], gpus=[device(KERNEL, **stats)])).fact(Hardware)


def capable(major: int, minor: int, **stats: Any) -> Hardware:
    return gpu(compute_cap_major=major, compute_cap_minor=minor, **stats)


def cpu(*flags: str, model: str = "AMD EPYC") -> Hardware:
    host = HostMachine("vm", model, flags, 8, 4.0)
    return chart(trace([markers(1, 10)]), recording(manifest=manifest(host=host))).fact(Hardware)


def tpu(name: str, **stats: Any) -> Hardware:
    plane = device(line("XLA Ops", ("%a", 0, 1)), device_type_string=name, **stats)
    return chart(trace([], tpus=[plane])).fact(Hardware)


# GPUs


def test_a_v100_multiplies_in_float16() -> None:
    found = chart(trace([], gpus=[v100(KERNEL)])).fact(Hardware)
    assert found.matrix_unit == "Tensor Core"
    assert found.sixteen_bit
    assert (found.sixteen_bit.dtype, found.sixteen_bit.scales) == ("float16", 1 / 8)
    assert found.sixteen_bit.bound is Bound.AT_MOST
    assert found.peak_flop_s == pytest.approx(125.3e12, rel=1e-3)
    assert found.bandwidth_bytes_s == 900_096_000_000
    assert found.tile
    assert found.tile.multiple == 8


@cases(
    ((7, 5), "float16", 1 / 8),
    *[(known, "bfloat16", 1 / 2) for known in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))],
)
def test_from_ampere_on_float32_runs_as_tf32(capability: tuple[int, int], dtype: str, scales: float) -> None:
    found = capable(*capability)
    assert found.sixteen_bit
    assert (found.sixteen_bit.dtype, found.sixteen_bit.scales) == (dtype, scales)


def amd(major: int, minor: int, **stats: Any) -> Hardware:
    return capable(major, minor, device_vendor="AMD", **stats)


@cases(
    ((9, 0), 120, 1_502_000, "gfx908", 184.6),
    ((9, 0), 110, 1_700_000, "gfx90a", 191.5),
    ((9, 4), 304, 2_100_000, "gfx942", 1307.4),
    ((9, 5), 256, 2_400_000, "gfx950", 2516.6),
)
def test_an_amd_accelerator_is_told_by_its_version_and_units(
    version: tuple[int, int], units: int, clock: int, chip: str, tflops: float
) -> None:
    found = amd(*version, core_count=units, clock_rate=clock)
    assert found.peak_flop_s == pytest.approx(tflops * 1e12, rel=2e-3)
    assert found.matrix_unit == "Matrix Core"
    assert found.name == f"AMD {chip} with {units} compute units"
    assert found.tile is None
    assert "float32" in found.multiplies


def test_the_memory_of_amds_hbm3_is_twice_what_rocm_writes() -> None:
    """2662 GB/s stand in a real trace of an MI300X, whose data sheet says 5.3 TB/s."""
    assert amd(9, 4, memory_bandwidth=2_662_400_000_000).bandwidth_bytes_s == 5_324_800_000_000
    narrow = amd(9, 0, core_count=110, memory_bandwidth=1_638_400_000_000)
    assert narrow.bandwidth_bytes_s == 1_638_400_000_000


def test_an_amd_board_is_told_by_its_name_first() -> None:
    assert amd(9, 0, gpu_device_name="AMD Instinct MI300X").peak_flop_s is None
    assert amd(9, 0, gpu_device_name="AMD Instinct MI210").sixteen_bit
    assert amd(0, 0, gpu_device_name="gfx90a:sramecc+:xnack-").matrix_unit == "Matrix Core"


@cases(
    (amd(11, 0, core_count=96), False, "AMD"),
    (amd(9, 0, core_count=96), False, "AMD"),
    (amd(9, 0, core_count=64), True, "gfx906"),
    (gpu(), False, "does not name the GPU"),
    # Compute capability 7.5 is also that of the GTX 16 series, which has no Tensor Cores.
    (capable(7, 5, gpu_device_name="NVIDIA GeForce GTX 1660 Ti"), True, "GTX 1660 Ti"),
    *((capable(*one, gpu_device_name="Tesla"), True, "{}.{}".format(*one)) for one in ((6, 0), (6, 1), (3, 7))),
    *((capable(*one, gpu_device_name="Tesla"), False, "{}.{}".format(*one)) for one in ((8, 7), (13, 0))),
)
def test_a_gpu_that_is_not_in_the_table_is_unknown(found: Hardware, *, without: bool, missing: str) -> None:
    """Only of generations before Volta is it known that they have no Tensor Cores."""
    assert (found.matrix_unit, found.sixteen_bit, found.tile, found.peak_flop_s) == ("", None, None, None)
    assert found.without_unit is without
    assert missing in found.missing


def test_a_gpu_without_a_name_is_described_by_its_numbers() -> None:
    """TensorFlow 2.3 and 2.4 write no name."""
    assert capable(7, 0, core_count=80).name == "compute capability 7.0 with 80 multiprocessors"
    assert (capable(6, 1).name, gpu().name) == ("compute capability 6.1", "")
    assert capable(8, 7, gpu_device_name="Tesla").name == "Tesla"
    assert capable(7, 5, gpu_device_name="NVIDIA GeForce RTX 2060").sixteen_bit


@cases(
    ((7, 0), {"float16"}),
    ((7, 5), {"float16", "int8", "uint8"}),
    ((8, 0), {"float16", "int8", "uint8", "bfloat16", "float32", "float64"}),
    ((8, 6), {"float16", "int8", "uint8", "bfloat16", "float32"}),
)
def test_what_tensor_cores_multiply_by_generation(capability: tuple[int, int], types: set[str]) -> None:
    found = capable(*capability)
    assert found.multiplies == types
    assert found.strict == (capability < (8, 0))


def test_a_gpu_whose_kernels_were_not_recorded_keeps_its_name() -> None:
    found = chart(trace([], gpus=[v100()])).fact(Hardware)
    assert (found.name, found.matrix_unit) == ("Tesla V100-SXM2-16GB", "Tensor Core")
    assert capable(7, 0).peak_flop_s is None  # without a clock


def test_every_rate_is_at_least_that_of_float32() -> None:
    assert all(half >= full or half == 0 for full, half, _ in GPU_RATES.values())
    assert all(half >= full or half == 0 for full, half, _, _ in AMD_RATES.values())


# CPUs


@cases(
    (("avx2", "avx512f", "avx512_bf16", "amx_bf16"), "AMX", 16),
    (("avx2", "avx512f", "avx512_bf16"), "AVX512-BF16", 16),
    (("avx2", "avx512f"), "", 16),
    (("avx2",), "", None),
)
def test_a_cpus_flags_tell_its_unit(flags: tuple[str, ...], unit: str, tile: int | None) -> None:
    found = cpu(*flags)
    assert found.matrix_unit == unit
    assert (found.tile.multiple if found.tile else None) == tile
    assert (found.sixteen_bit is None) == (not unit)
    assert bool(found.missing) == (not unit)


def test_processors_without_amx_have_figures_of_their_own() -> None:
    with_amx, without = cpu("avx512f", "avx512_bf16", "amx_bf16"), cpu("avx512f", "avx512_bf16")
    assert with_amx.float32.matmuls < without.float32.matmuls
    assert with_amx.tile
    assert without.tile
    assert (with_amx.tile.bound, without.tile.bound) == (Bound.EXPECTED, Bound.AT_MOST)
    # What float64 costs is known where it was measured.
    bounds = [one.float32.bound for one in (with_amx, without, cpu("avx512f"), cpu("avx2"))]
    assert bounds == [Bound.EXPECTED, Bound.EXPECTED, Bound.AT_MOST, Bound.AT_MOST]


def test_a_cpu_that_nobody_recorded_is_unknown() -> None:
    found = chart(trace([])).fact(Hardware)
    assert (found.kind, found.sixteen_bit, found.cores, cpu().cores) == ("CPU", None, None, 4.0)
    assert "tfdoctor profile" in found.missing
    assert cpu("amx_bf16", model="").sixteen_bit is None


# TPUs


@cases(
    *[(f"TPU {generation}", 128) for generation in ("v2", "v3", "v4", "v5 lite", "v5p")],
    *[(name, 256) for name in ("TPU v6 lite", "TPU v7x", "TPU7x")],
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
    assert (found.kind, found.visible, found.used, found.missing) == (DeviceKind.CPU, 1, 1, None)


def test_the_report_is_about_the_busiest_device() -> None:
    idle, busy = v100(), v100(line("Stream #1", ("k", 0, 9)))
    little = v100(line("Stream #1", ("k", 0, 1)), line("Kernels", ("k", 0, 99)))
    found = chart(trace([], gpus=[idle, little, busy])).fact(Device)
    assert (found.visible, found.used) == (3, 2)
    assert found.busiest
    assert found.busiest.name == "/device:GPU:2"


@cases(
    *[(call, "GPU") for call in ("cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernel")],
    *[(call, "GPU") for call in ("cudaLaunchCooperativeKernel", "hipExtModuleLaunchKernel")],
    *[(call, "CPU") for call in ("Launch", "my_LaunchKernel")],
)
def test_a_host_that_launches_kernels_has_a_gpu_that_the_trace_lacks(call: str, kind: str) -> None:
    """Work of a GPU whose plane was removed is no work of the CPU."""
    host = line("python", ("model/dense/MatMul:MatMul", 1, 2), (call, 3, 4))
    known = chart(trace([markers(1, 10), host]), recording())
    found = known.fact(Device)
    assert (found.kind, bool(found.missing)) == (kind, kind == "GPU")
    if kind == "GPU":
        assert found.missing == NO_GPU
        with pytest.raises(Unavailable, match="the GPU plane was removed"):
            known.fact(GpuActivities)
        assert "device" not in {part for part, ms in known.fact(Breakdown).median.items() if ms}


def test_a_tpu_goes_before_a_gpu() -> None:
    both = trace([], gpus=[v100(KERNEL)], tpus=[device(line("XLA Ops", ("%a", 0, 1)))])
    assert chart(both).fact(Device).kind == "TPU"


@cases(
    ("Failed to load libcupti (is it installed and accessible?)", NO_CUPTI),
    ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", NO_PERMISSION),
    ("CUPTI: the user does not have privileges to profile", NO_PERMISSION),
    ("", NO_KERNELS),
)
def test_why_a_gpu_has_no_kernels(error: str, reason: Unavailable) -> None:
    for told in (trace([], gpus=[v100()], errors=(error,)), trace([], gpus=[v100()], warnings=(error,))):
        device = chart(told).fact(Device)
        assert (device.missing, device.used) == (reason, 0)


@cases(((6, 1), 256), ((5, 2), 256), ((6, 0), 0), ((3, 7), 0))
def test_the_rate_in_float32_where_float16_is_no_faster(capability: tuple[int, int], flops_per_clock: int) -> None:
    found = capable(*capability, clock_rate=1_000_000, core_count=10)
    assert (found.float32_flop_s or 0) == flops_per_clock * 10 * 1e9
