"""The compiled program of a synthetic run, as a TPU's profile stores it: a serialized HloProto."""

from typing import Any

from scripts.synthetic.operation import Kind, Op, Shape
from tfdoctor.trace.wire import hlo_types

FORWARD, BY_INPUT, BY_WEIGHTS = "forward", "gradient of the input", "gradient of the weights"

OPCODES = {Kind.MATMUL: "dot", Kind.CONVOLUTION: "convolution", Kind.DEPTHWISE: "convolution"}
"""XLA's opcodes for matmuls and convolutions; those of other operations do not matter."""


def program(name: str, operations: tuple[Op, ...], precision: str) -> bytes:
    """Return the program: each operation is a fusion, such as "fusion.3", which contains one instruction.

    Raises:
        ValueError: TensorFlow, which describes HloProto, is not installed.
    """
    types = hlo_types()
    if types is None:
        raise ValueError("TensorFlow, which describes HLO, is not installed")
    message, element_types = types
    proto = message()
    proto.hlo_module.name = name
    entry = proto.hlo_module.computations.add(name="main", id=1)
    proto.hlo_module.entry_computation_id = 1
    dtype = _dtype(precision)
    element = next(n for n, name in element_types.items() if name.lower() == dtype)
    for number, op in enumerate(operations, start=1):
        body = proto.hlo_module.computations.add(name=f"fused_computation.{number}", id=100 + number)
        _body(body, op, element)
        fusion = entry.instructions.add(name=f"fusion.{number}", opcode="fusion", id=1000 + number)
        fusion.called_computation_ids.append(body.id)
        fusion.metadata.op_name = op.name
        _shape(fusion.shape, op.result, element)
    return bytes(proto.SerializeToString(deterministic=True))


def _dtype(precision: str) -> str:
    return "bf16" if precision == "bf16" else "f32"


def _body(body: Any, op: Op, element: int) -> None:  # noqa: ANN401 - a message
    """Add the operands and the instruction that uses them."""
    left, right = factors(op)
    for position, shape in enumerate((left, right)):
        operand = body.instructions.add(name=f"param_{position}", opcode="parameter", id=position + 1)
        _shape(operand.shape, shape, element)
    opcode = OPCODES.get(op.kind, "add")
    instruction = body.instructions.add(name=f"{opcode}.1", opcode=opcode, id=3, operand_ids=[1, 2])
    instruction.metadata.op_name = op.name
    _shape(instruction.shape, op.result, element)
    if opcode == "dot":
        _contract(instruction.dot_dimension_numbers, op)
    elif opcode == "convolution":
        _convolve(instruction, op)


def direction(op: Op) -> str:
    """Return whether an operation is a layer's forward pass or one of its gradients."""
    if "gradient_tape" not in op.name:
        return FORWARD
    weights = op.type.endswith("Filter") or op.name.endswith("MatMul_1")
    return BY_WEIGHTS if weights else BY_INPUT


def factors(op: Op) -> tuple[Shape, Shape]:
    """Return both operands in HLO's order: for a convolution the image, then the kernel."""
    first, second = op.operands[0], op.operands[-1]
    swapped = op.kind is not Kind.MATMUL and direction(op) == BY_INPUT
    return (second, first) if swapped else (first, second)


def depth(op: Op) -> int:
    """Return the length of the contracted dimension, for each position of the window."""
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


def _convolve(instruction: Any, op: Op) -> None:  # noqa: ANN401 - a message
    """Set a convolution's dimension numbers: the weights' gradient sums over the batch."""
    numbers = instruction.convolution_dimension_numbers
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
        _group(instruction, op)


def _group(instruction: Any, op: Op) -> None:  # noqa: ANN401 - a message
    """Set a depthwise convolution's groups: one for each channel, or of the batch for the weights' gradient."""
    channels = factors(op)[0][-1]
    if direction(op) == BY_WEIGHTS:
        instruction.batch_group_count = channels
        instruction.convolution_dimension_numbers.output_feature_dimension = 2  # of (3, 3, channels, 1)
    else:
        instruction.feature_group_count = channels
        instruction.convolution_dimension_numbers.kernel_input_feature_dimension = 3


def _shape(shape: Any, dims: Shape, element: int) -> None:  # noqa: ANN401 - a message
    """Write a shape with the layout of a TPU: channels minor, tiles of 8 x 128."""
    shape.element_type = element
    shape.dimensions.extend(dims)
    shape.layout.minor_to_major.extend(reversed(range(len(dims))))
    shape.layout.tiles.add(dimensions=[8, 128])
