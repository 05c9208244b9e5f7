from math import ceil

import numpy as np

from tfdoctor.facts.run.hardware import Tile
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.tpu.shapes import Array, arrays
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class AlignedTimes(Record):
    """Times in ms per training step, by the operation's name."""

    # of a matmul by its FLOPs at the rate that the best aligned kernels reach, or its bytes; of others by bytes
    least_ms: Mapping[str, float]
    # in which buffers for it are cleared: of the transfers that the trace assigns to it
    cleared_ms: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware, activity: Activity, steps: Steps) -> Self:
        """Compare the operations with the rates of the GPU.

        Raises:
            Unavailable: it is no GPU, or its peak rate is unknown.
        """
        if hardware.kind != DeviceKind.GPU or not hardware.peak_flop_s:
            raise Unavailable("only the rates of known GPUs are compared")
        bandwidth, rate = hardware.bandwidth_bytes_s, hardware.peak_flop_s * hardware.reached
        least: dict[str, float] = {}
        for row in operations.rows:
            known = not row.is_matrix or (row.flops and row.precision in HALVES)
            least_ms = row.least_ms(bandwidth, rate if row.is_matrix else None) if known else 0.0
            least[row.name] = min(row.ms, least_ms)
        cleared: dict[str, float] = defaultdict(float)
        work = activity.stages.get(Stage.TRANSFER)
        if work is not None and len(work.label):
            inside, calls = steps.steady_spans.holds(work.start_ps), sum(step.calls for step in steps.steady_steps)
            sums = np.bincount(work.label[inside], work.attributed_ps()[inside], len(work.labels))
            for (name, _, _), time in zip(work.labels, (sums / calls / PS_PER_MS).tolist(), strict=True):
                cleared[name] += time
        return cls({name: ms for name, ms in least.items() if ms}, {n: ms for n, ms in cleared.items() if n and ms})


