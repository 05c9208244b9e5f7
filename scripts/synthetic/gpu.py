"""Runs on NVIDIA GPUs."""

from itertools import count

from scripts.synthetic import kernels
from scripts.synthetic.gpu_schedule import COPIED, HEAD, Schedule, schedule, truth
from scripts.synthetic.gpus import GPUS, PAGEABLE, Gpu, chip
from scripts.synthetic.host import Host, environment, input_work
from scripts.synthetic.operation import Op
from scripts.synthetic.run import Run, operations
from scripts.synthetic.xspace import MS, U64, US, Line, Plane, Ref, Space

ON_HOST = "smooth/EagerPyFunc"
"""The operation on the host of a run with a detour."""

DETOUR = 20_000_000
"""Correlation ids from here on belong to the copies of detours, two each."""

EARLIER = 10_000_000
"""Correlation ids from here on belong to launches before the trace."""

__all__ = ["GPUS", "PAGEABLE", "build", "chip", "truth"]


class Device:
    """The GPU's plane and its streams."""

    def __init__(self, space: Space, run: Run, number: int = 0) -> None:
        self.run = run
        self.plane = _plane(space, GPUS[run.device], number)
        self.compute = self.plane.line(14, "Stream #14(Kernel,Memset)")
        self.copies = self.plane.line(16, "Stream #16(MemcpyH2D)")
        self.results = self.plane.line(18, "Stream #18(MemcpyD2H)")
        self.peers = self.plane.line(20, "Stream #20(Kernel)") if run.all_reduce_ms else None

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

    def detour(self, start: int, end: int, correlation: int) -> None:
        """Record the copies around an operation on the host: of what it takes, and of what it makes."""
        for line, name, tensor, at, number in (
            (self.results, "MemcpyD2H", "re_lu/Relu/_30:_HostRecv", start, correlation),
            (self.copies, "MemcpyH2D", f"{ON_HOST}/_32:_Recv", end - COPIED, correlation + 1),
        ):
            line.add(
                name, at, COPIED, correlation_id=number, context_id="$$1", tf_op=Ref(tensor),
                memcpy_details=Ref("kind_src:pinned kind_dst:pinned size:500000 dest:0 async:1"),
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
    """Return the trace of a run."""
    space, plan = Space(), schedule(run)
    gpus = [Device(space, run, number) for number in range(run.replicas)]
    for number in range(run.replicas, run.replicas + run.idle_gpus):
        _plane(space, GPUS[run.device], number)
    host = Host(space, run.network.batch, run.replicas)
    for device in gpus if plan.lag else ():  # launched before the trace began
        _run_step(run, device, plan, plan.end, list(range(EARLIER, EARLIER + 1 + len(plan.kernels))))
    correlations = count(100)
    for number in range(run.steps):
        start = (number + 1) * plan.end  # the first batch was made before the first step
        _host_step(run, host, plan, number, start)
        for device, executor in zip(gpus, host.executors, strict=True):
            launched = _launch_step(run, executor, plan, start, correlations)
            if plan.detour:
                _detour(device, executor, plan.detour, start, DETOUR + 2 * number)
            if number + plan.lag < run.steps:
                _run_step(run, device, plan, start + plan.lag * plan.end, launched)
    if run.prefetch:
        work = input_work(run, plan.end)
        host.produce(run.steps, plan.end + plan.ready - 8 * US, plan.end, work)
    host.end((run.steps + 1) * plan.end)
    environment(space)
    return space


def _host_step(run: Run, host: Host, plan: Schedule, number: int, start: int) -> None:
    host.call(number, start, plan.call_end)
    launched = plan.launches[-1] + round(run.dispatch_us * US)
    for executor in host.executors:
        host.execute(executor, number, start + 20 * US, launched - 10 * US)
    if run.compile_ms:
        host.compile(start + plan.ready, round(run.compile_ms * MS))
    if run.memory:
        host.allocate(start + plan.ready, run.memory, GPUS[run.device].memory)
    wait = host.wait if run.prefetch else host.make
    wait(number, start + HEAD, plan.ready - HEAD, run.network.image_bytes)


def _detour(device: Device, executor: Line, detour: tuple[int, int], start: int, correlation: int) -> None:
    """Record an operation on the host, the copies before and after it, and who launches them."""
    first, last = start + detour[0], start + detour[1]
    ids = {"device_id": 0, "correlation_id": correlation}
    executor.add("cuMemcpyDtoHAsync_v2", first - 6 * US, 3 * US, **ids)
    executor.add(f"{ON_HOST}:EagerPyFunc", first + COPIED, last - first - 2 * COPIED - 7 * US)
    back = ids | {"correlation_id": correlation + 1}
    executor.add("cuMemcpyHtoDAsync_v2", last - COPIED - 6 * US, 3 * US, **back)
    device.detour(first, last, correlation)


def _launch_step(run: Run, executor: Line, plan: Schedule, start: int, numbers: "count[int]") -> list[int]:
    """Record a step's launches; return their correlations: copy, kernels, all-reduce, loss."""
    length = round(run.dispatch_us * US) - US // 10
    correlations: list[int] = []

    def launch(call: str, at: int) -> None:
        correlations.append(next(numbers))
        executor.add(call, start + at, length // 2, device_id=0, correlation_id=correlations[-1])

    executor.add("IteratorGetNext/_1:_Send", start + plan.ready + US, 8 * US)
    launch("cuMemcpyHtoDAsync_v2", plan.copy[0] - 6 * US)
    for op, at in zip(operations(run), plan.launches, strict=True):
        executor.add(op.tf_op, start + at, length)
        launch("cuLaunchKernel", at + length // 4)
    if run.all_reduce_ms:
        launch("cuLaunchKernel", plan.launches[-1] + length)
    if not run.ahead:
        launch("cuMemcpyDtoHAsync_v2", plan.launches[-1] + length + US)
    return correlations


def _run_step(run: Run, device: Device, plan: Schedule, start: int, launched: list[int]) -> None:
    """Record the GPU's work in a step whose launches have these correlations."""
    device.batch(start + plan.copy[0], plan.copy[1], launched[0])
    steps = zip(operations(run), plan.kernels, launched[1:], strict=False)
    for op, (kernel, busy), number in steps:
        device.kernel(op, start + kernel, busy, number)
    if run.all_reduce_ms:
        device.all_reduce(start + plan.all_reduce[0], plan.all_reduce[1], launched[-2])
    if not run.ahead:
        device.loss(start + plan.loss, launched[-1])
