from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.operations import HALVES
from tfdoctor.facts.run.hardware import Tile
from tfdoctor.rules.unaligned_dimension.aligned_times import AlignedTimes
from tfdoctor.rules.unaligned_dimension.padded_widths import (
    Padded,
    beside_slow,
    elsewhere,
    of_layers,
    pads,
    width_of,
)
from tfdoctor.terms.verdict import LayerWidth

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
BY_HAND = "it changes the size of the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
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
        return NotApplicable(reason=_why_unsized(operations, hardware))
    wasteful = [
        one
        for one in of_layers(found, operations.matrix)
        if one.row.ms >= limits.shortest_ms * one.row.calls and (one.is_slow or 1.0 - one.useful >= limits.waste)
    ]
    lost_ms = sum(padded.lost_ms for padded in wasteful)
    least = limits.worth if any(padded.effects for padded in wasteful) else limits.free
    if lost_ms < least * operations.total_ms:
        matmuls = counted(len(found), "matmul or convolution", "matmuls and convolutions")
        padding = f"Avoidable padding to multiples of {tile.multiple}"
        return Healthy(summary=f"{padding} takes {milliseconds(lost_ms)} per step in {matmuls}")
    slow = beside_slow([one for one in wasteful if one.is_slow], operations, aligned)
    return _finding(wasteful, tile, lost_ms, (*elsewhere(wasteful, operations, hardware), *slow))


def _why_unsized(operations: Operations, hardware: Hardware) -> str:
    matmuls, on_gpu = operations.matrix, hardware.kind == DeviceKind.GPU
    if not matmuls:
        return operations.why_unlisted or "the step runs no matmul or convolution"
    if on_gpu and not any(row.precision in HALVES for row in matmuls):
        return "no matmul of the step runs in 16-bit precision, where Tensor Cores need multiples of 8"
    if hardware.kind == DeviceKind.CPU and not any(pads(row, hardware) for row in matmuls):
        return "oneDNN pads convolutions (and on AMX matmuls in bfloat16), and the step runs none"
    if hardware.tile and any(width_of(row, hardware) for row in matmuls):
        return f"the widths are far below {hardware.tile.multiple}, as the data or the model dictates"
    return "the trace contains no shapes of matmuls and convolutions: record the run with `tfdoctor profile`"


def _finding(wasteful: list[Padded], tile: Tile, lost_ms: float, elsewhere: Iterable[Effect]) -> Finding:
    layers: dict[str, Padded] = {}  # the most padded operation of each, the layer that loses most first
    for padded in sorted(wasteful, key=lambda padded: -padded.lost_ms):
        if not padded.fixed and padded.padded > padded.width:
            place = f"{padded.width} {padded.row.at}" if padded.is_unnamed else padded.layer
            layers.setdefault(place, padded)
    summary, lost = _lost(wasteful, tile, lost_ms, len(layers))
    table = Table.of(
        sorted(wasteful, key=lambda padded: -padded.row.ms),
        ("layer", lambda padded: padded.layer),
        ("your line", lambda padded: padded.row.at),
        ("operation", lambda padded: padded.row.type),
        ("width", lambda padded: count(padded.width)),
        ("padded width", lambda padded: count(padded.padded)),
        ("padded share", lambda padded: ratio(1.0 - padded.useful)),
        ("time per step", lambda padded: ms(padded.row.ms)),
    )
    return Finding(
        summary=summary,
        evidence=(*lost, Measure("multiple to which the hardware pads", count(tile.multiple)), table),
        remedies=tuple(map(_remedy, [*layers.values()][:5])),
        effects=(*(effect for padded in wasteful for effect in padded.effects), *elsewhere),
        alike=len(layers) - 1,
    )


def _lost(wasteful: list[Padded], tile: Tile, lost_ms: float, layers: int) -> tuple[str, tuple[Measure, ...]]:
    """Return what takes the time, in a sentence and in numbers."""
    slow = [padded for padded in wasteful if padded.is_slow]
    if not slow:
        most = "" if tile.bound is Bound.EXPECTED else "at most "
        taken = f"takes {most}{milliseconds(lost_ms)} per step in {counted(layers, 'layer')}"
        label = f"time spent on padding per step{', at most' if most else ''}"
        return f"Padding to multiples of {tile.multiple} {taken}", (Measure(label, ms(lost_ms)),)
    slow_ms, least_ms = (sum(padded.row.ms for padded in slow), sum(padded.least_ms or 0.0 for padded in slow))
    summary = (
        f"Kernels for widths that are not multiples of {tile.multiple} take {milliseconds(slow_ms)} per step; "
        f"those for aligned widths need at least {milliseconds(least_ms)}"
    )
    measures = (
        Measure("time in slow kernels per step", ms(slow_ms)),
        Measure("least time of aligned kernels per step", ms(least_ms)),
    )
    return summary, measures


def _remedy(padded: Padded) -> Remedy:
    width, target = padded.width, padded.target(padded.width)
    if padded.is_slow or (target > width and padded.tile.faster_above):
        effect = "faster kernels"
    elif target < width:
        effect = "fewer tiles"
    else:
        measured = padded.tile.bound is Bound.EXPECTED
        cost = "at almost no cost" if measured else "at little cost in bfloat16, some in float32"
        effect = f"wider {cost}; saves no time"
    layer = "the layers of this line" if padded.is_unnamed else padded.layer
    return Remedy(
        f"Choose {target} instead of {width} in {layer}",
        f"{width}  ->  {target}    # {effect}",
        padded.row.at,
        "layer-width",
        width=LayerWidth(width, target),
        changes="the model has another size",
    )
