"""Channels or units just above a multiple of the matrix unit's tile waste its work on padding.

## What it checks

The output channels of convolutions and the units of dense layers against the multiple to which the
hardware pads them, weighted by the time that the layer takes. On a TPU, where XLA chooses the layout,
the two minor dimensions of each product's result; its memory holds whole tiles as well, so that operations
which only read and write tensors of that width gain from a better one too.

## Why it matters

The unit computes whole tiles. 33 channels cost what 48 cost where the tile is 16; a feature size of 130
costs what 256 cost where it is 128. The padded part is computed and thrown away.

## How to fix

Choose the multiple below (the step gets shorter) or use up to the multiple above (wider at no cost).
What the data dictates, such as three colour channels, stays as it is: it is reported only where its layer
takes real time. The units of the last dense layer, which are the classes, are not reported at all.

## Holds for

CPUs with AVX-512 (oneDNN's convolutions work on blocks of 16 channels; its matmuls do not pad), NVIDIA
Tensor Cores in 16 bit (multiples of 8), TPUs (128 lanes; 256 from v6e on for the MXU).

## Sources

- [Matrix multiplication background, NVIDIA, table 1](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
- [Cloud TPU performance guide: padding](https://cloud.google.com/tpu/docs/performance-guide)
- [Google Cloud, TPU v6e: matrix units of 256 by 256](https://cloud.google.com/tpu/docs/v6e)
- CPU figures: benchmarks/channels.py of this project
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from tfdoctor.facts.operations.layer_matmuls import heads, is_gradient, owner
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware, Tile
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.tpu.shapes import Array, arrays
from tfdoctor.humanize import counted, milliseconds
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    waste: float = limit(
        0.10, "padded share of a dimension from which it is worth changing", most=1.0
    )
    worth: float = limit(
        0.005, "of the compute time: padding that takes less is not worth a word", most=1.0
    )
    free: float = limit(
        0.02,
        "of the compute time: the same where the only remedy is a wider layer, which costs nothing but "
        "saves nothing either",
        most=1.0,
    )
    smallest: float = limit(
        0.5,
        "of the hardware's multiple: a width below it (ten classes, three colours) is as it is for "
        "another reason",
        most=1.0,
    )
    shortest_ms: float = limit(
        0.005,
        "ms per call of an operation: a kernel or instruction takes some microseconds to start, and "
        "one this short takes no less for being narrower",
    )
    shrinkable: float = limit(
        0.80,
        "of the channels: the multiple below is proposed when it keeps at least so many, else the one "
        "above",
        most=1.0,
    )


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Padded:
    """One operation and the width of its result's channels, with what the tile makes of it."""

    row: OperationTime
    width: int
    tile: Tile
    limits: Limits
    layer: str = (
        ""  # or the operation of the forward pass, whose width it is; "" when none is known
    )

    @property
    def counts(self) -> bool:
        """Whether it has enough padding, and takes long enough for that to matter."""
        worth = self.row.ms >= self.limits.shortest_ms * self.row.calls
        return worth and 1.0 - self.useful >= self.limits.waste

    @property
    def padded(self) -> int:
        """The width that is computed."""
        return ceil(self.width / self.tile.multiple) * self.tile.multiple

    @property
    def useful(self) -> float:
        """The share of the computed width that is used."""
        return self.width / self.padded

    @property
    def target(self) -> int:
        """The width to choose."""
        below = self.padded - self.tile.multiple
        return below if below >= self.limits.shrinkable * self.width else self.padded

    @property
    def lost_ms(self) -> float:
        """The time that goes into padding."""
        return self.row.ms * (1.0 - self.useful)

    @property
    def in_memory(self) -> bool:
        """Whether its result is padded in memory as well, as a TPU's are."""
        found = _result(self.row)
        return bool(found and found.tile)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What choosing the target does: fewer tiles, other kernels, or nothing but a wider layer."""
        of = ms(self.row.ms)
        if self.target < self.width:
            left = self.target / self.padded
            return (Effect(Stage.DEVICE, left, self.row.name, of, narrows=self.in_memory),)
        if self.tile.faster_above:
            return (Effect(Stage.DEVICE, self.useful, self.row.name, of, bound=Bound.AT_MOST),)
        return ()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Weigh each product's padding by its time."""
    tile = hardware.tile
    if tile is None:
        return NotApplicable(
            reason=hardware.missing or f"{hardware.name} pads no dimension that is known"
        )
    sized = [
        Padded(row, width, tile, limits)
        for row in operations.matrix
        if _pads(row, hardware)
        and (width := _width(row, hardware))
        and width >= limits.smallest * tile.multiple
    ]
    if not sized:
        return NotApplicable(reason=_unsized(operations, hardware))
    wasteful = [one for one in _chosen(sized, heads(operations.matrix)) if one.counts]
    lost = sum(one.lost_ms for one in wasteful)
    floor = limits.worth if any(one.effects for one in wasteful) else limits.free
    if lost < floor * operations.total_ms:
        words = f"{milliseconds(lost)} per step go into avoidable padding to multiples of {tile.multiple}"
        return Healthy(summary=f"{len(sized)} matmuls and convolutions were sized: {words}")
    return _finding(wasteful, tile, lost, _beside(wasteful, operations, hardware))


def _beside(
    wasteful: list[Padded], operations: Operations, hardware: Hardware
) -> tuple[Effect, ...]:
    """Return what a TPU's other operations on tensors of these widths gain from the narrower ones."""
    if hardware.kind != DeviceKind.TPU:
        return ()
    targets = {one.width: one.target for one in wasteful if one.target < one.width}
    results = [(row, _result(row)) for row in operations.rows if not row.is_matrix]
    return tuple(
        _narrower(row, _tiles(found, target) / _tiles(found, width))
        for row, found in results
        if found and found.tile and (width := found.width) and (target := targets.get(width))
    )


