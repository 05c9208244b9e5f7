"""Runs on NVIDIA GPUs."""

from dataclasses import dataclass
from itertools import count

from scripts.synthetic import kernels
from scripts.synthetic.host import Host, environment, input_work
from scripts.synthetic.network import Op
from scripts.synthetic.run import READY, Chip, Run, Truth, compute, duration
from scripts.synthetic.xspace import MS, U64, US, Plane, Ref, Space

HEAD = 30 * US
"""From the start of a step to asking for its batch."""

TAIL = 25 * US
"""From the loss's copy back to the host until the call returns."""

LATENCY = 4 * US
"""From a launch to the start of the kernel on an idle device."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What CUPTI's collector says of a device, and what its data sheet adds."""

    name: str
    capability: tuple[int, int]
    clock_khz: int
    multiprocessors: int
    bandwidth: int  # bytes per second
    memory: int  # bytes
    rates: dict[str, int]  # FLOP per multiprocessor and clock, dense
    pinned: float  # bytes per second over the bus


GPUS = {
    "v100": Gpu("Tesla V100-SXM2-16GB", (7, 0), 1_530_000, 80, 898_048_000_000, 16_900_000_000,
                {"fp32": 128, "fp16": 1024}, 12e9),
    "t4": Gpu("Tesla T4", (7, 5), 1_590_000, 40, 320_064_000_000, 15_800_000_000,
              {"fp32": 128, "fp16": 1024}, 12e9),
    "a100": Gpu("NVIDIA A100-SXM4-40GB", (8, 0), 1_410_000, 108, 1_555_200_000_000, 42_285_000_000,
                {"fp32": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048}, 24e9),
    "h100": Gpu("NVIDIA H100 80GB HBM3", (9, 0), 1_980_000, 132, 3_352_320_000_000, 85_000_000_000,
                {"fp32": 256, "tf32": 2048, "fp16": 4096, "bf16": 4096}, 50e9),
}  # fmt: skip

PAGEABLE = 4e9
"""Bytes per second of a copy from memory that is not pinned (seen: 3.5 to 4.5 GB/s)."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When things happen in a step, ps from its start; launches and kernels by operation."""

    ready: int  # the batch is there
    copy: tuple[int, int]  # start, duration
    launches: tuple[int, ...]
    kernels: tuple[tuple[int, int], ...]  # start, duration
    all_reduce: tuple[int, int]  # start, duration
    loss: int  # is copied back
    call_end: int
    end: int


def chip(run: Run) -> Chip:
    """Return what the run's device can do in its precision.

    Raises:
        ValueError: the device does not know the precision.
    """
    gpu = GPUS[run.device]
    if run.precision not in gpu.rates:
        raise ValueError(f"{gpu.name} has no {run.precision}, only {', '.join(gpu.rates)}")
    peak = gpu.multiprocessors * gpu.clock_khz * 1e3 * gpu.rates[run.precision]
    half = run.precision in ("fp16", "bf16")
    return Chip(peak, gpu.bandwidth, 8 if half else 1, 2 if half else 4)


def schedule(run: Run) -> Schedule:
    """Play one step through: the host launches, the device works, one after the other."""
    device, ops = chip(run), run.network.training_step()
    ready = HEAD + max(READY, round(run.input_ms * MS))
    rate = GPUS[run.device].pinned if run.copy == "pinned" else PAGEABLE
    copy_time = round(run.network.image_bytes / rate * 1e9) * 1000
    copy = (ready + 8 * US, copy_time)
    free = ready if run.overlap else sum(copy)
    launch, launches, placed = ready + 10 * US, [], []
    for op in ops:
        launches.append(launch)
        launch += round(run.dispatch_us * US)
        start = max(launch + LATENCY, free)
        placed.append((start, duration(op, device)))
        free = sum(placed[-1]) + round(run.gap_us * US)
    all_reduce = (sum(placed[-1]) - round(run.hidden_ms * MS), round(run.all_reduce_ms * MS))
    loss = max(sum(placed[-1]), sum(copy), sum(all_reduce)) + 5 * US
    call_end = loss + TAIL
    end = call_end + round(run.between_ms * MS)
    return Schedule(ready, copy, tuple(launches), tuple(placed), all_reduce, loss, call_end, end)


def truth(run: Run) -> Truth:
    """Return what every step of the run is made of."""
    plan = schedule(run)
    copied, busy = plan.copy, plan.kernels
    hidden = sum(max(0, min(sum(copied), s + d) - max(copied[0], s)) for s, d in busy)
    return Truth(
        steps=run.steps,
        step_ms=plan.end / MS,
        input_wait_ms=(plan.ready - HEAD) / MS,
        input_work_ms=input_work(run, plan.end) / MS,
        copy_ms=copied[1] / MS,
        copy_bytes=run.network.image_bytes,
        copy_exposed_ms=(copied[1] - hidden) / MS,
        between_ms=run.between_ms,
        **compute(run, chip(run)),  # type: ignore[arg-type]  # counts are whole numbers
    )


