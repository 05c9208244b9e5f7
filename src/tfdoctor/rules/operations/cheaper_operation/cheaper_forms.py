"""Operations that have a cheaper form: the kinds that are known, and what of the graph shows that it applies."""

from tfdoctor.facts.operations.dataflow import LONGEST
from tfdoctor.families.kit import *

FEW = 0.25  # Share of the elements that an operation makes up to which most of its work is for nothing
LEFT = 0.5  # Share of the arithmetic that the cheaper form may need at most: less is not worth its lines
# Fewest classes of a softmax that sampling is meant for: tf.nn.sampled_softmax_loss has thousands of samples.
CLASSES = 10_000

SLICES = frozenset(("StridedSlice", "Slice"))
CHOOSES = SLICES | {"Max", "GatherV2"}  # Operations that take one of several values as it is
# Operations whose result has the rows of their first operand several times.
REPEATS = frozenset(("Tile", "BroadcastTo", "GatherV2", "Gather", "GatherNd"))

# The scope of a Jacobian's loop over results, and what shapes the Jacobian before its diagonal is taken.
PFOR, SHAPED = "/pfor/", SLICES | {"Reshape", "Squeeze", "Transpose"}


class FormKind(StrEnum):
    """What to do instead; the page has code for it under the name of the kind."""

    LARGEST_SINGULAR_VALUE = "Estimate the largest singular value by one power iteration for each step"
    FEW_OF_A_SORT = "Take the few values by tf.math.top_k in place of a full sort"
    PAIRS_BEFORE_PRODUCT = (
        "Multiply the single rows by their parts of the weights, then repeat and add the products"
    )
    CONVOLUTION_AFTER_RESIZE = "Run the 1x1 convolution before the image is enlarged: both orders compute the same"
    PRODUCT_WITH_DIAGONAL = (
        "Multiply by the diagonal elementwise: rows for a factor on the left, columns for one on the right"
    )
    ORDER_OF_PRODUCTS = "Multiply the small matrices first, a @ (b @ c) in place of (a @ b) @ c or the reverse"
    DIAGONAL_OF_JACOBIAN = "Take the gradient of the sum: it is the diagonal where a result needs its own row alone"
    REPEATED_FOR_A_SLICE = "Take the slices of the tensor itself and concatenate them, without repeating all of it"
    LARGE_SOFTMAX = (
        "Train with sampled classes (tf.nn.sampled_softmax_loss), and compute the whole softmax in evaluation"
    )
    RESPONSE_NORMALIZATION = (
        "Leave out the local response normalization, or normalize batches: this trains another model"
    )

    @property
    def page_name(self) -> str:
        """The name of its code in the page."""
        return self.name.lower().replace("_", "-")


class CheaperForm(Record):
    """Operations of one line that have a cheaper form, by their names."""

    kind: FormKind
    at: Location | None
    names: frozenset[str]
    because: str  # a clause with the sizes that show it
    left: float = 0.0  # the share of the work that the cheaper form needs, as far as it is known


