"""memory-headroom: both sides of each limit, and the memory figures of trace and samples."""

from tests.rules.kit import *
from tfdoctor.rules.scale.memory_headroom import check


def example(
    allocator: Allocator | None = Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),
    host: HostMemory | Unavailable = HostMemory(64e9, 20e9), tuned: TunedBuffers | None = None,
) -> Verdict:  # fmt: skip
    """On a GPU, 15.4 of 15.5 GB are in use."""
    device = DeviceMemory((allocator,)) if allocator else Unavailable("no accelerator")
    return check(device, host, tuned)


def host(share: float, stalled: float | None = 0.0) -> Verdict:
    return example(None, HostMemory(1e9, share * 1e9, stalled=stalled))


def allocation(at: float, free: int, used: int, name: str = "GPU_0_bfc", **more: Any) -> Any:
    told = {"allocator_name": name, "bytes_available": free, "bytes_allocated": used}
    stats = told | {"bytes_reserved": 0, "peak_bytes_in_use": 95} | more
    return ("MemoryAllocation", at, at, stats)


def sample(second: int, **host: Any) -> Mapping[str, Any]:
    return {"unix_ns": second * 10**9, "host": {"memory_total_bytes": 100, **host}}


sick = example
THIRD = HostMemory(64e9, 20e9, stalled=0.0)
healthy = described("The host's memory is a third full, and no task waits for memory.", example, None, THIRD)


@golden_cases
def test_verdicts(told: Cases) -> None:
    nothing = Unavailable("not there")
    told["trap: the peak of the run is at the limit in both cases, because cuDNN tries algorithms"] = [
        example(Allocator("GPU_0_bfc", 1e9, used * 1e9, 1e9), nothing) for used in (0.95, 0.94)
    ]
    told["a host that is 95 % full, and less"] = host(0.95), host(0.94)
    told["a host that waits for memory for 2 % of the time, and less"] = host(0.5, 0.02), host(0.5, 0.019)
    told["a host that is full, where waits are unknown"] = host(0.99, None)
    told["a host that waits for memory for a fifth of the time"] = host(0.5, 0.2)
    tuned = TunedBuffers((dataset_of("Prefetch", at=script(22)),), largest_bytes=38_535_168)
    told["tf.data sizes buffers of a host whose memory is full"] = example(None, HostMemory(1e9, 0.99e9), tuned)
    told["and not where the device's is"] = example(tuned=tuned)
    told["no figures"] = example(None, nothing)


@golden_cases
def test_memory(told: Cases) -> None:
    def of_devices(name: str, *rows: Any, **more: Any) -> None:
        told[name] = lambda: chart(trace([line("python", *rows)], **more)).fact(DeviceMemory)

    parts = allocation(1, 60, 40), allocation(2, 30, 70), allocation(3, 1, 9, "gpu_host_bfc")
    of_devices("the limit of an allocator is the sum of its parts", *parts, gpus=[v100()])
    lone = ("MemoryAllocation", 1, 1, {"allocator_name": "GPU_0_bfc", "bytes_available": 60})
    of_devices("allocations without their parts", lone, gpus=[v100()])
    of_devices("allocations on a CPU", allocation(1, 60, 40))
    rows = [
        sample(1, memory_used_bytes=40, psi_memory_us=5_000_000, run_rss_bytes=30),
        sample(3, memory_used_bytes=60, psi_memory_us=5_500_000, run_rss_bytes=20),
    ]
    told["the kernel counts the waits: 0.5 s of 2 s"] = chart(trace(), recording(samples=rows)).fact(HostMemory)
    rows = [sample(1, memory_used_bytes=40)]
    told["no figures of pressure"] = chart(trace(), recording(samples=rows)).fact(HostMemory)