class Device:
    """The GPU's plane and its streams."""

    def __init__(self, space: Space, run: Run) -> None:
        self.run = run
        self.plane = _plane(space, GPUS[run.device], 0)
        self.compute = self.plane.line(14, "Stream #14(Kernel,Memset)")
        self.copies = self.plane.line(16, "Stream #16(MemcpyH2D)")
        self.results = self.plane.line(18, "Stream #18(MemcpyD2H)")
        self.peers = self.plane.line(20, "Stream #20(Kernel)") if run.all_reduce_ms else None
        for number in range(1, run.idle_gpus + 1):
            _plane(space, GPUS[run.device], number)

    def kernel(self, op: Op, start: int, length: int, correlation: int) -> None:
        """Record a kernel."""
        self.compute.add(
            kernels.kernel(op, self.run.device, self.run.precision), start, length,
            correlation_id=correlation, context_id="$$1", kernel_details=Ref(kernels.details(op)),
            theoretical_occupancy_pct=25.0 if op.is_matrix else 100.0, tf_op=Ref(op.tf_op),
            shape=Ref(kernels.shapes(op, self.run.precision)),
        )  # fmt: skip

    def all_reduce(self, start: int, length: int, correlation: int) -> None:
        """Record the kernel that sums the gradients of all GPUs."""
        if self.peers is not None:
            self.peers.add(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", start, length,
                correlation_id=correlation, context_id="$$1", tf_op=Ref("NcclAllReduce:CollectiveReduceV2"),
            )  # fmt: skip

    def batch(self, start: int, length: int, correlation: int) -> None:
        """Record the copy of a batch to the device."""
        kind = f"kind_src:{self.run.copy} kind_dst:device"
        text = f"{kind} size:{self.run.network.image_bytes} dest:0 async:1"
        self.copies.add(
            "MemcpyH2D", start, length, correlation_id=correlation, context_id="$$1",
            memcpy_details=Ref(text), tf_op=Ref("IteratorGetNext/_2:_Recv"),
        )  # fmt: skip

    def loss(self, start: int, correlation: int) -> None:
        """Record the copy of the loss to the host."""
        text = "kind_src:device kind_dst:pinned size:4 dest:0 async:1"
        self.results.add(
            "MemcpyD2H", start, 3 * US, correlation_id=correlation, context_id="$$1",
            memcpy_details=Ref(text),
        )  # fmt: skip


def _plane(space: Space, gpu: Gpu, number: int) -> Plane:
    return space.plane(
        f"/device:GPU:{number}", number, device_vendor="Nvidia", gpu_device_name=gpu.name,
        clock_rate=gpu.clock_khz, core_count=gpu.multiprocessors,
        memory_bandwidth=U64(gpu.bandwidth), memory_size=U64(gpu.memory),
        compute_cap_major=gpu.capability[0], compute_cap_minor=gpu.capability[1],
    )  # fmt: skip


def build(run: Run) -> Space:
    """Return the whole trace."""
    space, plan = Space(), schedule(run)
    device, host = Device(space, run), Host(space, run.network.batch)
    correlations = count(100)
    for number in range(run.steps):
        start = (number + 1) * plan.end  # the first batch was made before the first step
        _host_step(run, host, plan, number, start)
        _device_step(run, host, device, plan, start, correlations)
    host.produce(run.steps, plan.end + plan.ready - 8 * US, plan.end, input_work(run, plan.end))
    host.end((run.steps + 1) * plan.end)
    environment(space)
    return space


def _host_step(run: Run, host: Host, plan: Schedule, number: int, start: int) -> None:
    host.call(number, start, plan.call_end)
    launched = plan.launches[-1] + round(run.dispatch_us * US)
    host.execute(number, start + 20 * US, launched - 10 * US)
    host.wait(number, start + HEAD, plan.ready - HEAD, run.network.image_bytes)


def _device_step(
    run: Run, host: Host, device: Device, plan: Schedule, start: int, numbers: "count[int]"
) -> None:
    length = round(run.dispatch_us * US) - US // 10

    def launch(call: str, at: int) -> int:
        number = next(numbers)
        host.executor.add(call, start + at, length // 2, device_id=0, correlation_id=number)
        return number

    host.executor.add("IteratorGetNext/_1:_Send", start + plan.ready + US, 8 * US)
    number = launch("cuMemcpyHtoDAsync_v2", plan.ready + 2 * US)
    device.batch(start + plan.copy[0], plan.copy[1], number)
    steps = zip(run.network.training_step(), plan.launches, plan.kernels, strict=True)
    for op, at, (kernel, busy) in steps:
        host.executor.add(op.tf_op, start + at, length)
        device.kernel(op, start + kernel, busy, launch("cuLaunchKernel", at + length // 4))
    if run.all_reduce_ms:
        number = launch("cuLaunchKernel", plan.launches[-1] + length)
        device.all_reduce(start + plan.all_reduce[0], plan.all_reduce[1], number)
    number = launch("cuMemcpyDtoHAsync_v2", plan.launches[-1] + length + US)
    device.loss(start + plan.loss, number)
