"""Matmuls and convolutions whose width the hardware pads, and what another width makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.roofline import HALVES
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.matrix_units import Tile
from tfdoctor.facts.tpu.shapes import Array, arrays
from tfdoctor.rules.unaligned_dimension.layer_matmuls import is_gradient, owner
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage


@dataclass(frozen=True, slots=True)
class WidthMarks:
    """Which widths count: shares of 1, but for ``shortest_ms``, the shortest call in ms."""

    waste: float  # least padded share of an operation's work
    slow: float  # largest share of the rate of aligned kernels of a slow one on a GPU
    smallest: float  # least width relative to the hardware's multiple
    shortest_ms: float
    shrinkable: float  # least share of the channels that the multiple below keeps


@dataclass(frozen=True, slots=True)
class Padded:
    """One operation, the width of its result's channels, and the tile that pads it."""

    row: OperationTime
    width: int
    tile: Tile
    marks: WidthMarks
    layer: str = ""  # or the forward operation that has this width; "" when unknown
    depth: int = 0  # input channels that another layer has as its width, where they are padded too
    fixed: bool = False  # whether the data gives the width
    least_ms: float | None = None  # of a GPU's kernels for aligned widths; None is unknown

    @property
    def is_wasteful(self) -> bool:
        """Whether it has enough padding, in calls that are long enough to get shorter."""
        is_long = self.row.ms >= self.marks.shortest_ms * self.row.calls
        return is_long and (self.is_slow or 1.0 - self.useful >= self.marks.waste)

    @property
    def is_slow(self) -> bool:
        """Whether an unaligned width made a GPU use a slow kernel."""
        unaligned = any(width % self.tile.multiple for width in self.chosen)
        known = self.least_ms is not None and unaligned
        return known and (self.least_ms or 0.0) <= self.marks.slow * self.row.ms

    @property
    def padded(self) -> int:
        """The width that is computed."""
        return _padded(self.width, self.tile)

    @property
    def chosen(self) -> tuple[int, ...]:
        """The widths that a layer may choose: its own, and that of the layer it reads."""
        widths = (0 if self.fixed else self.width, self.depth)
        return tuple(width for width in widths if width)

    @property
    def useful(self) -> float:
        """The share of the computed multiplications that is used; of a slow kernel's time, that is needed."""
        padded = prod(width / _padded(width, self.tile) for width in self.chosen)
        return min(padded, (self.least_ms or 0.0) / self.row.ms) if self.is_slow else padded

    @property
    def is_padded(self) -> bool:
        """Whether its own width is one to change."""
        return not self.fixed and self.padded > self.width

    @property
    def is_unnamed(self) -> bool:
        """Whether only the line of its layer is known: XLA's programs name operations, not layers."""
        operation = self.row.operation
        return operation is not None and operation.compiled and self.row.at is not None

    @property
    def target(self) -> int:
        """The width to choose."""
        return self._target(self.width)

    def _target(self, width: int) -> int:
        """Return the multiple below if it keeps most of a width, else the one above."""
        padded = _padded(width, self.tile)
        below = padded if padded == width else padded - self.tile.multiple
        return below if below >= self.marks.shrinkable * width else padded

    @property
    def lost_ms(self) -> float:
        """The time spent on padding."""
        return self.row.ms * (1.0 - self.useful)

    @property
    def in_memory(self) -> bool:
        """Whether its result is also padded in memory, as on a TPU."""
        result = result_of(self.row)
        return bool(result and result.tile)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What choosing the target does: fewer tiles, faster kernels, or only a wider layer."""
        time, bound = ms(self.row.ms), self.tile.bound
        if self.is_slow:
            return (Effect(Stage.DEVICE, self.useful, self.row.name, time, bound=Bound.AT_MOST),)
        scales = prod(self._target(w) / _padded(w, self.tile) for w in self.chosen if self._target(w) < w)
        if scales < 1.0:
            return (Effect(Stage.DEVICE, scales, self.row.name, time, bound=bound, narrows=self.in_memory),)
        if self.tile.faster_above:
            return (Effect(Stage.DEVICE, self.useful, self.row.name, time, bound=Bound.AT_MOST),)
        return ()


def _padded(width: int, tile: Tile) -> int:
    """Return the multiple of the tile that holds a width."""
    return ceil(width / tile.multiple) * tile.multiple


def sized(operations: Operations, hardware: Hardware, tile: Tile, marks: WidthMarks) -> list[Padded]:
    """Return the operations whose width is known, padded, and not far below the tile."""
    widths = [(row, width_of(row, hardware)) for row in operations.matrix if pads(row, hardware)]
    least = marks.smallest * tile.multiple
    return [Padded(row, width, tile, marks) for row, width in widths if width and width >= least]


def of_layers(found: list[Padded], last_layers: frozenset[str]) -> list[Padded]:
    """Keep the widths that belong to a layer, under its name, except those of the last layers.

    The gradient of a layer's input has the width of the layer before it.
    """
    widths = {owner(padded.row): padded.width for padded in found if not is_gradient(padded.row)}
    owners = {width: name for name, width in widths.items() if name}
    free = {width for width, name in owners.items() if name not in last_layers}
    named = [_named(padded, widths, owners, free, last_layers) for padded in found]
    return [padded for padded in named if padded.layer and padded.chosen]


def _named(
    padded: Padded,
    widths: Mapping[str, int],
    owners: Mapping[int, str],
    free: set[int],
    last_layers: frozenset[str],
) -> Padded:
    """Return an operation with its layer, and with its input channels where a layer chooses them."""
    kernel, name = padded.row.kernel or (), owner(padded.row)
    default = padded.width if padded.row.layer else None
    layer = owners.get(padded.width, "") if is_gradient(padded.row) else ""  # "" is unknown
    if name and widths.get(name, default) == padded.width:
        layer = name
    is_conv = padded.tile.both_sides and padded.row.type.startswith("Conv")
    reads = is_conv or padded.least_ms is not None  # a GPU's kernels load both factors in vectors
    depth = kernel[-2] if reads and len(kernel) > 1 and kernel[-2] in free else 0
    return replace(padded, layer=layer, depth=depth, fixed=layer in last_layers)


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
    results = arrays(row.ran[0]) if row.ran else ()
    return results[0] if results else None
