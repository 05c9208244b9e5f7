"""What matrices and kernels hold that a graph captures or has as constants, and at what is not looked."""

from tests.capture.kit import *

BELL = np.exp(-(np.arange(-4.0, 5.0) ** 2) / 8.0)
BLUR = np.tile(3 * np.outer(BELL, BELL)[:, :, None, None], (1, 1, 2, 1)).astype("float32")
ROWS, COLUMNS = np.mgrid[-4:5, -4:5]
DISK = (ROWS**2 + COLUMNS**2 <= 16).astype("float32")[:, :, None, None]
EYE = np.eye(300, dtype="float32")
TWO = np.zeros((2, 2, 2, 1), "float32")
TWO[0, 0] = 1.0
THIN = np.pad(np.ones((512, 3)), ((0, 0), (0, 297)))


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


def held(part: str, values: Any, *, captured: bool) -> Any:
    """Describe a graph that holds these values, and convolves with them behind a cast."""
    content = b"" if captured else values.tobytes()
    made = node("held", "Placeholder" if captured else "Const", values, content=content)
    image, cast = node("image", "Placeholder", values), node("cast", "Cast", values, made)
    used = node("blur", "DepthwiseConv2dNative", values, image, cast)
    return described(part, [(eager(values), made.outputs[0])] if captured else [], [made, used])


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize(
    ("values", "share", "fullest", "diagonal"),
    [
        (EYE, 299 / 300, 1, True),
        (np.roll(EYE, 1, axis=1), 299 / 300, 1, False),
        (np.ones((300, 400), "float32"), 0.0, 400, False),
        (THIN, 0.99, 3, False),
        (THIN.astype("float32"), 0.99, 3, False),
    ],
)
def test_zeros_of_matrices(values: Any, share: float, fullest: int, *, diagonal: bool, captured: bool) -> None:
    (found,) = held("zeros", values, captured=captured)
    assert found == {
        "name": "held", "share": pytest.approx(share), "fullest": fullest, "diagonal": diagonal,
    }  # fmt: skip


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize("values", [EYE[:255, :256], np.zeros(70_000, "float32"), np.zeros((300, 300), int)])
def test_what_is_small_or_no_matrix_of_floats_is_left_out(values: Any, *, captured: bool) -> None:
    assert held("zeros", values, captured=captured) == []


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize(
    ("values", "separable"),
    [(BLUR, True), (np.ascontiguousarray(BLUR[:5]), True), (DISK, False), (np.zeros_like(DISK), False)],
)
def test_kernels_that_are_a_column_times_a_row(values: Any, *, separable: bool, captured: bool) -> None:
    assert held("kernels", values, captured=captured) == [{"name": "held", "separable": separable}]


@pytest.mark.parametrize(("part", "separable"), [(5e-5, True), (2e-4, False)])
def test_the_second_singular_value_decides(part: float, *, separable: bool) -> None:
    """The kernel has singular values of 1 and of this part, in its second channel."""
    values = TWO.copy()
    values[1, 1, 1] = part
    assert held("kernels", values, captured=True) == [{"name": "held", "separable": separable}]


@pytest.mark.parametrize("values", [BLUR[:1], BLUR[:, :1], np.ones((300, 300, 1, 1), "float32")])
def test_lines_and_huge_kernels_are_left_out(values: Any) -> None:
    assert held("kernels", np.ascontiguousarray(values), captured=False) == []


@pytest.mark.parametrize(
    ("kind", "of"),
    [("Conv2D", "Const"), ("DepthwiseConv2dNative", "ReadVariableOp"), ("DepthwiseConv2dNative", "Placeholder")],
)
def test_kernels_of_other_operations_and_those_that_change_are_left_out(kind: str, of: str) -> None:
    made = node("made", of, BLUR, content=BLUR.tobytes())
    assert described("kernels", operations=[node("used", kind, BLUR, made, made)]) == []


@pytest.mark.parametrize("values", [EYE, BLUR])
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
