"""repeated-conversion: the same arrays are converted, and cast, at every call."""

from tests.rules.kit import *
from tfdoctor.rules.execution import repeated_conversion
from tfdoctor.rules.execution.repeated_conversion import WIDE

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
    return repeated_conversion.check(Conversions(arrays, AT), parts)


def sick() -> Verdict:
    """A float64 matrix of 72 MB is converted in 19 and cast in 9 ms of each 41 ms step."""
    return example(MATRIX)


def healthy() -> Verdict:
    """The same step is given tensors."""
    return example(step=9.0)


def array(ms: float, *, same: bool | None = True, dtype: str = "float32", cast_ms: float = 0.0) -> ConvertedArray:
    cast = OperationTime(name="Cast", type="Cast", ms=cast_ms) if cast_ms else None
    to = "float32" if cast else ""
    return ConvertedArray(dtype, (3000, 64), 0.0, ms, same=same, cast=cast, cast_to=to, place="0")


check = partial(example, step=20.0)


def test_a_share_of_the_step_and_more_than_a_number_takes() -> None:
    """Traps: a learning rate or a tiny array in each short step; arrays that were converted before the loop."""
    cases = (1.0, 20.0), (0.99, 20.0), (0.2, 1.0), (0.19, 1.0)
    found = [check(array(ms), step=step) for ms, step in cases]
    assert kinds(*found, check()) == [Finding, Healthy, Finding, Healthy, Healthy]


def test_new_arrays_at_each_call_are_left_to_python_input() -> None:
    assert kinds(check(array(9.0, same=False)), check(fed(9.0, same=False))) == [Healthy, Healthy]


def test_arrays_that_were_not_compared_are_not_judged() -> None:
    """Recordings of earlier versions have the arguments' types, but not whether their values differ."""
    assert isinstance(check(array(9.0, same=None, dtype="float64", cast_ms=4.0)), NotApplicable)


def test_the_cast_is_saved_as_well() -> None:
    finding = as_finding(check(array(6.0, dtype="float64", cast_ms=4.0)))
    assert {part: of for part, of, *_ in effects(finding) if of} == {Stage.BETWEEN: 6.0, Stage.DEVICE: 4.0}
    assert {bound for *_, bound in effects(finding)} == {Bound.EXPECTED}
    assert first_code(finding) == "array_0 = tf.constant(array_0, tf.float32)  # before the loop"
    assert finding.remedies[0].at == AT


def test_batches_in_float64_are_cast_once_where_they_are_made() -> None:
    """Their conversion is python-input's; a label that the step casts is none of NumPy's default type."""
    found = effects(check(array(6.0, same=False, dtype="float64", cast_ms=4.0)))
    assert [(part, bound) for part, _, _, bound in found] == [(Stage.DEVICE, Bound.AT_MOST)]
    assert isinstance(check(array(6.0, same=False, dtype="int64", cast_ms=4.0)), Healthy)


def test_the_time_within_the_marked_call_is_the_hosts() -> None:
    """Keras' train_on_batch is marked around the conversion."""
    inside = ConvertedArray("float32", (3000, 64), 5.0, 0.0, same=True, place="0")
    assert [effect.stage for effect in as_finding(check(inside)).effects] == [Stage.HOST]


def fed(ms: float, *, same: bool = True) -> ConvertedArray:
    return ConvertedArray("float64", (60000, 100), ms, 0.0, same, cast_to="float32", place="vectors", fed=True)


def test_what_a_session_is_fed_again_becomes_a_variable() -> None:
    finding = as_finding(check(fed(6.0)))
    assert finding.summary.startswith("Feeding the same arrays again takes 6.00 ms")
    assert [(effect.stage, effect.bound) for effect in finding.effects] == [(Stage.HOST, Bound.AT_MOST)]
    (remedy,) = finding.remedies
    assert 'tf.get_variable("vectors_table", [60000, 100], tf.float32' in remedy.code
