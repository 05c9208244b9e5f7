"""Whether an operation could run on the matrix unit as it is, by its type, dtype and dimensions."""

from dataclasses import dataclass

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Whether the matrix unit can run an operation; None is unknown. ``why`` is the obstacle or the gap."""

    possible: bool | None
    why: str = ""


def eligibility(row: OperationTime, hardware: Hardware) -> Eligibility:
    """Compare an operation on a GPU with the types and sizes that the unit supports."""
    if not hardware.matrix_unit:
        return Eligibility(possible=False if hardware.without_unit else None, why=hardware.missing)
    if row.is_depthwise:
        return Eligibility(possible=False, why="depthwise convolutions contain no matmul")
    if not row.is_matrix:
        return Eligibility(possible=False, why=f"{row.type} is not a matmul")
    dtype = row.precision
    if not dtype:
        return Eligibility(possible=None, why="the dtype is unknown")
    if dtype not in hardware.multiplies:
        return Eligibility(possible=False, why=f"{hardware.matrix_unit}s of this device do not multiply {dtype}")
    return _by_dimensions(row, hardware, dtype)


def _by_dimensions(row: OperationTime, hardware: Hardware, dtype: str) -> Eligibility:
    """Look for dimensions that are no multiple: cuBLAS before 11 and cuDNN before 7.6.3 skip the unit then."""
    multiple = hardware.tile.multiple if hardware.tile else 1
    if not hardware.strict or dtype != "float16":
        return Eligibility(possible=True)
    if row.kernel is None:
        return Eligibility(
            possible=None, why="the dimensions are unknown, and old libraries require multiples of 8"
        )
    odd = [size for size in row.kernel[-2:] if size % multiple]
    if not odd:
        return Eligibility(possible=True)
    return Eligibility(
        possible=None,
        why=f"{odd[0]} is not a multiple of {multiple}; only cuBLAS 11 and cuDNN 7.6.3 or later pad it",
    )
