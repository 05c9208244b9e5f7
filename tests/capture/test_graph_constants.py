"""Constants of one number: what the agent notes of their value."""

from tests.capture.kit import *
from tfdoctor.recording.program import Attributes
from tfdoctor.recording.typed import read

FIELDS = ("float_val", "double_val", "int_val", "int64_val")


@pytest.mark.parametrize(
    ("field", "values", "rank", "number"),
    [
        *((field, [2.0], 0, 2.0) for field in FIELDS),
        ("float_val", [2.0], 1, None),
        ("float_val", [], 0, None),
        # JSON has neither infinity nor NaN, and a mask of attention adds the least number of float32.
        *(("double_val", [number], 0, number) for number in (float("-inf"), float("nan"), -3.4e38, 1e308)),
    ],
)
def test_a_number_is_read_as_it_was(field: str, values: list[float], rank: int, number: float | None) -> None:
    value = SimpleNamespace(**{**{name: [] for name in FIELDS}, field: values})
    shape: Any = SimpleNamespace(rank=rank)
    op: Any = SimpleNamespace(outputs=[SimpleNamespace(shape=shape)], get_attr={"value": value}.get)
    written = json.dumps({"scalar": agent.load("program.graphs").number_of(op)}, allow_nan=False)
    faults: list[str] = []
    assert str(read(Attributes, json.loads(written), faults).scalar) == str(number)
    assert not faults
