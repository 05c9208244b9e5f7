"""How much of a TPU's matmuls is padding: of what the MXU multiplies, and of what is stored in memory.

The MXU is a square of 128 x 128, 256 x 256 from v6e on (Google Cloud, TPU architecture). A matmul whose
width (the result's dimension in the lanes) or depth (the summed dimension) is not a multiple of it leaves
part of the square idle. In memory XLA pads the two minor dimensions to the layout's tile: 8 x 128 up to
v6e for 16-bit precision too, 16 x 128 for bf16 from 7x on. The tile is read from the trace.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.tpu.operations import TpuOperation, TpuOperations
from tfdoctor.facts.tpu.shapes import Array


@dataclass(frozen=True, slots=True)
class PaddedMatmul:
    """One operation with a dot or a convolution. Shares from 0 to 1.

    ``depth`` is the size of the summed dimension, per position of a convolution's window; None is unknown.
    """

    row: TpuOperation
    side: int  # of the MXU
    width: int  # of the result, in the lanes
    depth: int | None
    stored_useful: float | None  # of results and operands in memory; None where no tile is known
    windowed: bool = False  # a convolution's window has more than one position
    tiles: tuple[tuple[int, ...], ...] = ()  # of its arrays: (8, 128)

    @classmethod
    def of(cls, row: TpuOperation, side: int) -> Self | None:
        """Size a matmul by its instruction's text, else by the program; None where neither tells."""
        shapes = (shape for instruction in row.matmuls[:1] for shape in instruction.shapes)
        arrays = row.arrays or tuple(map(Array.of, shapes))
        width = arrays[0].width if arrays else None
        if not width:
            return None
        tiled = [array for array in arrays if array.tile]
        matmul = next((inner.matmul for inner in row.matmuls if inner.matmul), None)
        depth = matmul.k if matmul else None
        useful = _weighted((array.stored, array.useful) for array in tiled)
        windowed = bool(matmul and matmul.window > 1)
        return cls(row, side, width, depth, useful, windowed, tuple({array.tile for array in tiled}))

    @property
    def useful(self) -> float:
        """The share of the MXU's width that is used."""
        return self.width / _padded(self.width, self.side)

    @property
    def depth_useful(self) -> float | None:
        """The share of the MXU's depth that is used; unknown with a window, which XLA may fold into it."""
        if self.depth is None or self.windowed:
            return None
        return self.depth / _padded(self.depth, self.side)

    @property
    def lost_ms(self) -> float:
        """The time per round in which columns of the MXU multiply padding."""
        return self.row.ms * (1 - self.useful)


@dataclass(frozen=True, slots=True)
class Padding:
    """All matmuls whose shapes are known, those that lose the most first."""

    side: int
    matmuls: tuple[PaddedMatmul, ...]
    unknown_ms: float  # per round, in matmuls whose shapes the trace does not contain

    @classmethod
    def measure(cls, operations: TpuOperations, hardware: Hardware) -> Self:
        """Size every matmul by the program, else by its instruction's text."""
        side = hardware.tile.multiple if hardware.tile else 0
        if not operations.matmuls:
            raise Unavailable("the step runs no matmul or convolution")
        sized = [(row, PaddedMatmul.of(row, side)) for row in operations.matmuls if not row.depthwise]
        known = [matmul for _, matmul in sized if matmul is not None]
        if not known:
            raise Unavailable("the trace does not contain the shapes of its matmuls and convolutions")
        known.sort(key=lambda matmul: -matmul.lost_ms)
        return cls(side, tuple(known), sum(row.ms for row, matmul in sized if matmul is None))

    @property
    def lost_ms(self) -> float:
        """The time per round in which the MXU multiplies padding."""
        return sum(matmul.lost_ms for matmul in self.matmuls)

    @property
    def useful(self) -> float:
        """The share of the MXU's width that is used, weighted by time."""
        total = sum(matmul.row.ms for matmul in self.matmuls)
        return 1 - self.lost_ms / total if total else 1.0

    @property
    def depth_useful(self) -> float | None:
        """The used share of the MXU's depth, over the matmuls whose depth is known; None without any."""
        return _weighted((matmul.row.ms, matmul.depth_useful) for matmul in self.matmuls)

    @property
    def stored_useful(self) -> float | None:
        """The share of the matmuls' arrays in memory that is not padding to tiles, weighted by time."""
        return _weighted((matmul.row.ms, matmul.stored_useful) for matmul in self.matmuls)

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """The tiles of the matmuls' arrays."""
        return tuple(sorted({tile for matmul in self.matmuls for tile in matmul.tiles}))


def _weighted(shares: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the mean of the shares that are known, each of which comes after its weight."""
    known = [(weight, share) for weight, share in shares if share is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * share for weight, share in known) / total if total else None


def _padded(size: int, multiple: int) -> int:
    return ceil(size / multiple) * multiple if multiple else size