class Padded(Record):
    """One operation, the width of its result's channels, and the tile that pads it."""

    row: OperationTime
    width: int
    tile: Tile
    slow: float  # largest share of the rate of aligned kernels of a slow one on a GPU
    shrinkable: float  # least share of the channels that the multiple below keeps
    layer: str = ""  # or the forward operation that has this width; "" when unknown
    depth: int = 0  # input channels that another layer has as its width, where they are padded too
    fixed: bool = False  # whether the data gives the width
    least_ms: float | None = None  # of a GPU's kernels for aligned widths; None is unknown

    @property
    def is_slow(self) -> bool:
        """Whether an unaligned width made a GPU use a slow kernel."""
        unaligned = any(width % self.tile.multiple for width in self.chosen)
        return self.least_ms is not None and unaligned and self.least_ms <= self.slow * self.row.ms

    def above(self, width: int) -> int:
        """Return the multiple of the tile that holds a width."""
        return ceil(width / self.tile.multiple) * self.tile.multiple

    @property
    def chosen(self) -> tuple[int, ...]:
        """The widths that a layer may choose: its own, and that of the layer it reads."""
        return tuple(filter(None, (0 if self.fixed else self.width, self.depth)))

    @property
    def useful(self) -> float:
        """The share of the computed multiplications that is used; of a slow kernel's time, that is needed."""
        padded = prod(width / self.above(width) for width in self.chosen)
        return min(padded, (self.least_ms or 0.0) / self.row.ms) if self.is_slow else padded

    @property
    def is_unnamed(self) -> bool:
        """Whether only the line of its layer is known: XLA's programs name operations, not layers."""
        operation = self.row.operation
        return operation is not None and operation.compiled and self.row.at is not None

    def target(self, width: int) -> int:
        """Return the multiple below if it keeps most of a width, else the one above."""
        padded = self.above(width)
        below = padded if padded == width else padded - self.tile.multiple
        return below if below >= self.shrinkable * width else padded

    @property
    def lost_ms(self) -> float:
        """The time spent on padding."""
        return self.row.ms * (1.0 - self.useful)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What choosing the target does: fewer tiles, faster kernels, or only a wider layer."""
        scales = prod(self.target(w) / self.above(w) for w in self.chosen if self.target(w) < w)
        if scales < 1.0 and not self.is_slow:
            result = result_of(self.row)  # also padded in memory, as on a TPU
            return (replace(self.row.scaled(scales, self.tile.bound), narrows=bool(result and result.tile)),)
        faster = self.is_slow or self.tile.faster_above
        return (self.row.scaled(self.useful, Bound.AT_MOST),) if faster else ()

    @property
    def remedy(self) -> Remedy:
        """The target in place of the width, and what it does."""
        target = self.target(self.width)
        measured = self.tile.bound is Bound.EXPECTED
        cost = "at almost no cost" if measured else "at little cost in bfloat16, some in float32"
        effect = "fewer tiles" if target < self.width else f"wider {cost}; saves no time"
        if self.is_slow or (target > self.width and self.tile.faster_above):
            effect = "faster kernels"
        layer = "the layers of this line" if self.is_unnamed else self.layer
        return Remedy(
            f"Choose {target} instead of {self.width} in {layer}",
            f"{self.width}  ->  {target}    # {effect}",
            self.row.at,
            "layer-width",
            width=LayerWidth(self.width, target),
            changes="the model has another size",
        )


def of_layers(found: list[Padded], matmuls: Sequence[OperationTime]) -> Iterator[Padded]:
    """Yield those whose width belongs to a layer but the last, under its name.

    The width of the last ones is given by the data, such as the number of classes: dense layers whose width no
    other matmul reads, and convolutions of whose width no other matmul reads a multiple (flattened, a width of 10
    is read as 7 x 7 x 10; the last convolution of a network that makes images has as many channels as the images).
    The gradient of a layer's input has the width of the layer before it.
    """
    forward = [(row, row.kernel) for row in matmuls if row.kernel and not _is_gradient(row)]
    depths = {(_owner(row), kernel[-2]) for row, kernel in forward if len(kernel) > 1}
    last_layers = set[str]()
    for row, kernel in forward:
        name, width = _owner(row), kernel[-1]
        read = [depth for reader, depth in depths if reader != name]
        if row.type == "MatMul":
            may_be = width not in read
        else:  # a convolution of one pixel, or of the width of another layer
            known = set(kernel[:-2]) == {1} or len(depths) > 1
            may_be = row.type.startswith("Conv") and known and all(depth % width for depth in read)
        last_layers |= {name} if may_be else set()
    widths = {_owner(one.row): one.width for one in found if not _is_gradient(one.row)}
    owners = {width: name for name, width in widths.items() if name}
    free = {width for width, name in owners.items() if name not in last_layers}
    for one in found:
        row, weights, name = one.row, one.row.kernel or (), _owner(one.row)
        layer = owners.get(one.width, "") if _is_gradient(row) else ""  # "" is unknown
        if name and widths.get(name, one.width if row.layer else None) == one.width:
            layer = name
        is_conv = one.tile.both_sides and row.type.startswith("Conv")
        reads = is_conv or one.least_ms is not None  # a GPU's kernels load both factors in vectors
        depth = weights[-2] if reads and len(weights) > 1 and weights[-2] in free else 0
        named = replace(one, layer=layer, depth=depth, fixed=layer in last_layers)
        if layer and named.chosen:
            yield named


def _is_gradient(row: OperationTime) -> bool:
    return BACKPROP.search(f"{row.name} {row.type}") is not None


def _owner(row: OperationTime) -> str:
    """Return the owner of its weights: its layer, else its operation of the forward pass, else "".

    Matmuls of two activations (BatchMatMul) have no weights. The gradients of "dense/MatMul" are
    called "gradient_tape/dense/MatMul/MatMul_1".
    """
    if row.layer or ("Batch" not in row.type and not _is_gradient(row)):
        return row.layer or row.name
    if GRADIENT_SCOPE not in row.name or "Batch" in row.type:
        return ""
    return row.name.replace(GRADIENT_SCOPE, "").rpartition("/")[0]


def pads(row: OperationTime, hardware: Hardware) -> bool:
    """Say whether this kind of hardware pads this operation."""
    if hardware.kind == DeviceKind.CPU:
        matmuls = hardware.tile.matmuls if hardware.tile else ()
        return row.type.startswith("Conv") or (row.type == "MatMul" and row.precision in matmuls)
    return hardware.kind == DeviceKind.TPU or row.precision in HALVES


def width_of(row: OperationTime, hardware: Hardware) -> int | None:
    """Return the output channels or units: the last dimension of the weights, or of an HLO's result."""
    if row.kernel:
        return row.kernel[-1]
    result = result_of(row) if hardware.kind == DeviceKind.TPU else None
    return result.width if result else None


