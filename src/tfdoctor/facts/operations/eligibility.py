"""Whether an operation could run on the matrix unit as it is: by its type, its dtype and its dimensions."""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import OperationTime
from tfdoctor.facts.run.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Eligibility:
    """``possible`` is None when unknown; ``why`` says what speaks against it, or what is not known."""

    possible: bool | None
    why: str = ""


def eligibility(row: OperationTime, hardware: Hardware) -> Eligibility:
    """Judge an operation on a GPU by what the unit takes, not by the name that somebody gave it."""
    if not hardware.matrix_unit:
        return Eligibility(possible=False if hardware.without_unit else None, why=hardware.missing)
    if row.is_depthwise:
        return Eligibility(
            possible=False, why="it convolves each channel alone, so there is no product to compute"
        )
    if not row.is_matrix:
        return Eligibility(possible=False, why=f"{row.type} is no matrix product")
    dtype = row.precision
    if not dtype:
        return Eligibility(possible=None, why="its type is not known")
    if dtype not in hardware.multiplies:
        return Eligibility(
            possible=False, why=f"{hardware.matrix_unit}s of this device do not multiply {dtype}"
        )
    return _by_dimensions(row, hardware, dtype)


def _by_dimensions(row: OperationTime, hardware: Hardware, dtype: str) -> Eligibility:
    """Look for dimensions off the tile: cuBLAS before 11 and cuDNN before 7.6.3 leave the unit idle then."""
    multiple = hardware.tile.multiple if hardware.tile else 1
    if not hardware.strict or dtype != "float16":
        return Eligibility(possible=True)
    if row.kernel is None:
        return Eligibility(
            possible=None, why="its dimensions are not known, and old libraries want multiples of 8"
        )
    odd = [size for size in row.kernel[-2:] if size % multiple]
    if not odd:
        return Eligibility(possible=True)
    return Eligibility(
        possible=None,
        why=f"{odd[0]} is no multiple of {multiple}, which cuBLAS pads from version 11 and cuDNN from 7.6.3 on",
    )