class CheaperForms(Record):
    """The operations of the step that have a cheaper form, by kind and line."""

    forms: tuple[CheaperForm, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Look at the operations of the forward pass that ran, at their operands and at their uses.

        What one line does several times, such as in each layer, is one form: the first is the longest.
        """
        found: dict[tuple[FormKind, Location | None], CheaperForm] = {}
        for row in operations.rows:
            made = row.operation
            if made is None or is_backward(made.name):
                continue
            for kind, form_of in FORMS.get(made.type, {}).items():
                if form := form_of(made, dataflow):
                    at, (names, because, left) = dataflow.program.line_of(made) or row.at, form
                    before = found.get((kind, at), CheaperForm(kind, at, frozenset(), because))
                    joined = before.names.union(names)
                    found[kind, at] = replace(before, names=joined, left=max(before.left, left))
        return cls(tuple(found.values()))


# The names of the operations, the clause and the share of the work that is left.
Found = tuple[Sequence[str], str, float] | None


def _singular_value(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize singular values of which each matrix's largest alone is used, and no singular vector."""
    values, uses = _shape(made.outputs, dataflow), list(_uses(made, dataflow))
    if not values or values[-1] == 1 or not uses or any(port for _, port in uses):
        return None
    matrices = prod(values[:-1])
    if any(use.type not in CHOOSES or _size(use.outputs, dataflow) != matrices for use, _ in uses):
        return None
    return _with_gradients(dataflow, made), f"of {values[-1]} singular values one is used", 0.0


def _sort(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize sorted values of which slices take few from each row."""
    values, uses = _shape(made.outputs, dataflow), [use for use, _ in _uses(made, dataflow, "Neg")]
    shapes = [_shape(use.outputs, dataflow) for use in uses]
    sliced = all(use.type in SLICES for use in uses)
    if not values or not uses or not sliced or any(len(shape) != len(values) for shape in shapes):
        return None
    used = max(shape[-1] for shape in shapes)
    if used > FEW * values[-1]:
        return None
    return [made.name], f"{used} of the {values[-1]} sorted values of each row are used", 0.0


def _pairs(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize the product of a concatenation of repeated rows: a sum of products of the single rows.

    The product needs each part's width once for each of its rows, and not once for each repetition.
    """
    joined = _source(made, 0, dataflow)
    width = _shape(joined.outputs, dataflow)[-1:] if joined and joined.type == "ConcatV2" else ()
    if joined is None or not width or not width[0]:
        return None
    left, rows = 0.0, 0
    for at, tensor in enumerate(joined.inputs[: len(joined.sources) - 1]):
        part, shape = _source(joined, at, dataflow), _shape((tensor,), dataflow)
        if not shape:
            return None
        before = _size(part.inputs, dataflow) if part and part.type in REPEATS else 0
        rows = prod(shape[:-1])
        left += shape[-1] / width[0] * (before / prod(shape) if before else 1.0)
    if left > LEFT:
        return None
    because = f"the single rows need {left:.0%} of the products of {rows:,} repeated ones"
    return _with_gradients(dataflow, made, joined), because, left


def _after_resize(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize a 1x1 convolution to as many or fewer channels of an image that was enlarged just before.

    Either is linear, and the weights of an interpolation add up to one, so that both orders compute the same.
    """
    kernel, resize = _shape(made.inputs[1:2], dataflow), _source(made, 0, dataflow)
    if kernel[:2] != (1, 1) or resize is None or not resize.type.startswith("Resize"):
        return None
    larger, smaller = _shape(resize.outputs, dataflow), _shape(resize.inputs, dataflow)
    if len(larger) != len(smaller) or len(list(_uses(resize, dataflow))) > 1 or kernel[3] > kernel[2]:
        return None
    left = max(prod(smaller[1:3]) / prod(larger[1:3]), kernel[3] / kernel[2])
    if left > LEFT:
        return None
    small, large = (" x ".join(map(str, shape[1:3])) for shape in (smaller, larger))
    because = f"it runs on {large} pixels that were enlarged from {small}"
    return _with_gradients(dataflow, made, resize), because, left


def _diagonal(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize a product with a diagonal matrix that the step itself makes of its diagonal."""
    for at in range(len(made.sources)):
        operand = _source(made, at, dataflow)
        diagonal = operand is not None and operand.type.startswith(("MatrixDiag", "Diag"))
        if operand is None or not diagonal or operand.type in {"DiagPart", "MatrixDiagPart"}:
            continue
        size = _shape(operand.outputs, dataflow)[-1:] or (0,)
        if size[0]:
            because = f"of the {size[0]:,} values in each row of a factor one is not zero"
            return [operand.name, *_with_gradients(dataflow, made)], because, 1.0 / size[0]
    return None


def _order(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize the product of a product that nothing else uses, where the other order needs less arithmetic."""
    for at in (0, 1):
        inner, whole = dataflow.source(made, at), _shape(made.outputs, dataflow)
        if inner is None or inner.type != made.type or len(list(_uses(inner, dataflow))) != 1:
            continue
        first, between = _shape(inner.inputs, dataflow), _shape(inner.outputs, dataflow)
        if min(map(len, (whole, first, between))) < 2:  # noqa: PLR2004 - matrices, of known sizes
            continue
        (rows, columns), (m, n), k = whole[-2:], between[-2:], first[-2 if inner.attrs.transpose_a else -1]
        now = m * k * n + m * n * (columns if at == 0 else rows)
        other = k * n * columns + m * k * columns if at == 0 else rows * m * k + rows * k * n
        if other <= LEFT * now:
            because = f"in the other order the products need {other / now:.0%} of the arithmetic"
            return _with_gradients(dataflow, made, inner), because, other / now
    return None


def _of_jacobian(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize the diagonal of a Jacobian, which TensorFlow's pfor makes of a backward pass for each result."""
    source, size = _source(made, 0, dataflow), _shape(made.outputs, dataflow)[-1:] or (0,)
    for _ in range(LONGEST):
        if source is None or source.type not in SHAPED:
            break
        source = dataflow.source(source, 0)
    if source is None or PFOR not in source.name or not size[0]:
        return None
    loops = {one.name: one.name.partition(PFOR)[0] for one in dataflow.operations if PFOR in one.name}
    own = {loops[one.name] for one in dataflow.operations if one.name in loops and one.at == source.at}
    own |= {GRADIENT_SCOPE + scope for scope in own}
    names = [name for name, scope in loops.items() if scope in own]
    return names, f"of the {size[0]:,} values in each row of the Jacobian one is used", 1.0 / size[0]


def _for_slice(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize a repeated tensor of which only slices are used, and those hold few of its values."""
    size, uses = _size(made.outputs, dataflow), [use for use, _ in _uses(made, dataflow)]
    if not size or not uses or any(use.type not in SLICES for use in uses):
        return None
    left = sum(_size(use.outputs, dataflow) for use in uses) / size
    if not 0.0 < left <= FEW:
        return None
    names = _with_gradients(dataflow, made, *uses)
    back = {name for use in uses for name in _gradients(use, dataflow)}
    whole = [one for name in back if (one := dataflow.program.by_name[name]).outputs[:1] == made.outputs[:1]]
    names += [user.name for one in whole for user in dataflow.users(one)]  # which sum what the slices give back
    return names, f"{left:.0%} of the repeated values are used", left


def _softmax(made: Operation, dataflow: Dataflow) -> Found:
    """Recognize the softmax of a loss over so many classes that sampling them is meant for it."""
    classes = (made.inputs[0][1] or (0,))[-1] or 0
    if classes < CLASSES:
        return None
    return _with_gradients(dataflow, made), f"the loss has {classes:,} classes", 0.0


# What to look at, by the type of the operation.
FORMS: Mapping[str, Mapping[FormKind, Callable[[Operation, Dataflow], Found]]] = {
    "Svd": {FormKind.LARGEST_SINGULAR_VALUE: _singular_value},
    "TopKV2": {FormKind.FEW_OF_A_SORT: _sort},
    "MatMul": {
        FormKind.PAIRS_BEFORE_PRODUCT: _pairs,
        FormKind.PRODUCT_WITH_DIAGONAL: _diagonal,
        FormKind.ORDER_OF_PRODUCTS: _order,
    },
    "BatchMatMulV2": {FormKind.PRODUCT_WITH_DIAGONAL: _diagonal},
    "Conv2D": {FormKind.CONVOLUTION_AFTER_RESIZE: _after_resize},
    "Tile": {FormKind.REPEATED_FOR_A_SLICE: _for_slice},
    "MatrixDiagPartV3": {FormKind.DIAGONAL_OF_JACOBIAN: _of_jacobian},
    "SparseSoftmaxCrossEntropyWithLogits": {FormKind.LARGE_SOFTMAX: _softmax},
    "SoftmaxCrossEntropyWithLogits": {FormKind.LARGE_SOFTMAX: _softmax},
    "LRN": {  # whose kernel computes a power for each value and its neighbours
        FormKind.RESPONSE_NORMALIZATION: lambda made, dataflow: (
            _with_gradients(dataflow, made),
            "VGG networks reached the same accuracy without it",
            0.0,
        )
    },
}


def _source(made: Operation, position: int, dataflow: Dataflow) -> Operation | None:
    """Return what makes an operand, behind the transposition that Tensordot makes even where it changes nothing."""
    source = dataflow.source(made, position)
    for _ in range(LONGEST):
        if source is None or source.type != "Transpose" or "Tensordot" not in source.name:
            break
        source = dataflow.source(source, 0)
    return source


def _uses(
    made: Operation, dataflow: Dataflow, *passing: str, passed: set[str] | None = None
) -> Iterator[tuple[Operation, int]]:
    """Yield what takes an operation's results in the forward pass, and which; shapes are no use of values.

    ``passed`` are those that only pass the results on, each once.
    """
    passed = {made.name} if passed is None else passed
    for user in dataflow.forward(made):
        ports = user.ports or (0,) * len(user.sources)
        taken = {port for source, port in zip(user.sources, ports, strict=False) if source == made.name}
        if user.type not in {"Identity", "Cast", *passing}:
            yield from ((user, port) for port in taken)
        elif user.name not in passed and len(passed) < LONGEST:
            passed.add(user.name)
            yield from ((use, port) for use, _ in _uses(user, dataflow, passed=passed) for port in taken)


def _with_gradients(dataflow: Dataflow, *made: Operation) -> list[str]:
    return [name for one in made for name in (one.name, *_gradients(one, dataflow))]


def _gradients(made: Operation, dataflow: Dataflow) -> Iterator[str]:
    """Yield the operations that compute the gradient of an operation, by their scope.

    TensorFlow gives them the scope of the forward operation, or, where a Python function computes the gradient of
    several, that around it and the name of the type.
    """
    yield from (one.name for one in dataflow.gradients.get(made.name, ()))
    scope, beside = made.name.rpartition("/")[0], f"{GRADIENT_SCOPE}{made.name}"
    around = dataflow.gradients.get(scope, ()) if scope else ()
    yield from (one.name for one in around if one.name.startswith(beside))
    if beside in dataflow.program.by_name:
        yield beside


def _shape(tensors: Sequence[Tensor], dataflow: Dataflow) -> tuple[int, ...]:
    """Return the shape of the first tensor with the batch filled in; () is unknown or a scalar."""
    return (dataflow.program.shape(tensors[0][1]) or ()) if tensors else ()


def _size(tensors: Sequence[Tensor], dataflow: Dataflow) -> int:
    """Return the elements of the first tensor; 0 is unknown."""
    shape = dataflow.program.shape(tensors[0][1]) if tensors else None
    return 0 if shape is None else prod(shape)
