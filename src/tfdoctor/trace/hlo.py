"""The programs that XLA compiled, from a trace's plane /host:metadata."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from tfdoctor.trace.hlo_proto import hlo_types
from tfdoctor.trace.model import Trace

METADATA = "/host:metadata"
PROTO = "Hlo Proto"

PROGRAM = re.compile(r"\((\d+)\)$")
"""The program's fingerprint at the end of "jit_train_step(12190760917235803885)"."""

MATMUL_OPERANDS = 2
"""The first operands of a dot or a convolution are its factors."""

HOST_SPACE = 5
"""The number of the host's memory space in layouts: S(5)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The type, the sizes and the layout of an array; a tuple has several."""

    dtype: str  # "bf16", "f32"
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] = ()  # dimensions, fastest-varying first
    tiles: tuple[tuple[int, ...], ...] = ()  # T(8,128)(2,1): ((8, 128), (2, 1))
    space: int = 0  # memory space; 5 is the host's


@dataclass(frozen=True, slots=True)
class HloMatmul:
    """The sizes of a dot or a convolution as a matmul: ``batch`` times m x k by k x n."""

    batch: int
    m: int
    n: int
    k: int
    window: int = 1  # positions of a convolution's kernel, each with k input features
    groups: int = 1  # of a grouped convolution

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved alone; the gradient of such weights has one group per channel."""
        return self.groups > 1 and (self.k == 1 or self.groups == self.n)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of a computation; `calls` are the computations that it runs."""

    name: str
    opcode: str
    shapes: tuple[Shape, ...]  # of the result; several for a tuple
    operands: tuple[str, ...]
    calls: tuple[int, ...]  # ids of the computations that it calls
    op_name: str = ""  # the framework's: "jit(train_step)/transpose(jvp(dense))/dot_general"
    matmul: HloMatmul | None = None


@dataclass(frozen=True, slots=True)
class HloProgram:
    """A compiled module, with its computations by id."""

    name: str
    entry: int
    computations: dict[int, tuple[Instruction, ...]]
    donates: bool  # buffers of inputs are reused for outputs, as by weight updates
    files: tuple[str, ...] = ()  # Python files with the functions that it was traced from

    def instructions(self) -> Iterator[Instruction]:
        """Yield the instructions of all computations."""
        for computation in self.computations.values():
            yield from computation

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """Yield an instruction and, recursively, the instructions that it calls."""
        yield instruction
        for call in instruction.calls:
            for inner in self.computations.get(call, ()):
                yield from self.inside(inner)


def programs(trace: Trace) -> dict[str, HloProgram]:
    """Return the trace's intact programs by name, with and without fingerprint."""
    by_name: dict[str, HloProgram] = {}
    for plane in trace.planes:
        for kind in plane.types if plane.name == METADATA else ():
            data = kind.stats.get(PROTO)
            program = parse(data) if isinstance(data, bytes) else None
            if program is not None:
                by_name[kind.name] = by_name[PROGRAM.sub("", kind.name)] = program
    return by_name


def parse(data: bytes) -> HloProgram | None:
    """Read a serialized HloProto; None if it is damaged, or TensorFlow has no description of it."""
    description = hlo_types()
    if description is None:
        return None
    try:
        module = description.message.FromString(data).hlo_module
    except DecodeError:
        return None
    return HloProgram(
        module.name,
        module.entry_computation_id,
        {
            computation.id: _computation(computation, description.element_types)
            for computation in module.computations
        },
        bool(module.input_output_alias.entries),
        tuple(module.stack_frame_index.file_names),
    )


def _computation(computation: Any, types: dict[int, str]) -> tuple[Instruction, ...]:  # noqa: ANN401 - a message
    shapes = {message.id: _shapes(message.shape, types) for message in computation.instructions}
    names = {message.id: message.name for message in computation.instructions}
    return tuple(
        Instruction(
            message.name,
            message.opcode,
            shapes[message.id],
            tuple(names.get(operand, "") for operand in message.operand_ids),
            tuple(message.called_computation_ids),
            message.metadata.op_name,
            _matmul(
                message,
                [shapes.get(operand, ()) for operand in message.operand_ids],
                shapes[message.id],
            ),
        )
        for message in computation.instructions
    )


def _shapes(shape: Any, types: dict[int, str]) -> tuple[Shape, ...]:  # noqa: ANN401 - a message
    if shape.tuple_shapes:
        return tuple(inner for part in shape.tuple_shapes for inner in _shapes(part, types))
    layout = shape.layout
    tiles = tuple(tuple(tile.dimensions) for tile in layout.tiles)
    dtype, dims = types.get(shape.element_type, "").lower(), tuple(shape.dimensions)
    return (Shape(dtype, dims, tuple(layout.minor_to_major), tiles, layout.memory_space),)


def _matmul(
    instruction: Any,  # noqa: ANN401 - a message
    operands: list[tuple[Shape, ...]],
    result: tuple[Shape, ...],
) -> HloMatmul | None:
    arrays = [*operands[:2], result]
    if (
        instruction.opcode not in ("dot", "convolution")
        or len(operands) < MATMUL_OPERANDS
        or not all(arrays)
    ):
        return None
    left, right = operands[0][0].dims, operands[1][0].dims
    try:
        if instruction.opcode == "dot":
            return _dot(instruction.dot_dimension_numbers, left, right)
        return _convolution(instruction, right, result[0].dims)
    except IndexError:  # dimensions that the shapes lack: damage
        return None


def _dot(numbers: Any, left: tuple[int, ...], right: tuple[int, ...]) -> HloMatmul:  # noqa: ANN401 - a message
    batch, inner = list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)
    not_n = [*numbers.rhs_batch_dimensions, *numbers.rhs_contracting_dimensions]
    return HloMatmul(
        _size(left, batch),
        _size(left, [axis for axis in range(len(left)) if axis not in (*batch, *inner)]),
        _size(right, [axis for axis in range(len(right)) if axis not in not_n]),
        _size(left, inner),
    )


def _convolution(instruction: Any, kernel: tuple[int, ...], result: tuple[int, ...]) -> HloMatmul:  # noqa: ANN401 - a message
    numbers = instruction.convolution_dimension_numbers
    outputs = result[numbers.output_feature_dimension]
    positions = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    return HloMatmul(
        1,
        _size(result, positions),
        outputs,
        kernel[numbers.kernel_input_feature_dimension],
        _size(kernel, list(numbers.kernel_spatial_dimensions)),
        max(1, instruction.feature_group_count, instruction.batch_group_count),
    )


def _size(dims: tuple[int, ...], axes: list[int]) -> int:
    size = 1
    for axis in axes:
        size *= dims[axis]
    return size
