"""What is known of a machine, and what is not; and which of its devices the report is about."""

from tests.facts.kit import *

told = Told()
KERNEL = line("Stream #1(Compute)", ("k", 0, 5))
AMPERE = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))
TPUS = ("TPU v2", "TPU v3", "TPU v4", "TPU v5 lite", "TPU v5p", "TPU v6 lite", "TPU v7x", "TPU7x")
RATES = {"peak_teraflops_per_second": 197.0, "peak_hbm_bw_gigabytes_per_second": 819.0}


def gpu(**stats: Any) -> Hardware:
    return chart(trace([], gpus=[device(KERNEL, **stats)])).fact(Hardware)


def capable(major: int, minor: int, **stats: Any) -> Hardware:
    return gpu(compute_cap_major=major, compute_cap_minor=minor, **stats)


def amd(major: int, minor: int, **stats: Any) -> Hardware:
    return capable(major, minor, device_vendor="AMD", **stats)


def cpu(*flags: str, model: str = "AMD EPYC") -> Hardware:
    host = HostMachine("vm", model, flags, 8, 4.0)
    return chart(trace([markers(1, 10)]), recording(manifest=manifest(host=host))).fact(Hardware)


def tpu(name: str, **stats: Any) -> Hardware:
    plane = device(line("XLA Ops", ("%a", 0, 1)), device_type_string=name, **stats)
    return chart(trace([], tpus=[plane])).fact(Hardware)


told[capable] = {
    "compute capability 7.5": (7, 5),
    **{f"from Ampere on float32 runs as TF32: {major}.{minor}": (major, minor) for major, minor in AMPERE},
    "before Volta there are no Tensor Cores": (6, 0),
    "of Pascal's boards float32 has a rate": (6, 1),
    "of Kepler's it has none": (3, 7),
    "a generation that is not in the table is unknown": (8, 7),
    "so is a later one": (13, 0),
}
told[answer] = {
    "a V100 multiplies in float16": lambda: chart(trace([], gpus=[v100(KERNEL)])).fact(Hardware),
    "a V100 whose kernels were not recorded": lambda: chart(trace([], gpus=[v100()])).fact(Hardware),
    "an MI100": lambda: amd(9, 0, core_count=120, clock_rate=1_502_000),
    "an MI250, of a die": lambda: amd(9, 0, core_count=110, clock_rate=1_700_000),
    "an MI300X": lambda: amd(9, 4, core_count=304, clock_rate=2_100_000),
    "an MI355X": lambda: amd(9, 5, core_count=256, clock_rate=2_400_000),
    # 2662 GB/s stand in a real trace of an MI300X, whose data sheet says 5.3 TB/s.
    "the memory of AMDs HBM3 is twice what ROCm writes": lambda: amd(9, 4, memory_bandwidth=2_662_400_000_000),
    "that of HBM2 is not": lambda: amd(9, 0, core_count=110, memory_bandwidth=1_638_400_000_000),
    "an AMD board is told by its name first": lambda: amd(9, 0, gpu_device_name="AMD Instinct MI300X"),
    "an MI210 by its name": lambda: amd(9, 0, gpu_device_name="AMD Instinct MI210"),
    "a chip by its name": lambda: amd(0, 0, gpu_device_name="gfx90a:sramecc+:xnack-"),
    "an AMD accelerator without units": lambda: amd(9, 0),
    "a board of AMD's for games": lambda: amd(11, 0, core_count=96),
    "units of no accelerator of AMD's": lambda: amd(9, 0, core_count=96),
    "an MI50 has no Matrix Cores": lambda: amd(9, 0, core_count=64),
    "a GPU of which nothing is told": gpu,
    # Compute capability 7.5 is also that of the GTX 16 series.
    "a GTX 1660 has no Tensor Cores": lambda: capable(7, 5, gpu_device_name="NVIDIA GeForce GTX 1660 Ti"),
    "an RTX 2060 has": lambda: capable(7, 5, gpu_device_name="NVIDIA GeForce RTX 2060"),
    "a GPU without a name is described by its numbers": lambda: capable(7, 0, core_count=80),
    "an unknown one by its name": lambda: capable(8, 7, gpu_device_name="Tesla"),
    "a CPU with AMX": lambda: cpu("avx2", "avx512f", "avx512_bf16", "amx_bf16"),
    "a CPU with bfloat16 in AVX-512": lambda: cpu("avx2", "avx512f", "avx512_bf16"),
    "a CPU with AVX-512": lambda: cpu("avx2", "avx512f"),
    "a CPU with AVX2": lambda: cpu("avx2"),
    "a CPU that nobody recorded": lambda: chart(trace([])).fact(Hardware),
    "a CPU without a name": lambda: cpu("amx_bf16", model=""),
    **{f"a {name}": partial(tpu, name, **RATES) for name in TPUS},
}


def test_every_rate_is_at_least_that_of_float32() -> None:
    assert all(half >= full or half == 0 for full, half, _ in GPU_RATES.values())
    assert all(half >= full or half == 0 for full, half, _, _ in AMD_RATES.values())


IDLE = v100(line("Stream #1", ("k", 0, 1)), line("Kernels", ("k", 0, 99)))


def devices(found: Device) -> object:
    return {**fields(found, "kind visible used missing"), "busiest": found.busiest and found.busiest.name}


told[lambda of: devices(chart(of).fact(Device))] = {
    "without an accelerator the CPU did the work": trace([markers(1, 10)]),
    "the report is about the busiest device": trace([], gpus=[v100(), IDLE, v100(line("Stream #1", ("k", 0, 9)))]),
    "a TPU goes before a GPU": trace([], gpus=[v100(KERNEL)], tpus=[device(line("XLA Ops", ("%a", 0, 1)))]),
}

test_hardware = told.test("hardware")

LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernel", "cudaLaunchCooperativeKernel")


@each(*LAUNCHES, "hipExtModuleLaunchKernel", "Launch", "my_LaunchKernel")
def test_a_host_that_launches_kernels_has_a_gpu_that_the_trace_lacks(call: str) -> None:
    """Work of a GPU whose plane was removed is no work of the CPU."""
    host = line("python", ("model/dense/MatMul:MatMul", 1, 2), (call, 3, 4))
    known, of_gpu = chart(trace([markers(1, 10), host])), call not in {"Launch", "my_LaunchKernel"}
    found, parts = known.fact(Device), {part for part, ms in known.fact(Breakdown).median.items() if ms}
    assert (found.kind, found.missing) == (("GPU", NO_GPU) if of_gpu else ("CPU", None))
    assert ("device" in parts) is not of_gpu
    if of_gpu:
        with pytest.raises(Unavailable, match="the GPU plane was removed"):
            known.fact(GpuActivities)


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
