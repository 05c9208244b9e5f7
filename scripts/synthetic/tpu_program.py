"""The compiled program of a synthetic run, as a TPU's profile keeps it: a serialized HloProto."""

from typing import Any

from scripts.synthetic.operation import Kind, Op, Shape
from tfdoctor.trace.hlo_proto import kinds

FORWARD, BY_INPUT, BY_WEIGHTS = "forward", "gradient of the input", "gradient of the weights"

OPCODES = {Kind.MATMUL: "dot", Kind.CONVOLUTION: "convolution", Kind.DEPTHWISE: "convolution"}
"""What XLA calls the products; the rest matters to nobody."""


def program(name: str, operations: tuple[Op, ...], precision: str) -> bytes:
    """Return the program: each product is a fusion, "fusion.3", that holds one dot or convolution.

    Raises:
        ValueError: no TensorFlow is installed that describes HloProto.
    """
    known = kinds()
    if known is None:
        raise ValueError("TensorFlow, which describes HLO, is not installed")
    proto = known.hlo()
    proto.hlo_module.name = name
    entry = proto.hlo_module.computations.add(name="main", id=1)
    proto.hlo_module.entry_computation_id = 1
    element = next(n for n, kind in known.types.items() if kind.lower() == _element(precision))
    for number, op in enumerate(operations, start=1):
        body = proto.hlo_module.computations.add(
            name=f"fused_computation.{number}", id=100 + number
        )
        _body(body, op, element)
        fusion = entry.instructions.add(name=f"fusion.{number}", opcode="fusion", id=1000 + number)
        fusion.called_computation_ids.append(body.id)
        fusion.metadata.op_name = op.name
        _shape(fusion.shape, op.result, element)
    return bytes(proto.SerializeToString(deterministic=True))


def _element(precision: str) -> str:
    return "bf16" if precision == "bf16" else "f32"


def _body(body: Any, op: Op, element: int) -> None:  # noqa: ANN401 - a message
    """Add the operands and what is computed of them."""
    left, right = factors(op)
    for at, shape in enumerate((left, right)):
        operand = body.instructions.add(name=f"param_{at}", opcode="parameter", id=at + 1)
        _shape(operand.shape, shape, element)
    opcode = OPCODES.get(op.kind, "add")
    one = body.instructions.add(name=f"{opcode}.1", opcode=opcode, id=3, operand_ids=[1, 2])
    one.metadata.op_name = op.name
    _shape(one.shape, op.result, element)
    if opcode == "dot":
        _contract(one.dot_dimension_numbers, op)
    elif opcode == "convolution":
        _convolve(one, op)


def direction(op: Op) -> str:
    """Return which of a layer's three products an operation is."""
    if "gradient_tape" not in op.name:
        return FORWARD
    weights = op.type.endswith("Filter") or op.name.endswith("MatMul_1")
    return BY_WEIGHTS if weights else BY_INPUT


def factors(op: Op) -> tuple[Shape, Shape]:
    """Return both operands as HLO has them: of a convolution the image, then the kernel."""
    first, second = op.operands[0], op.operands[-1]
    swapped = op.kind is not Kind.MATMUL and direction(op) == BY_INPUT
    return (second, first) if swapped else (first, second)


def depth(op: Op) -> int:
    """Return what a product sums over, per position of its window."""
    left, right = factors(op)
    if op.kind is Kind.DEPTHWISE:
        return 1
    if direction(op) == BY_WEIGHTS:
        return left[0]  # the batch
    return left[-1] if op.kind is Kind.MATMUL else right[-2 if direction(op) == FORWARD else -1]


def _contract(numbers: Any, op: Op) -> None:  # noqa: ANN401 - a message
    left, right = {FORWARD: (1, 0), BY_INPUT: (1, 1), BY_WEIGHTS: (0, 0)}[direction(op)]
    numbers.lhs_contracting_dimensions.append(left)
    numbers.rhs_contracting_dimensions.append(right)


def _convolve(one: Any, op: Op) -> None:  # noqa: ANN401 - a message
    """Number a convolution's dimensions: the weights' gradient sums over the batch."""
    numbers = one.convolution_dimension_numbers
    kernel_in, kernel_out, spatial = {
        FORWARD: (2, 3, (0, 1)),
        BY_INPUT: (3, 2, (0, 1)),
        BY_WEIGHTS: (0, 3, (1, 2)),
    }[direction(op)]
    numbers.kernel_input_feature_dimension = kernel_in
    numbers.kernel_output_feature_dimension = kernel_out
    numbers.kernel_spatial_dimensions.extend(spatial)
    numbers.output_batch_dimension, numbers.output_feature_dimension = 0, 3
    numbers.output_spatial_dimensions.extend((1, 2))
    if op.kind is Kind.DEPTHWISE:
        _group(one, op)


def _group(one: Any, op: Op) -> None:  # noqa: ANN401 - a message
    """Let a depthwise convolution have a group per channel, its weights' gradient by groups of the batch."""
    channels = factors(op)[0][-1]
    if direction(op) == BY_WEIGHTS:
        one.batch_group_count = channels
        one.convolution_dimension_numbers.output_feature_dimension = 2  # of (3, 3, channels, 1)
    else:
        one.feature_group_count = channels
        one.convolution_dimension_numbers.kernel_input_feature_dimension = 3


def _shape(shape: Any, dims: Shape, element: int) -> None:  # noqa: ANN401 - a message
    """Write a shape with the layout of a TPU: channels minor, tiles of 8 x 128."""
    shape.element_type = element
    shape.dimensions.extend(dims)
    shape.layout.minor_to_major.extend(reversed(range(len(dims))))
    shape.layout.tiles.add(dimensions=[8, 128])
