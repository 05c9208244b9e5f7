"""What matrices and kernels hold that a graph captures or has as constants, and at what is not looked."""

from tests.capture.kit import *
from tfdoctor.recording.program import Attributes
from tfdoctor.recording.typed import read

BELL = np.exp(-(np.arange(-4.0, 5.0) ** 2) / 8.0)
BLUR = np.tile(3 * np.outer(BELL, BELL)[:, :, None, None], (1, 1, 2, 1)).astype("float32")
ROWS, COLUMNS = np.mgrid[-4:5, -4:5]
LINES = [np.ascontiguousarray(one) for one in (BLUR[:1], BLUR[:, :1])]
DISK = (ROWS**2 + COLUMNS**2 <= 16).astype("float32")[:, :, None, None]
EYE = np.eye(300, dtype="float32")
TWO = np.zeros((2, 2, 2, 1), "float32")
TWO[0, 0] = 1.0
THIN = np.pad(np.ones((512, 3)), ((0, 0), (0, 297)))
HUGE = np.ones((300, 300, 1, 1), "float32")


class Tensor:
    """Stands for a tensor of these values; an eager one has them itself."""

    def __init__(self, values: Any, op: Any = None, kind: str = "", **more: Any) -> None:
        self.values, self.op = values, op
        size, sizes = values.size, list(values.shape)
        self.shape = SimpleNamespace(rank=values.ndim, num_elements=lambda: size, as_list=lambda: sizes)
        self.dtype = SimpleNamespace(is_floating=values.dtype.kind == "f", name=kind or str(values.dtype))
        vars(self).update(more)


def eager(values: Any, kind: str = "") -> Tensor:
    return Tensor(values, kind=kind, _numpy=lambda: values)


def node(name: str, kind: str, values: Any, *inputs: Any, content: bytes = b"") -> Any:
    op = SimpleNamespace(name=name, type=kind, inputs=[one.outputs[0] for one in inputs])
    op.get_attr = {"value": SimpleNamespace(tensor_content=content, float_val=[1.0])}.get
    op.outputs = [Tensor(values, op)]
    return op


def described(part: str, captures: Any = (), operations: Any = ()) -> Any:
    graph: Any = SimpleNamespace(captures=captures)
    return agent.load("program.held_tensors").describe(graph, operations)[part]


def zeros(share: float, fullest: int, *, diagonal: bool = False) -> Any:
    return {"name": "held", "share": pytest.approx(share), "fullest": fullest, "diagonal": diagonal}


def two(part: float) -> Any:
    """Return a kernel that has singular values of 1 and of this part, in its second channel."""
    values = TWO.copy()
    values[1, 1, 1] = part
    return values


@cases(
    ("zeros", EYE, zeros(299 / 300, 1, diagonal=True)),
    ("zeros", np.roll(EYE, 1, axis=1), zeros(299 / 300, 1)),
    ("zeros", np.ones((300, 400), "float32"), zeros(0.0, 400)),
    ("zeros", THIN, zeros(0.99, 3)),
    ("zeros", THIN.astype("float32"), zeros(0.99, 3)),
    # What is small or no matrix of floats is left out, and so are lines and huge kernels.
    *(("zeros", one, None) for one in (EYE[:255, :256], np.zeros(70_000, "float32"), np.zeros((300, 300), int))),
    *(("kernels", one, None) for one in (*LINES, HUGE)),
    # Kernels that are a column times a row: the second singular value decides.
    *(("kernels", one, {"name": "held", "separable": True}) for one in (BLUR, BLUR[:5].copy(), two(5e-5))),
    *(("kernels", one, {"name": "held", "separable": False}) for one in (DISK, np.zeros_like(DISK), two(2e-4))),
)
def test_what_is_told_of_a_captured_tensor_or_a_constant(part: str, values: Any, told: Any) -> None:
    """The graph convolves with it behind a cast."""
    for captured in (True, False):
        content = b"" if captured else values.tobytes()
        made = node("held", "Placeholder" if captured else "Const", values, content=content)
        image, cast = node("image", "Placeholder", values), node("cast", "Cast", values, made)
        used = node("blur", "DepthwiseConv2dNative", values, image, cast)
        captures = [(eager(values), made.outputs[0])] if captured else []
        assert described(part, captures, [made, used]) == [told] * (told is not None)


@cases(("Conv2D", "Const"), ("DepthwiseConv2dNative", "ReadVariableOp"), ("DepthwiseConv2dNative", "Placeholder"))
def test_kernels_of_other_operations_and_those_that_change_are_left_out(kind: str, of: str) -> None:
    made = node("made", of, BLUR, content=BLUR.tobytes())
    assert described("kernels", operations=[node("used", kind, BLUR, made, made)]) == []


@each(EYE, BLUR)
def test_a_constant_of_one_number_or_another_type_is_left_out(values: Any) -> None:
    """TensorFlow stores the number once, and no content."""
    half = values.astype("float16")
    for made in (node("one", "Const", values), node("half", "Const", half, content=half.tobytes())):
        used = node("used", "DepthwiseConv2dNative", values, made, made)
        assert described("zeros", operations=[made, used]) == []
        assert described("kernels", operations=[made, used]) == []


def test_what_an_outer_function_captured_is_held_and_what_it_is_given_is_not() -> None:
    """Keras calls the user's train_step from a function of its own."""
    inner = SimpleNamespace(op=SimpleNamespace(name="m"))
    outer, argument = SimpleNamespace(), SimpleNamespace(graph=SimpleNamespace(captures=[]))
    outer.graph = SimpleNamespace(captures=[(eager(EYE), outer)])
    variable = eager(EYE, "resource")
    assert described("captured", [(outer, inner), (argument, inner), (variable, inner)]) == ["m"]
    (found,) = described("zeros", [(outer, inner)])
    assert (found["name"], found["diagonal"]) == ("m", True)


FIELDS = ("float_val", "double_val", "int_val", "int64_val")


@cases(
    *((field, [2.0], 0, 2.0) for field in FIELDS),
    ("float_val", [2.0], 1, None),
    ("float_val", [], 0, None),
    # JSON has neither infinity nor NaN, and a mask of attention adds the least number of float32.
    *(("double_val", [number], 0, number) for number in (float("-inf"), float("nan"), -3.4e38, 1e308)),
)
def test_a_number_is_read_as_it_was(field: str, values: list[float], rank: int, number: float | None) -> None:
    value = SimpleNamespace(**{**{name: [] for name in FIELDS}, field: values})
    shape: Any = SimpleNamespace(rank=rank)
    op: Any = SimpleNamespace(outputs=[SimpleNamespace(shape=shape)], get_attr={"value": value}.get)
    written = json.dumps({"scalar": agent.load("program.graphs").number_of(op)}, allow_nan=False)
    faults: list[str] = []
    assert str(read(Attributes, json.loads(written), faults).scalar) == str(number)
    assert not faults
