"""Whether an operation could run on the matrix unit as it is, by its type, dtype and dimensions."""

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.hardware import Hardware


def is_eligible(row: OperationTime, hardware: Hardware) -> bool | None:
    """Compare an operation on a GPU with the types and sizes that the unit supports; None is unknown."""
    if not hardware.matrix_unit:
        return False if hardware.without_unit else None
    dtype = row.precision
    if not row.is_matrix or row.is_depthwise or (dtype and dtype not in hardware.multiplies):
        return False
    if not dtype:
        return None
    if not hardware.strict or dtype != "float16":
        return True
    # cuBLAS before 11 and cuDNN before 7.6.3 skip the unit where a dimension is no multiple; later ones pad it.
    multiple = hardware.tile.multiple if hardware.tile else 1
    return True if row.kernel and not any(size % multiple for size in row.kernel[-2:]) else None