def result_of(row: OperationTime) -> Array | None:
    """Return the result of an HLO instruction, with its layout in memory."""
    return next(iter(arrays(row.ran[0])), None) if row.ran else None


def elsewhere(wasteful: list[Padded], operations: Operations, hardware: Hardware) -> Iterator[Effect]:
    """Yield what a TPU's other operations on tensors of these widths gain from the narrower ones."""
    targets = {one.width: target for one in wasteful if (target := one.target(one.width)) < one.width}
    for row in operations.rows if hardware.kind == DeviceKind.TPU else ():
        result = None if row.is_matrix else result_of(row)
        if result and result.tile and result.width in targets:
            tiles, left = (ceil(width / result.tile[-1]) for width in (result.width, targets[result.width]))
            yield replace(row.scaled(left / tiles), narrows=True)


def beside_slow(slow: list[Padded], operations: Operations, aligned: AlignedTimes) -> Iterator[Effect]:
    """Yield what a GPU gains beside the slow kernels: their buffers, and other kernels of these widths.

    Loads of whole vectors need aligned rows too, in any type.
    """
    for one in slow:
        if cleared_ms := aligned.cleared_ms.get(one.row.name):
            yield Effect(Stage.TRANSFER, 0.0, one.row.name, ms(cleared_ms), bound=Bound.AT_MOST)
    widths = {width for one in slow for width in one.chosen if width % one.tile.multiple}
    for row in operations.rows if widths else ():
        least_ms = aligned.least_ms.get(row.name, row.ms)
        tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
        last = {shape[-1] for _, shape in tensors if shape}
        if row.is_fused and least_ms < row.ms and not widths.isdisjoint(last):
            yield row.scaled(least_ms / row.ms, Bound.AT_MOST)


class Limits(RuleLimits):
    waste: float = share_limit(0.10)
    worth: float = share_limit(0.005)
    free: float = share_limit(0.02)
    slow: float = share_limit(0.5)
    smallest: float = share_limit(0.5)
    shortest_ms: float = limit(0.005)
    shrinkable: float = share_limit(0.80)


