"""repeated-conversion: the same arrays are converted, and cast, at every call."""

from tests.rules.kit import *
from tfdoctor.rules.execution import repeated_conversion
from tfdoctor.rules.execution.repeated_conversion import WIDE

AT = script(41)
CAST = took("Cast", "Cast", 9.0, at=script(30))
MATRIX = ConvertedArray(WIDE, (3000, 3000), 0.0, 19.0, same=True, cast=CAST, cast_to="float32", place="0")


def example(*arrays: ConvertedArray, step: float = 41.0) -> Verdict:
    """Judge the conversion of these arrays in each step."""
    between = sum(array.ms for array in arrays)
    parts = Breakdown.of(between=between, device=step - between)
    return repeated_conversion.check(Conversions(arrays, AT), parts)


def array(ms: float, *, same: bool | None = True, dtype: str = "float32", cast_ms: float = 0.0) -> ConvertedArray:
    cast = took("Cast", "Cast", cast_ms) if cast_ms else None
    to = "float32" if cast else ""
    return ConvertedArray(dtype, (3000, 64), 0.0, ms, same=same, cast=cast, cast_to=to, place="0")


def fed(ms: float, *, same: bool = True) -> ConvertedArray:
    return ConvertedArray("float64", (60000, 100), ms, 0.0, same, cast_to="float32", place="vectors", fed=True)


sick = described(
    "A float64 matrix of 72 MB is converted in 19 and cast in 9 ms of each 41 ms step.", example, MATRIX
)
healthy = described("The same step is given tensors.", example, step=9.0)
check = partial(example, step=20.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = check(array(1.0)), check(array(0.99))
    told["trap: tiny arrays in each short step: 0.2 ms"] = [check(array(ms), step=1.0) for ms in (0.2, 0.19)]
    told["new arrays at each call are left to python-input"] = check(array(9.0, same=False))
    told[...] = check(fed(9.0, same=False))
    told["arrays that were not compared, in the past"] = check(array(9.0, same=None, dtype="float64", cast_ms=4.0))
    told["the cast is saved as well"] = check(array(6.0, dtype="float64", cast_ms=4.0))
    told["batches in float64 are cast once where they are made: their conversion is python-input's"] = check(
        array(6.0, same=False, dtype="float64", cast_ms=4.0)
    )
    told["a label is not of NumPy's default type"] = check(array(6.0, same=False, dtype="int64", cast_ms=4.0))
    told["within the call that Keras' train_on_batch marks it is the host's time"] = check(
        ConvertedArray("float32", (3000, 64), 5.0, 0.0, same=True, place="0")
    )
    told["what a session is fed again becomes a variable"] = check(fed(6.0))
