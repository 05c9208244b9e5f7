"""The programs that XLA compiled, as a trace's plane /host:metadata carries them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from tfdoctor.trace.hlo_proto import kinds
from tfdoctor.trace.model import Trace

METADATA = "/host:metadata"
PROTO = "Hlo Proto"

PROGRAM = re.compile(r"\((\d+)\)$")
"""The program's fingerprint at the end of "jit_train_step(12190760917235803885)"."""

FACTORS = 2
"""Of a product: the operands before any others."""

HOST_SPACE = 5
"""The memory space of the host's memory in layouts: S(5)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array: its type, sizes, and how it is stored; a tuple is several of them."""

    dtype: str  # "bf16", "f32"
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] = ()  # dimensions, the one that varies fastest first
    tiles: tuple[tuple[int, ...], ...] = ()  # T(8,128)(2,1): ((8, 128), (2, 1))
    space: int = 0  # of memory; 5 is the host's


@dataclass(frozen=True, slots=True)
class HloMatmul:
    """The sizes of a dot or a convolution as one matrix product, ``batch`` times m x k by k x n."""

    batch: int
    m: int
    n: int
    k: int
    window: int = 1  # positions of a convolution's kernel, each with k input features
    groups: int = 1  # of a grouped convolution

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved alone; the gradient of such weights has a group per channel."""
        return self.groups > 1 and (self.k == 1 or self.groups == self.n)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a computation."""

    name: str
    opcode: str
    shapes: tuple[Shape, ...]  # of the result; several for a tuple
    operands: tuple[str, ...]
    calls: tuple[int, ...]  # ids of the computations that it calls
    op_name: str = ""  # the framework's: "jit(train_step)/transpose(jvp(dense))/dot_general"
    matmul: HloMatmul | None = None


@dataclass(frozen=True, slots=True)
class HloProgram:
    """One compiled module; its computations by id."""

    name: str
    entry: int
    computations: dict[int, tuple[Instruction, ...]]
    donates: bool  # inputs are reused for outputs, as weights are by an update
    files: tuple[str, ...] = ()  # of Python, whose functions it was traced from

    def instructions(self) -> Iterator[Instruction]:
        """Yield the instructions of all computations."""
        for computation in self.computations.values():
            yield from computation

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """Yield an instruction and all that it calls."""
        yield instruction
        for call in instruction.calls:
            for inner in self.computations.get(call, ()):
                yield from self.inside(inner)


def programs(trace: Trace) -> dict[str, HloProgram]:
    """Return the trace's programs by name, with and without their fingerprint; not the damaged ones."""
    found: dict[str, HloProgram] = {}
    for plane in trace.planes:
        for kind in plane.types if plane.name == METADATA else ():
            data = kind.stats.get(PROTO)
            program = parse(data) if isinstance(data, bytes) else None
            if program is not None:
                found[kind.name] = found[PROGRAM.sub("", kind.name)] = program
    return found


def parse(data: bytes) -> HloProgram | None:
    """Read a serialized HloProto; None when it is damaged, or TensorFlow does not describe it."""
    known = kinds()
    if known is None:
        return None
    try:
        module = known.hlo.FromString(data).hlo_module
    except DecodeError:
        return None
    return HloProgram(
        module.name,
        module.entry_computation_id,
        {c.id: _computation(c, known.types) for c in module.computations},
        bool(module.input_output_alias.entries),
        tuple(module.stack_frame_index.file_names),
    )


def _computation(computation: Any, types: dict[int, str]) -> tuple[Instruction, ...]:  # noqa: ANN401 - a message
    shapes = {one.id: _shapes(one.shape, types) for one in computation.instructions}
    names = {one.id: one.name for one in computation.instructions}
    return tuple(
        Instruction(
            one.name,
            one.opcode,
            shapes[one.id],
            tuple(names.get(at, "") for at in one.operand_ids),
            tuple(one.called_computation_ids),
            one.metadata.op_name,
            _product(one, [shapes.get(at, ()) for at in one.operand_ids], shapes[one.id]),
        )
        for one in computation.instructions
    )


def _shapes(shape: Any, types: dict[int, str]) -> tuple[Shape, ...]:  # noqa: ANN401 - a message
    if shape.tuple_shapes:
        return tuple(inner for part in shape.tuple_shapes for inner in _shapes(part, types))
    layout = shape.layout
    tiles = tuple(tuple(tile.dimensions) for tile in layout.tiles)
    dtype, dims = types.get(shape.element_type, "").lower(), tuple(shape.dimensions)
    return (Shape(dtype, dims, tuple(layout.minor_to_major), tiles, layout.memory_space),)


def _product(
    one: Any,  # noqa: ANN401 - a message
    operands: list[tuple[Shape, ...]],
    result: tuple[Shape, ...],
) -> HloMatmul | None:
    arrays = [*operands[:2], result]
    if one.opcode not in ("dot", "convolution") or len(operands) < FACTORS or not all(arrays):
        return None
    left, right = operands[0][0].dims, operands[1][0].dims
    try:
        if one.opcode == "dot":
            return _dot(one.dot_dimension_numbers, left, right)
        return _convolution(one, right, result[0].dims)
    except IndexError:  # dimensions that the shapes do not have: damage
        return None


def _dot(numbers: Any, left: tuple[int, ...], right: tuple[int, ...]) -> HloMatmul:  # noqa: ANN401 - a message
    batch, inner = list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)
    other = [*numbers.rhs_batch_dimensions, *numbers.rhs_contracting_dimensions]
    return HloMatmul(
        _size(left, batch),
        _size(left, [at for at in range(len(left)) if at not in (*batch, *inner)]),
        _size(right, [at for at in range(len(right)) if at not in other]),
        _size(left, inner),
    )


def _convolution(one: Any, kernel: tuple[int, ...], result: tuple[int, ...]) -> HloMatmul:  # noqa: ANN401 - a message
    numbers = one.convolution_dimension_numbers
    outputs = result[numbers.output_feature_dimension]
    where = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    return HloMatmul(
        1,
        _size(result, where),
        outputs,
        kernel[numbers.kernel_input_feature_dimension],
        _size(kernel, list(numbers.kernel_spatial_dimensions)),
        max(1, one.feature_group_count, one.batch_group_count),
    )


def _size(dims: tuple[int, ...], chosen: list[int]) -> int:
    size = 1
    for at in chosen:
        size *= dims[at]
    return size
