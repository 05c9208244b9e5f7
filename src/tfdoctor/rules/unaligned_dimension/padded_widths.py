"""Matmuls and convolutions whose width the hardware pads, and what another width makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import BACKPROP, HALVES, Operations
from tfdoctor.facts.run.hardware import Hardware, Tile
from tfdoctor.facts.tpu.shapes import Array, arrays
from tfdoctor.rules.unaligned_dimension.aligned_times import AlignedTimes
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage


@dataclass(frozen=True, slots=True)
class Padded:
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

    @property
    def padded(self) -> int:
        """The width that is computed."""
        return self.above(self.width)

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


def of_layers(found: list[Padded], matmuls: Sequence[OperationTime]) -> Iterator[Padded]:
    """Yield those whose width belongs to a layer, under its name, except the widths of the last layers.

    The gradient of a layer's input has the width of the layer before it.
    """
    last_layers = _heads(matmuls)
    widths = {_owner(one.row): one.width for one in found if not _is_gradient(one.row)}
    owners = {width: name for name, width in widths.items() if name}
    free = {width for width, name in owners.items() if name not in last_layers}
    for one in found:
        row, kernel, name = one.row, one.row.kernel or (), _owner(one.row)
        layer = owners.get(one.width, "") if _is_gradient(row) else ""  # "" is unknown
        if name and widths.get(name, one.width if row.layer else None) == one.width:
            layer = name
        is_conv = one.tile.both_sides and row.type.startswith("Conv")
        reads = is_conv or one.least_ms is not None  # a GPU's kernels load both factors in vectors
        depth = kernel[-2] if reads and len(kernel) > 1 and kernel[-2] in free else 0
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


def _heads(rows: Sequence[OperationTime]) -> frozenset[str]:
    """Return the owners of the last matmuls, whose width is given by the data, such as the number of classes.

    These are dense layers whose width no other matmul reads, and convolutions of whose width no other
    matmul reads a multiple (flattened, a width of 10 is read as 7 x 7 x 10; the last convolution of a network
    that makes images has as many channels as the images). Without the shapes of the weights the result is empty.
    """
    forward = [(row, row.kernel) for row in rows if row.kernel and not _is_gradient(row)]
    depths = {(_owner(row), kernel[-2]) for row, kernel in forward if len(kernel) > 1}
    last = []
    for row, kernel in forward:
        name, width = _owner(row), kernel[-1]
        read = [depth for reader, depth in depths if reader != name]
        if row.type == "MatMul":
            may_be = width not in read
        else:  # a convolution of one pixel, or of the width of another layer
            known = set(kernel[:-2]) == {1} or len(depths) > 1
            may_be = row.type.startswith("Conv") and known and all(depth % width for depth in read)
        last += [name] if may_be else []
    return frozenset(last)


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