def check(
    operations: Operations, hardware: Hardware, aligned: AlignedTimes | None, limits: Limits = Limits()
) -> Verdict:
    """Weigh each matmul's padding by its time."""
    tile = hardware.tile
    if tile is None:
        why = hardware.missing or f"tfdoctor knows no dimension that {hardware.name} pads"
        return NotApplicable(reason=why)
    aligned = aligned or AlignedTimes({})
    found = [
        Padded(row, width, tile, limits.slow, limits.shrinkable, least_ms=aligned.least_ms.get(row.name))
        for row in operations.matrix
        if pads(row, hardware) and (width := width_of(row, hardware) or 0) >= limits.smallest * tile.multiple
    ]
    if not found:
        record = "record the run with `tfdoctor profile`"
        matmuls, unlisted = operations.matrix, operations.why_unlisted or "the step runs no matmul or convolution"
        wide = hardware.kind == DeviceKind.GPU and not any(row.precision in HALVES for row in matmuls)
        unpadded = hardware.kind == DeviceKind.CPU and not any(pads(row, hardware) for row in matmuls)
        sized = any(width_of(row, hardware) for row in matmuls)
        reason = why_not(
            (not matmuls, unlisted),
            (wide, "no matmul of the step runs in 16-bit precision, where Tensor Cores need multiples of 8"),
            (unpadded, "oneDNN pads convolutions (and on AMX matmuls in bfloat16), and the step runs none"),
            (sized, f"the widths are far below {tile.multiple}, as the data or the model dictates"),
            (True, f"the trace contains no shapes of matmuls and convolutions: {record}"),
        )
        return NotApplicable(reason=reason)
    wasteful = [
        one
        for one in of_layers(found, operations.matrix)
        if one.row.ms >= limits.shortest_ms * one.row.calls and (one.is_slow or 1.0 - one.useful >= limits.waste)
    ]
    lost_ms = sum(padded.lost_ms for padded in wasteful)
    least = limits.worth if any(padded.effects for padded in wasteful) else limits.free
    if lost_ms < least * operations.total_ms:
        of = counted(len(found), "matmul or convolution", "matmuls and convolutions")
        padding = f"Avoidable padding to multiples of {tile.multiple}"
        return Healthy(summary=f"{padding} takes {milliseconds(lost_ms)} per step in {of}")
    slow = beside_slow([one for one in wasteful if one.is_slow], operations, aligned)
    return _finding(wasteful, tile, lost_ms, (*elsewhere(wasteful, operations, hardware), *slow))


def _finding(wasteful: list[Padded], tile: Tile, lost_ms: float, elsewhere: Iterable[Effect]) -> Finding:
    layers: dict[str, Padded] = {}  # the most padded operation of each, the layer that loses most first
    for padded in sorted(wasteful, key=lambda padded: -padded.lost_ms):
        if not padded.fixed and padded.above(padded.width) > padded.width:
            place = f"{padded.width} {padded.row.at}" if padded.is_unnamed else padded.layer
            layers.setdefault(place, padded)
    slow = [padded for padded in wasteful if padded.is_slow]
    most = "" if tile.bound is Bound.EXPECTED else "at most "
    times = {f"time spent on padding per step{', at most' if most else ''}": lost_ms}
    taken = f"takes {most}{milliseconds(lost_ms)} per step in {counted(len(layers), 'layer')}"
    summary = f"Padding to multiples of {tile.multiple} {taken}"
    if slow:
        slow_ms, least_ms = sum(padded.row.ms for padded in slow), sum(padded.least_ms or 0.0 for padded in slow)
        times = {"time in slow kernels per step": slow_ms, "least time of aligned kernels per step": least_ms}
        summary = (
            f"Kernels for widths that are not multiples of {tile.multiple} take {milliseconds(slow_ms)} per step; "
            f"those for aligned widths need at least {milliseconds(least_ms)}"
        )
    table = Table.of(
        sorted(wasteful, key=lambda padded: -padded.row.ms),
        ("layer", lambda padded: padded.layer),
        ("your line", lambda padded: padded.row.at),
        ("operation", lambda padded: padded.row.type),
        ("width", lambda padded: count(padded.width)),
        ("padded width", lambda padded: count(padded.above(padded.width))),
        ("padded share", lambda padded: ratio(1.0 - padded.useful)),
        ("time per step", lambda padded: ms(padded.row.ms)),
    )
    return Finding(
        summary=summary,
        evidence=(
            *(Measure(label, ms(time)) for label, time in times.items()),
            Measure("multiple to which the hardware pads", count(tile.multiple)),
            table,
        ),
        remedies=tuple(padded.remedy for padded in [*layers.values()][:5]),
        effects=(*(effect for padded in wasteful for effect in padded.effects), *elsewhere),
        alike=len(layers) - 1,
    )
