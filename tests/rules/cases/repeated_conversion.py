"""The cases of repeated-conversion: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.repeated_conversion import WIDE, check

AT = Location("train.py", 41)


MATRIX = ConvertedArray(
    WIDE,
    (3000, 3000),
    0.0,
    19.0,
    same=True,
    cast=OperationTime(name="Cast", type="Cast", ms=9.0, at=Location("train.py", 30)),
    cast_to="float32",
    place="0",
)


def example(*arrays: ConvertedArray, step: float = 41.0) -> Verdict:
    """Judge the conversion of these arrays in each step."""
    between = sum(array.ms for array in arrays)
    parts = Breakdown.of(between=between, device=step - between)
    return check(Conversions(arrays, AT), parts)


def sick() -> Verdict:
    """A float64 matrix of 72 MB is converted in 19 and cast in 9 ms of each 41 ms step."""
    return example(MATRIX)


def healthy() -> Verdict:
    """The same step is given tensors."""
    return example(step=9.0)
