"""Operations' shapes as the trace contains them, and how much an operation computes and moves by its shapes.

For runs without a program record: the profiler writes the shapes of an operation's inputs with it at higher tracer
levels (`shape`, "(float[32,64,64,3];float[3,3,3,128])").
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.operation_types import CONVOLUTIONS, DEPTHWISE, MATMULS, base_type
from tfdoctor.facts.run.program import Operation, Program, Tensor
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.timeline.host_events import operation_label
from tfdoctor.trace.names import STREAM_PREFIX

# A tensor as the profiler writes it; "?" or other texts instead of sizes are unknown.
TENSOR_TEXT = re.compile(r"([a-z_]\w*)\[([\d,]*)\]")
# TensorFlow's short names in these texts that differ from those of its Python types.
TYPES = {"float": "float32", "half": "float16", "double": "float64"}
Key = tuple[str, str]  # Name and type of an operation
Sizes = tuple[int, ...]


class TracedShapes(Record):
    """Operations with the shapes of their inputs; those of XLA's programs also with their results."""

    operations: Mapping[Key, Operation] = field(default_factory=dict)

    @classmethod
    def measure(cls, device: Device, xla_operations: XlaOperations) -> Self:
        """Read the shapes with the device's work, and XLA's programs."""
        inputs_of: dict[Key, tuple[Tensor, ...] | None] = {}
        for key, text in _shape_texts(device.busiest) if device.busiest else ():
            inputs = parse(text)
            if inputs_of.setdefault(key, inputs) != inputs:
                inputs_of[key] = None  # its runs disagree
        known = {(one.name, one.type): one for one in xla_operations.operations.values()}
        for (name, kind), inputs in inputs_of.items():
            if inputs:
                known[name, kind] = Operation(name=name, type=kind, inputs=inputs)
        return cls(known)


def parse(text: str) -> tuple[Tensor, ...] | None:
    """Return the tensors of a `shape` text; None when the text is another, or any tensor is unknown."""
    tensors = []
    for part in text.strip("()").split(";"):
        match = TENSOR_TEXT.fullmatch(part.strip())
        if not match:
            return None
        tensors.append((TYPES.get(match[1], match[1]), tuple(int(size) for size in match[2].split(",") if size)))
    return tuple(tensors)


def _shape_texts(plane: Plane) -> Iterator[tuple[Key, str]]:
    for line in work_lines(plane) or plane.lines:
        if line.name.startswith(STREAM_PREFIX):
            for event in map(line.event, line.stats.having("shape").tolist()):
                texts = (str(event.stats.get(key) or "") for key in ("tf_op", "annotation", "level 0"))
                text = next((text for text in texts if ":" in text), "").split("#")[0]
                name, colon, kind = text.rpartition(":")
                if colon:
                    yield (name, base_type(kind)), str(event.stats["shape"])
            continue
        events, shapes = line.stats.values("shape")
        for number, shape in dict.fromkeys(zip(line.kind[events].tolist(), shapes, strict=True)):
            if label := operation_label(line.types[number]):
                yield (label[0], base_type(label[1])), str(shape)


def nbytes_of(operation: Operation | None, program: Program) -> float | None:
    """Return the bytes of all operands and results."""
    sizes = [program.nbytes(t) for t in (*operation.inputs, *operation.outputs)] if operation else []
    return float(sum(size or 0 for size in sizes)) if sizes and None not in sizes else None


def flops_of(kind: str, operation: Operation | None, program: Program) -> float | None:
    """Return 2 x the multiplications of a matmul or convolution; None when a size is not known."""
    if operation is None or kind == "XlaDotV2" or kind not in CONVOLUTIONS | DEPTHWISE | MATMULS:
        return None  # XlaDotV2 does not name its dimensions
    inputs = [program.shape(shape) for _, shape in operation.inputs]
    outputs = [program.shape(shape) for _, shape in operation.outputs]
    if kind == "Einsum":
        return einsum_flops(operation.attrs.equation, inputs)
    if kind not in MATMULS:
        # 2 x output positions x the kernel; the gradients multiply as often as the forward pass. The kernel holds
        # the input channels of one group only, so this holds for grouped convolutions too.
        (kernel,) = (outputs[:1] if "Filter" in kind else inputs[1:2]) or (None,)
        (output,) = (inputs[2:3] if "Backprop" in kind else outputs[:1]) or (None,)
        if not kernel or not output:
            return None
        channels = output[1] if operation.attrs.data_format.startswith("NC") else output[-1]
        return 2.0 * (prod(output) / channels if channels else 0) * prod(kernel)
    a, b = inputs[:2] if len(inputs) > 1 else (None, None)
    if not a or not b or min(len(a), len(b)) < 2:  # noqa: PLR2004 - matrices
        return None
    turned = operation.attrs.transpose_a if kind == "MatMul" else operation.attrs.adj_x
    (result,) = outputs[:1] or (None,)
    return 2.0 * prod(result) * (a[-2] if turned else a[-1]) if result else shared_dimension_flops(a, b)


def shared_dimension_flops(a: Sizes, b: Sizes) -> float | None:
    """Return the FLOPs of a matmul from its factors' shapes alone, either of which may be transposed.

    None when the factors share several dimensions of different sizes, so that the result is ambiguous.
    """
    shared = {size for size in a[-2:] if size in b[-2:]}
    if a[:-2] != b[:-2] or len(shared) != 1:  # for broadcast batches, the result's size is needed
        return None
    inner = shared.pop()
    return 2.0 * prod(a[:-2]) * (prod(a[-2:]) / inner) * (prod(b[-2:]) / inner) * inner


def einsum_flops(equation: str, shapes: list[Sizes | None]) -> float | None:
    """Return 2 x the product of all indices' sizes of a two-operand einsum ("abc,cde->abde").

    A one-operand einsum multiplies nothing: 0. None for other equations or unknown sizes; batch
    dimensions under an ellipsis are counted once, with the larger of their sizes.
    """
    terms = re.fullmatch(r"([a-zA-Z.]+)(?:,([a-zA-Z.]+))?->([a-zA-Z.]*)", equation.replace(" ", ""))
    operands = [term for term in terms.groups()[:2] if term] if terms else []
    if not operands or len(operands) != len(shapes) or any(shape is None for shape in shapes):
        return None
    if len(operands) == 1:
        return 0.0
    sizes: dict[str, int] = {}
    for term, shape in zip(operands, shapes, strict=True):
        letters, known = [*term], shape or ()
        if "..." in term:  # its indices are numbered from the right
            before, after = term.split("...")
            hidden = len(known) - len(before) - len(after)
            letters = [*before, *(f"...{hidden - at}" for at in range(hidden)), *after]
        if len(letters) != len(known):
            return None
        named = dict(zip(letters, known, strict=True))
        sizes |= {index: max(size, sizes.get(index, 1)) for index, size in named.items()}
    return 2.0 * prod(sizes.values())
