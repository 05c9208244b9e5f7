"""Operations that have a cheaper form: the kinds that are known, and what of the graph shows that it applies."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from types import MappingProxyType
from typing import Self

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, LONGEST, Dataflow
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

FEW = 0.25
"""Share of the elements that an operation makes up to which most of its work is for nothing."""

LEFT = 0.5
"""Share of the arithmetic that the cheaper form may need at most: less is not worth its lines."""

DOMINATES = 0.5
"""Share of the step from which a softmax is reported: sampling it trains another objective."""

CLASSES = 10_000
"""Fewest classes of a softmax that sampling is meant for: tf.nn.sampled_softmax_loss has thousands of samples."""

SLICES = frozenset(("StridedSlice", "Slice"))
CHOOSES = SLICES | {"Max", "GatherV2"}
"""Operations that take one of several values as it is."""

REPEATS = frozenset(("Tile", "BroadcastTo", "GatherV2", "Gather", "GatherNd"))
"""Operations whose result has the rows of their first operand several times."""


class FormKind(StrEnum):
    """What is computed, and in which cheaper form it can be."""

    LARGEST_SINGULAR_VALUE = "largest singular value"
    FEW_OF_A_SORT = "few of a sort"
    PAIRS_BEFORE_PRODUCT = "pairs before a product"
    CONVOLUTION_AFTER_RESIZE = "convolution after a resize"
    PRODUCT_WITH_DIAGONAL = "product with a diagonal"
    REPEATED_FOR_A_SLICE = "repeated for a slice"
    RESPONSE_NORMALIZATION = "local response normalization"
    LARGE_SOFTMAX = "softmax over very many classes"


@dataclass(frozen=True, slots=True)
class CheaperForm:
    """Operations of one line that have a cheaper form, by their names."""

    kind: FormKind
    at: Location | None
    names: frozenset[str]
    because: str  # a clause with the sizes that show it
    left: float = 0.0  # the share of the work that the cheaper form needs, as far as it is known

    @property
    def least_share(self) -> float:
        """The share of the step from which it is worth an approximation; 0 where the results are the same."""
        return DOMINATES if self.kind is FormKind.LARGE_SOFTMAX else 0.0


@dataclass(frozen=True, slots=True)
class CheaperForms:
    """The operations of the step that have a cheaper form, by kind and line."""

    forms: tuple[CheaperForm, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Look at the operations of the forward pass that ran, at their operands and at their uses."""
        found: dict[tuple[FormKind, Location | None], list[CheaperForm]] = defaultdict(list)
        for row in operations.rows:
            made = row.operation
            if made is None or GRADIENT.search(made.name):
                continue
            for kind, form_of in FORMS.get(made.type, {}).items():
                form = form_of(made, dataflow)
                if form is not None:
                    at = dataflow.program.line_of(made) or row.at
                    found[kind, at].append(CheaperForm(kind, at, *form))
        return cls(tuple(_joined(forms) for forms in found.values()))


def _joined(forms: Sequence[CheaperForm]) -> CheaperForm:
    """Join what one line does several times, such as in each layer: the first is the longest."""
    names = frozenset(name for form in forms for name in form.names)
    return replace(forms[0], names=names, left=max(form.left for form in forms))


Found = tuple[frozenset[str], str, float]
"""The names of the operations, the clause and the share of the work that is left."""


