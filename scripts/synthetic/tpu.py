"""Runs on TPUs, compiled by XLA."""

from dataclasses import dataclass
from math import prod
from typing import Any

from xprof.protobuf import op_stats_pb2

from scripts.synthetic.host import Host, environment, input_work
from scripts.synthetic.operation import Op, Shape
from scripts.synthetic.run import READY, Chip, Run, Truth, compute, duration, traffic
from scripts.synthetic.tpu_instruction import CATEGORY, PROGRAM_ID, Instruction, category, hlo, layout
from scripts.synthetic.tpu_program import program
from scripts.synthetic.xspace import MS, T0_NS, US, Line, Ref, Space
from tfdoctor.trace.hlo import PROTO

__all__ = ["ALL", "CATEGORY", "TPUS", "Recorded", "build", "chip", "hlo", "layout", "schedule", "truth"]

MODULE = f"cluster_train_step({PROGRAM_ID})"

OUTFEED = 10 * US
"""Duration of sending the loss."""


@dataclass(frozen=True, slots=True)
class Tpu:
    """A TPU generation; the values are for one plane: a core, or a chip with one core."""

    type_string: str
    tflops: float
    hbm: float  # GB/s
    planes: int
    tile: int  # side of the matrix unit


TPUS = {
    "v3": Tpu("TPU v3", 61.5, 450.0, 2, 128),
    "v5e": Tpu("TPU v5 Lite", 197.0, 819.0, 1, 128),
    "v6e": Tpu("TPU v6 Lite", 918.0, 1637.99, 1, 256),
}
"""v6e as in a real trace; the others as xprof has them."""

LANES = 128
"""Memory pads channels to a multiple of this, for each size of matrix unit."""

STARTING = 1000
"""Duration of starting a copy, in ps."""

COPIED = 4 * 1024 * 1024
"""Bytes of the copy from the host's memory."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Which data the profiler recorded, and properties of the recorded run."""

    step_line: bool = True  # JAX has none
    markers: bool = True  # of the steps, on the host
    infeed: bool = True  # else the core waits for input without an operation
    program: bool = False  # the compiled program
    copy_ms: float = 0.0  # of a copy from the host's memory in every step
    hidden_by: int = 0  # operations, before the step's last, that run during the copy
    late_us: float = 0.0  # from the end of a step on the core until the host enqueues the next
    drift: float = 0.0  # share by which the core's clock is slower than the host's


ALL = Recorded()
"""A recording by TensorFlow."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a step, in ps from its start."""

    infeed: int  # duration, from the start on
    ops: tuple[tuple[int, int], ...]  # start, duration
    copy: tuple[int, int, int]  # when it begins, when it is waited for, and until when
    outfeed: int
    end: int


def chip(run: Run) -> Chip:
    """Return the peak rates of one plane; the MXU multiplies in bfloat16 in both precisions.

    Raises:
        ValueError: TPUs do not have this precision.
    """
    tpu = TPUS[run.device]
    if run.precision not in ("fp32", "bf16"):
        raise ValueError(f"a TPU trains in fp32 or bf16, not in {run.precision}")
    value = 2 if run.precision == "bf16" else 4
    return Chip(tpu.tflops * 1e12, tpu.hbm * 1e9, tpu.tile, value, LANES)


def schedule(run: Run, recorded: Recorded = ALL) -> Schedule:
    """Schedule a step's operations one after the other; the last one waits for the copy."""
    device = chip(run)
    infeed = max(READY, round(run.input_ms * MS))
    at, placed = infeed, []
    steps = run.network.training_step()
    began = ended = waited = infeed
    for number, op in enumerate(steps, start=1 - len(steps)):
        at += round(run.gap_us * US)
        if recorded.copy_ms and number == -recorded.hidden_by:
            began, at = at, at + STARTING
        if recorded.copy_ms and number == 0:
            waited = at
            at = ended = began + round(recorded.copy_ms * MS)
        placed.append((at, duration(op, device)))
        at += placed[-1][1]
    end = at + OUTFEED + round(run.between_ms * MS)
    return Schedule(infeed, tuple(placed), (began, waited, ended), at, end)


def truth(run: Run) -> Truth:
    """Return the true parts of every step of the run."""
    plan = schedule(run)
    return Truth(
        steps=run.steps,
        step_ms=plan.end / MS,
        input_wait_ms=plan.infeed / MS,
        input_work_ms=input_work(run, plan.end) / MS,
        copy_ms=0.0,
        copy_bytes=run.network.image_bytes,
        copy_exposed_ms=0.0,
        between_ms=run.between_ms,
        **compute(run, chip(run)),  # type: ignore[arg-type]  # counts are whole numbers
    )