def _narrower(row: OperationTime, left: float) -> Effect:
    return Effect(Stage.DEVICE, left, row.name, ms(row.ms), narrows=True)


def _tiles(array: Array, width: int) -> int:
    """Return how many of an array's tiles hold a width in memory."""
    return ceil(width / array.tile[-1])


def _chosen(sized: list[Padded], heads: frozenset[str]) -> list[Padded]:
    """Keep the widths that belong to a layer, each under its name, but for those of the last layers.

    The gradient of a layer's input is as wide as the layer before it, whose width it then is.
    """
    widths = {owner(one.row): one.width for one in sized if not is_gradient(one.row)}
    before = {width: name for name, width in widths.items() if name}
    named = [replace(one, layer=_layer(one, widths, before)) for one in sized]
    return [one for one in named if one.layer and one.layer not in heads]


def _layer(one: Padded, widths: Mapping[str, int], before: Mapping[int, str]) -> str:
    """Return whose width it is, by the layers' widths and the layers of each width; "" when unknown."""
    name = owner(one.row)
    if name and widths.get(name, one.width if one.row.layer else None) == one.width:
        return name
    return before.get(one.width, "") if is_gradient(one.row) else ""


def _pads(row: OperationTime, hardware: Hardware) -> bool:
    """Whether this kind of hardware pads this operation."""
    if hardware.kind == DeviceKind.CPU:
        return row.type.startswith("Conv")
    return hardware.kind == DeviceKind.TPU or row.precision in ("float16", "bfloat16")


def _width(row: OperationTime, hardware: Hardware) -> int | None:
    """Return the output channels or units: the last dimension of the weights, or of an HLO's result."""
    if row.kernel:
        return row.kernel[-1]
    found = _result(row) if hardware.kind == DeviceKind.TPU else None
    return found.width if found else None


def _result(row: OperationTime) -> Array | None:
    """Return the result of an HLO instruction, and how it lies in memory."""
    found = arrays(row.ran[0]) if row.ran else ()
    return found[0] if found else None


def _unsized(operations: Operations, hardware: Hardware) -> str:
    if not operations.matrix and operations.why_unnamed:
        return operations.why_unnamed
    if not operations.matrix:
        return "the step runs no matmul or convolution"
    if hardware.kind == DeviceKind.GPU and not any(
        r.precision in ("float16", "bfloat16") for r in operations.matrix
    ):
        return "the step's products do not run in 16 bit, where Tensor Cores want multiples of 8"
    if hardware.kind == DeviceKind.CPU and not any(
        row.type.startswith("Conv") for row in operations.matrix
    ):
        return "oneDNN pads convolutions only, and the step runs none"
    if hardware.tile and any(_width(row, hardware) for row in operations.matrix):
        return f"the widths are far below {hardware.tile.multiple}, as the data or the model wants them"
    return "the trace does not hold the shapes of its matmuls and convolutions; record with `tfdoctor profile`"


def _finding(
    wasteful: list[Padded], tile: Tile, lost: float, beside: tuple[Effect, ...]
) -> Finding:
    effects = (*(effect for one in wasteful for effect in one.effects), *beside)
    layers = {one.layer for one in wasteful}
    return Finding(
        summary=f"{counted(len(layers), 'layer')} with widths off the multiple of {tile.multiple}: "
        f"{milliseconds(lost)} of each step go into padding",
        evidence=(
            Measure("padding per step", ms(lost)),
            Measure("multiple that the hardware computes in", count(tile.multiple)),
            _table(wasteful),
        ),
        remedies=tuple(_remedy(one) for one in _one_per_layer(wasteful)),
        effects=effects,
        severity=None if effects else Severity.NOTE,
    )


def _one_per_layer(wasteful: list[Padded]) -> list[Padded]:
    """Return each layer's heaviest operation, the five heaviest layers."""
    by_layer: dict[str, Padded] = {}
    for one in sorted(wasteful, key=lambda one: -one.lost_ms):
        by_layer.setdefault(one.layer, one)
    return list(by_layer.values())[:5]


def _table(wasteful: list[Padded]) -> Table:
    rows = tuple(
        (one.layer, one.row.at or "unknown", one.row.type, count(one.width),
         count(one.padded), ratio(1.0 - one.useful), ms(one.row.ms))
        for one in sorted(wasteful, key=lambda one: -one.row.ms)
    )  # fmt: skip
    columns = ("layer", "your line", "operation", "width", "computed", "padding", "per step")
    return Table(columns, rows)


def _remedy(one: Padded) -> Remedy:
    same = (
        "faster kernels"
        if one.tile.faster_above
        else "wider at nearly the same cost, nothing saved"
    )
    effect = "fewer tiles" if one.target < one.width else same
    code = f"{one.width}  ->  {one.target}    # {effect}"
    return Remedy(f"Choose {one.target} instead of {one.width} in {one.layer}", code, one.row.at)


def sick() -> Verdict:
    """A convolution with 33 channels where 16 are a block."""
    return check(Operations((_conv(33),)), _hardware())


def healthy() -> Verdict:
    """The same with 32."""
    return check(Operations((_conv(32),)), _hardware())


def _hardware() -> Hardware:
    return Hardware(DeviceKind.CPU, "example", tile=Tile(16, "an example"))


def _conv(channels: int) -> OperationTime:
    tensors = (("float32", (32, 32, 32, 32)), ("float32", (3, 3, 32, channels)))
    return OperationTime(
        name="model/conv2d/convolution",
        type="Conv2D",
        ms=14.5,
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name="model/conv2d/convolution", type="Conv2D", inputs=tensors),
    )