def _singular_value(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize singular values of which each matrix's largest alone is used, and no singular vector."""
    values = _shape(made.outputs, dataflow)
    uses = list(_uses(made, dataflow))
    if not values or not uses or any(port for _, port in uses):
        return None
    matrices = prod(values[:-1])
    chosen = all(use.type in CHOOSES and _size(use.outputs, dataflow) == matrices for use, _ in uses)
    if values[-1] == 1 or not chosen:
        return None
    because = f"of {values[-1]} singular values one is used"
    return frozenset((made.name, *_gradients(made, dataflow))), because, 0.0


def _sort(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize sorted values of which slices take few from each row."""
    made_shape, uses = _shape(made.outputs, dataflow), list(_uses(made, dataflow, "Neg"))
    if not made_shape or not uses or any(use.type not in SLICES for use, _ in uses):
        return None
    shapes = [_shape(use.outputs, dataflow) for use, _ in uses]
    used = max((shape[-1] if shape else made_shape[-1]) for shape in shapes)
    same_rank = all(shape and len(shape) == len(made_shape) for shape in shapes)
    if not same_rank or used > FEW * made_shape[-1]:
        return None
    because = f"{used} of the {made_shape[-1]} sorted values of each row are used"
    return frozenset((made.name,)), because, 0.0


def _pairs(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize the product of a concatenation of repeated rows: a sum of products of the single rows.

    The product needs each part's width once for each of its rows, and not once for each repetition.
    """
    joined = _source(made, 0, dataflow)
    if joined is None or joined.type != "ConcatV2":
        return None
    parts = [_source(joined, at, dataflow) for at in range(len(joined.sources) - 1)]
    width = _shape(joined.outputs, dataflow)[-1:] or (0,)
    left, rows = 0.0, 0
    for tensor, part in zip(joined.inputs, parts, strict=False):
        shape = _shape((tensor,), dataflow)
        repeated = part is not None and part.type in REPEATS
        before = _size(part.inputs[:1], dataflow) if repeated and part else 0
        if not shape or not width[0]:
            return None
        rows = prod(shape[:-1])
        left += shape[-1] / width[0] * (before / prod(shape) if before else 1.0)
    if left > LEFT:
        return None
    because = f"the single rows need {left:.0%} of the products of {rows:,} repeated ones"
    names = (made.name, joined.name, *_gradients(made, dataflow), *_gradients(joined, dataflow))
    return frozenset(names), because, left


def _after_resize(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize a 1x1 convolution to as many or fewer channels of an image that was enlarged just before.

    Either is linear, and the weights of an interpolation add up to one, so that both orders compute the same.
    """
    kernel, resize = _shape(made.inputs[1:2], dataflow), _source(made, 0, dataflow)
    if kernel[:2] != (1, 1) or resize is None or not resize.type.startswith("Resize"):
        return None
    larger, smaller = _shape(resize.outputs, dataflow), _shape(resize.inputs, dataflow)
    ways = list(_uses(resize, dataflow))
    if len(larger) != len(smaller) or len(ways) > 1 or kernel[3] > kernel[2]:
        return None
    left = max(prod(smaller[1:3]) / prod(larger[1:3]), kernel[3] / kernel[2])
    if left > LEFT:
        return None
    small, large = (" x ".join(map(str, shape[1:3])) for shape in (smaller, larger))
    because = f"it runs on {large} pixels that were enlarged from {small}"
    names = (made.name, resize.name, *_gradients(made, dataflow), *_gradients(resize, dataflow))
    return frozenset(names), because, left


def _diagonal(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize a product with a diagonal matrix that the step itself makes of its diagonal."""
    for at in range(len(made.sources)):
        operand = _source(made, at, dataflow)
        if operand is not None and operand.type.startswith(("MatrixDiag", "Diag")):
            size = _shape(operand.outputs, dataflow)[-1:] or (0,)
            if operand.type in {"DiagPart", "MatrixDiagPart"} or not size[0]:
                continue
            because = f"of the {size[0]:,} values in each row of a factor one is not zero"
            names = (made.name, operand.name, *_gradients(made, dataflow))
            return frozenset(names), because, 1.0 / size[0]
    return None


def _for_slice(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize a repeated tensor of which only slices are used, and those hold few of its values."""
    size, uses = _size(made.outputs, dataflow), [use for use, _ in _uses(made, dataflow)]
    if not size or not uses or any(use.type not in SLICES for use in uses):
        return None
    left = sum(_size(use.outputs, dataflow) for use in uses) / size
    if not 0.0 < left <= FEW:
        return None
    backward = {name for use in uses for name in _gradients(use, dataflow)}
    whole = made.outputs[0]
    summed = (
        user.name
        for one in (dataflow.program.by_name[name] for name in backward)
        if one.outputs[:1] == (whole,)
        for user in dataflow.users(one)
    )
    names = (made.name, *(use.name for use in uses), *backward, *_gradients(made, dataflow), *summed)
    return frozenset(names), f"{left:.0%} of the repeated values are used", left


def _response(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize local response normalization, whose kernel computes a power for each value and its neighbours."""
    names = (made.name, *_gradients(made, dataflow))
    return frozenset(names), "VGG networks reached the same accuracy without it", 0.0


def _softmax(made: Operation, dataflow: Dataflow) -> Found | None:
    """Recognize the softmax of a loss over so many classes that sampling them is meant for it."""
    classes = (made.inputs[0][1] or (0,))[-1] or 0
    if classes < CLASSES:
        return None
    names = (made.name, *_gradients(made, dataflow))
    return frozenset(names), f"the loss has {classes:,} classes", 0.0


FORMS: Mapping[str, Mapping[FormKind, Callable[[Operation, Dataflow], Found | None]]] = MappingProxyType(
    {
        "Svd": {FormKind.LARGEST_SINGULAR_VALUE: _singular_value},
        "TopKV2": {FormKind.FEW_OF_A_SORT: _sort},
        "MatMul": {FormKind.PAIRS_BEFORE_PRODUCT: _pairs, FormKind.PRODUCT_WITH_DIAGONAL: _diagonal},
        "BatchMatMulV2": {FormKind.PRODUCT_WITH_DIAGONAL: _diagonal},
        "Conv2D": {FormKind.CONVOLUTION_AFTER_RESIZE: _after_resize},
        "Tile": {FormKind.REPEATED_FOR_A_SLICE: _for_slice},
        "SparseSoftmaxCrossEntropyWithLogits": {FormKind.LARGE_SOFTMAX: _softmax},
        "SoftmaxCrossEntropyWithLogits": {FormKind.LARGE_SOFTMAX: _softmax},
        "LRN": {FormKind.RESPONSE_NORMALIZATION: _response},
    }
)
"""What to look at, by the type of the operation."""


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
        if user.type in {"Identity", "Cast", *passing}:
            if user.name not in passed and len(passed) < LONGEST:
                passed.add(user.name)
                behind = _uses(user, dataflow, passed=passed)
                yield from ((use, port) for use, _ in behind for port in taken)
        else:
            yield from ((user, port) for port in taken)


def _gradients(made: Operation, dataflow: Dataflow) -> Iterable[str]:
    """Return the operations that compute the gradient of an operation, by their scope.

    TensorFlow gives them the scope of the forward operation, or, where a Python function computes the gradient of
    several, that around it and the name of the type.
    """
    scope, _, own = made.name.rpartition("/")
    within = [one.name for one in dataflow.gradients.get(made.name, ())]
    beside = f"{GRADIENT_SCOPE}{scope}/{own}" if scope else f"{GRADIENT_SCOPE}{own}"
    around = dataflow.gradients.get(scope, ()) if scope else ()
    named = (one.name for one in around if one.name.startswith(beside))
    return dict.fromkeys((*within, *named, *([beside] if beside in dataflow.program.by_name else [])))


def _shape(tensors: Sequence[tuple[str, tuple[int | None, ...] | None]], dataflow: Dataflow) -> tuple[int, ...]:
    """Return the shape of the first tensor with the batch filled in; () is unknown or a scalar."""
    return (dataflow.program.shape(tensors[0][1]) or ()) if tensors else ()


def _size(tensors: Sequence[tuple[str, tuple[int | None, ...] | None]], dataflow: Dataflow) -> int:
    """Return the elements of the first tensor; 0 is unknown."""
    shape = dataflow.program.shape(tensors[0][1]) if tensors else None
    return 0 if shape is None else prod(shape)