class Core:
    """The plane of one core."""

    def __init__(self, space: Space, number: int, run: Run, recorded: Recorded = ALL) -> None:
        tpu, self.run, self.recorded = TPUS[run.device], run, recorded
        details = op_stats_pb2.CoreDetails(
            hostname="vm", device_ordinal=number, core_num=number, global_core_id=number
        )
        self.plane = space.plane(
            f"/device:TPU:{number}", number, device_type_string=Ref(tpu.type_string),
            peak_teraflops_per_second=tpu.tflops, peak_hbm_bw_gigabytes_per_second=tpu.hbm,
            has_megacore=0, has_merged_vmem=int(run.device == "v6e"),
            core_details=details.SerializeToString(),
        )  # fmt: skip
        names = ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")
        self.steps, self.modules, self.ops, _ = (self.plane.line(i, name) for i, name in enumerate(names, start=1))
        self.types = [self._type(i, op) for i, op in enumerate(run.network.training_step(), start=1)]
        image = (run.network.batch, run.network.size, run.network.size, 3)
        self.infeed = self._feed("infeed", image, 10)
        self.outfeed = self._feed("outfeed", (), 30)
        ends = ("copy-start", "copy-done") if recorded.copy_ms else ()
        self.copy = [self._copy(kind) for kind in ends]

    def _type(self, number: int, op: Op) -> int:
        """Describe an operation."""
        precision = self.run.precision
        instruction = Instruction(
            f"fusion.{number}", hlo(number, op, precision), op.tf_op,
            category(op), layout(op.result, precision), op.line,
            op.flops, traffic(op, chip(self.run)),
        )  # fmt: skip
        return instruction.add(self.plane, number)

    def _feed(self, kind: str, shape: Shape, line: int) -> int:
        """Describe the infeed of batches or the outfeed of the loss."""
        array = layout(shape, "fp32")
        text = f"%{kind}.1 = ({array}, token[]) {kind}(token[] %after-all)"
        name = "InfeedDequeueTuple" if kind == "infeed" else "OutfeedEnqueueTuple"
        instruction = Instruction(f"{kind}.1", text, f"{name}:{name}", kind, array, line, 0, prod(shape) * 4)
        return instruction.add(self.plane, 900 + line)

    def _copy(self, kind: str) -> int:
        """Describe the start or the end of a copy from the host's memory, S(5), to the device's."""
        source, target = "f32[1024,1024]{1,0:T(8,128)S(5)}", "f32[1024,1024]{1,0:T(8,128)}"
        pair = f"({target}, {source}, u32[]{{:S(2)}})"
        text = {
            "copy-start": f"%copy-start.1 = {pair} copy-start({source} %p.0)",
            "copy-done": f"%copy-done.1 = {target} copy-done({pair} %copy-start.1)",
        }[kind]
        number = 950 + (kind == "copy-done")
        instruction = Instruction(f"{kind}.1", text, "", kind, target, 10, 0, COPIED)
        return instruction.add(self.plane, number)

    def step(self, number: int, start: int, plan: Schedule) -> None:
        """Record one step."""
        if self.recorded.step_line:
            _emit(self.steps, self.plane.type(str(number)), start, plan.end)
        module = self.plane.type(MODULE)
        busy = plan.outfeed + OUTFEED
        _emit(self.modules, module, start, busy, run_id=100 + number, queue_id=0)
        if self.recorded.infeed:
            self._operation(self.infeed, start, plan.infeed)
        for kind, (at, length) in zip(self.types, plan.ops, strict=True):
            self._operation(kind, start + at, length)
        if self.recorded.copy_ms:
            began, waited, ended = plan.copy
            self._operation(self.copy[0], start + began, STARTING)
            self._operation(self.copy[1], start + waited, ended - waited)
        self._operation(self.outfeed, start + plan.outfeed, OUTFEED)

    def _operation(self, kind: int, start: int, length: int) -> None:
        """Record an operation on the core's own clock."""
        _emit(self.ops, kind, round(start * (1 - self.recorded.drift)), length)


def _emit(line: Line, kind: int, start: int, length: int, **stats: int) -> None:
    """Add an event with the device's own times, which count from the profile's start."""
    line.add(
        kind, start, length, device_offset_ps=T0_NS * 1000 + start, device_duration_ps=length,
        **stats,
    )  # fmt: skip


def build(run: Run, recorded: Recorded = ALL) -> Space:
    """Return the trace of a run."""
    space, plan = Space(), schedule(run, recorded)
    cores = [Core(space, number, run, recorded) for number in range(TPUS[run.device].planes)]
    host = Host(space, run.network.batch)
    for number in range(run.steps):
        start = (number + 1) * plan.end  # the first batch was made before the first step
        _host_step(run, host, plan, number, start, recorded)
        for core in cores:
            core.step(number, start, plan)
    work = input_work(run, plan.end)
    host.produce(run.steps, plan.end + plan.infeed - 12 * US, plan.end, work)
    host.end((run.steps + 1) * plan.end)
    environment(space)
    if recorded.program:
        data = program("cluster_train_step", run.network.training_step(), run.precision)
        stats: dict[str, Any] = {PROTO: data}
        space.plane("/host:metadata").type(MODULE, **stats)
    return space


def _host_step(run: Run, host: Host, plan: Schedule, number: int, start: int, recorded: Recorded) -> None:
    """Enqueue the program and feed it; host and device wait for the pipeline at the same time."""
    if recorded.markers:
        host.call(number, start, plan.outfeed + OUTFEED)
        host.execute(host.executor, number, start + 20 * US, plan.infeed)
    # The core was done with the step before when its outfeed ended; the program runs 2 us after the queue has it.
    done = start - plan.end + plan.outfeed + OUTFEED
    queued = done + round(recorded.late_us * US) if recorded.late_us else start + 12 * US
    for core in range(TPUS[run.device].planes):
        host.python.add(
            "DoEnqueueProgram", queued - 6 * US if recorded.late_us else start + (12 + core * 8) * US,
            6 * US, run_id=100 + number, queue_id=0, device_ordinal=core, core_type=0,
        )  # fmt: skip
    host.wait(number, start, plan.infeed - 5 * US, run.network.image_bytes)
    host.executor.add("InfeedEnqueueTuple:InfeedEnqueueTuple", start + plan.infeed - 4 * US, 3 * US)
