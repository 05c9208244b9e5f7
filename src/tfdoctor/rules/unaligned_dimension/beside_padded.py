"""What other operations gain when the widths of layers fit the hardware: those that read and write them."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.tpu.shapes import Array
from tfdoctor.rules.unaligned_dimension.aligned_times import AlignedTimes
from tfdoctor.rules.unaligned_dimension.padded_widths import Padded, result_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage


def elsewhere(wasteful: list[Padded], operations: Operations, hardware: Hardware) -> tuple[Effect, ...]:
    """Return what a TPU's other operations on tensors of these widths gain from the narrower ones."""
    if hardware.kind != DeviceKind.TPU:
        return ()
    targets = {padded.width: padded.target for padded in wasteful if padded.target < padded.width}
    results = [(row, result_of(row)) for row in operations.rows if not row.is_matrix]
    return tuple(
        replace(row.scaled(_tiles(result, target) / _tiles(result, width)), narrows=True)
        for row, result in results
        if result and result.tile and (width := result.width) and (target := targets.get(width))
    )


def beside_slow(slow: list[Padded], operations: Operations, aligned: AlignedTimes) -> Iterator[Effect]:
    """Yield what a GPU gains beside the slow kernels: their buffers, and other kernels of these widths.

    Loads of whole vectors need aligned rows too, in any type.
    """
    for padded in slow:
        if cleared_ms := aligned.cleared_ms.get(padded.row.name):
            yield Effect(Stage.TRANSFER, 0.0, padded.row.name, ms(cleared_ms), bound=Bound.AT_MOST)
    widths = {width for padded in slow for width in padded.chosen if width % padded.tile.multiple}
    for row in operations.rows if widths else ():
        least_ms = aligned.least_ms.get(row.name, row.ms)
        tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
        last = {shape[-1] for _, shape in tensors if shape}
        if row.is_fused and least_ms < row.ms and not widths.isdisjoint(last):
            yield row.scaled(least_ms / row.ms, Bound.AT_MOST)


def _tiles(array: Array, width: int) -> int:
    """Return how many of an array's tiles hold a width in memory."""
    return ceil(width / array.tile[-1])
