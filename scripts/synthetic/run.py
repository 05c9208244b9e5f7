"""What a synthetic run is asked to be, and what is then known of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, prod

from scripts.synthetic.network import Network
from scripts.synthetic.operation import Kind, Op
from scripts.synthetic.xspace import MS, US

READY = 50 * US
"""What handing over a batch costs that lies ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of ``steps`` even training steps on a device."""

    device: str  # a key of gpu.GPUS or tpu.TPUS
    network: Network = field(default_factory=Network)
    precision: str = "fp32"  # "tf32", "fp16", "bf16"
    steps: int = 12
    input_ms: float = 0.0  # that each step waits for its batch
    gap_us: float = 0.0  # that the device idles between two kernels, at least
    dispatch_us: float = 6.0  # that the host takes to launch an operation; GPU only
    between_ms: float = 0.1  # between two steps
    copy: str = "pinned"  # "pageable": the kind of host memory the batch is copied from; GPU only
    overlap: bool = False  # the batch is copied while the step before it computes
    all_reduce_ms: float = 0.0  # of gradients between GPUs, on a stream of its own; GPU only
    hidden_ms: float = 0.0  # of it before the last kernel ends
    idle_gpus: int = 0  # that are visible and do nothing
    replicas: int = 1  # GPUs that train in step, each on a batch of the network's; GPU only
    ahead: bool = False  # the host reads no loss, and launches a step while the GPU does the one before
    detour_ms: float = 0.0  # of an operation on the host, between two copies in mid-step; GPU only
    compile_ms: float = 0.0  # that XLA compiles in every step, before it launches; GPU only
    clock: float = 1.0  # of the highest, at which the GPU is held
    memory: float = 0.0  # of the GPU's, that TensorFlow's allocator has handed out; 0: not recorded
    prefetch: bool = True  # else each step makes its own batch, in input_ms
    work_ms: float = 0.0  # that a batch takes to make beside the step; 0: as long as fits
    searches: bool = False  # in every step, as if its shapes were new (which stay the same); GPU only
    converts: bool = False  # convolutions turn their operands' layout around within them; GPU only


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is known of every step. Shares and efficiencies from 0 to 1."""

    steps: int
    step_ms: float
    input_wait_ms: float  # waiting for a batch
    input_work_ms: float  # what the pipeline needs to make one
    copy_ms: float
    copy_bytes: int
    copy_exposed_ms: float  # while nothing computes
    compute_ms: float
    matrix_ms: float  # in convolutions and matmuls
    batch_norm_ms: float
    depthwise_ms: float
    padding_ms: float  # of the matrix operations' time, for padding dimensions to tiles
    between_ms: float
    operations: int
    flops: int  # without padding
    matrix_unit_use: float  # FLOP/s over the peak, while computing


@dataclass(frozen=True, slots=True)
class Chip:
    """What decides how long an operation takes."""

    peak_flop_s: float  # in the precision of the run
    bandwidth_bytes_s: float
    tile: int  # to which the channels are padded; 1 for not at all
    bytes_per_value: int
    lanes: int = 1  # to which the memory pads them, for all operations


EFFICIENCY = {Kind.CONVOLUTION: 0.45, Kind.MATMUL: 0.6, Kind.SLOW: 0.45 / 8}
"""Share of the peak that products reach once their dimensions are padded: whole models reach
0.2 to 0.5 (Chowdhery and others, PaLM, 2022, table 3), large single products more. Slow ones:
convolutions in 8 groups took as long as in one on a TITAN RTX, and deterministic ones 7 times as long (issues 49147
and 62100 of tensorflow/tensorflow)."""

TRIALS = (0.8, 0.6, 0.4, 0.2)
"""Rates of the algorithms that a search of cuDNN tries beside the one that it keeps, to that one's. Invented: only
that none is faster is known. The one that is kept is tried too, and then runs."""

STREAMING = {Kind.DEPTHWISE: 0.25}
"""Share of the bandwidth that operations reach: depthwise kernels are known to be far below it (Tan and Le,
EfficientNetV2, 2021: why their early stages do without)."""

STREAMS = 0.8
"""The same for all others: what copies and sums of arrays reach (BabelStream on V100 and A100: 0.8 to 0.93)."""

LEAST = 2 * US
"""No kernel is shorter."""


def operations(run: Run) -> tuple[Op, ...]:
    """Return what the device runs in a step, in order."""
    steps: Iterable[Op] = run.network.training_step()
    if run.searches:
        steps = (part for op in steps for part in _searched(op))
    if run.converts:
        steps = (part for op in steps for part in _converted(op))
    return tuple(steps)


def _searched(op: Op) -> Iterable[Op]:
    """Yield a convolution after the algorithms that are tried for it; the last of them is kept."""
    if op.kind is Kind.CONVOLUTION:
        yield from (replace(op, trial=number) for number in range(1, len(TRIALS) + 1))
        yield op
    yield op


def _converted(op: Op) -> Iterable[Op]:
    """Yield a convolution among the conversions of its images, under its name."""
    if op.kind is not Kind.CONVOLUTION:
        yield op
        return
    images = [shape for shape in op.operands if shape[0] == max(s[0] for s in op.operands)]
    for image in images:
        yield replace(op, kind=Kind.LAYOUT, operands=(image,), result=image, flops=0)
    yield op
    if op.type != "Conv2DBackpropFilter":
        yield replace(op, kind=Kind.LAYOUT, operands=(op.result,), flops=0)


def padded(width: int, tile: int) -> int:
    """Return the width that is computed."""
    return ceil(width / tile) * tile


def traffic(op: Op, chip: Chip) -> int:
    """Return the bytes that an operation moves, its channels padded."""
    shapes = (*op.operands, op.result)
    tile = chip.lanes if chip.lanes > 1 or not op.is_matrix else chip.tile
    return sum(prod(s[:-1]) * padded(s[-1], tile) for s in shapes) * chip.bytes_per_value


def duration(op: Op, chip: Chip) -> int:
    """Return how long an operation takes, ps, by whichever of compute and memory bounds it."""
    seconds = traffic(op, chip) / (chip.bandwidth_bytes_s * STREAMING.get(op.kind, STREAMS))
    if op.is_matrix:
        flops = op.flops * padded(op.result[-1], chip.tile) / op.result[-1]
        rate = EFFICIENCY[op.kind] * (TRIALS[op.trial - 1] if op.trial else 1.0)
        seconds = max(seconds, flops / (chip.peak_flop_s * rate))
    return max(LEAST, round(seconds * 1e9) * 1000)


def padding(op: Op, chip: Chip) -> float:
    """Return the share of a matrix operation's time that goes into padding."""
    return 1 - op.result[-1] / padded(op.result[-1], chip.tile) if op.is_matrix else 0.0


def compute(run: Run, chip: Chip) -> dict[str, float]:
    """Return the part of the truth that the operations alone decide."""
    ops = operations(run)

    def ms(chosen: Iterable[Op]) -> float:
        return sum(duration(op, chip) for op in chosen) / MS

    total, flops = ms(ops), sum(op.flops for op in run.network.training_step())
    return {
        "compute_ms": total,
        "matrix_ms": ms(op for op in ops if op.is_matrix),
        "batch_norm_ms": ms(op for op in ops if op.kind is Kind.BATCH_NORM),
        "depthwise_ms": ms(op for op in ops if op.kind is Kind.DEPTHWISE),
        "padding_ms": sum(duration(op, chip) * padding(op, chip) for op in ops) / MS,
        "operations": len(ops),
        "flops": flops,
        "matrix_unit_use": flops / (total * 1e-3) / chip.peak_flop_s,
    }
