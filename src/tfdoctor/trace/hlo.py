"""The programs that XLA compiled, from a trace's plane /host:metadata, and the sizes of their matmuls.

On a GPU XLA replaces most matmuls and convolutions by calls of cuBLAS, cuBLASLt and cuDNN: custom calls whose
target names the function. The dimensions of a matmul are then in the call's backend_config, as JSON; those of a
convolution, of its gradients too, are those of the forward convolution.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import prod
from types import SimpleNamespace
from typing import Any

from google.protobuf.message import DecodeError

from tfdoctor.terms.record import Record, field
from tfdoctor.trace.model import Trace
from tfdoctor.trace.names import clean
from tfdoctor.trace.wire import hlo_types

METADATA = "/host:metadata"
PROTO = "Hlo Proto"

# The program's fingerprint at the end of "jit_train_step(12190760917235803885)".
PROGRAM = re.compile(r"\((\d+)\)$")
# Parts of the paths of files that are not the user's.
INSTALLED = ("site-packages/", "dist-packages/", "<frozen ", "/lib/python3")
DEEPEST = 50  # Calls within calls that are followed: a fusion in a condition in a loop has three
HOST_SPACE = 5  # The number of the host's memory space in layouts: S(5)
MATMUL_OPERANDS = 2  # The first operands of a dot or a convolution are its factors
# The beginning of the targets of matmuls: __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8.
CUBLAS = "__cublas$"


class Pass(StrEnum):
    """Which part of a training step a convolution computes."""

    FORWARD = "forward"
    INPUT = "gradient of the input"
    FILTER = "gradient of the filter"


# The targets of convolutions (xla/service/gpu/cublas_cudnn.cc).
CUDNN = {
    "__cudnn$convForward": Pass.FORWARD,
    "__cudnn$convForwardGraph": Pass.FORWARD,
    "__cudnn$convBiasActivationForward": Pass.FORWARD,
    "__cudnn$convBackwardInput": Pass.INPUT,
    "__cudnn$convBackwardFilter": Pass.FILTER,
}


class Shape(Record):
    """The type, the sizes and the layout of an array; a tuple has several."""

    dtype: str  # "bf16", "f32"
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] = ()  # dimensions, fastest-varying first
    tiles: tuple[tuple[int, ...], ...] = ()  # T(8,128)(2,1): ((8, 128), (2, 1))
    space: int = 0  # memory space; 5 is the host's


class HloMatmul(Record):
    """The sizes of a dot or a convolution as a matmul: ``batch`` times m x k by k x n."""

    batch: int
    m: int
    n: int
    k: int
    window: int = 1  # positions of a convolution's kernel, each with k input features
    groups: int = 1  # of a grouped convolution
    dtype: str = ""  # of the first factor: "bf16"
    convolves: Pass | None = None  # None: it is a matmul; gradients have the sizes of the forward pass

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved alone; the gradient of such weights has one group per channel."""
        return self.groups > 1 and (self.k == 1 or self.groups == self.n)


class Instruction(Record):
    """An instruction of a computation; `calls` are the computations that it runs."""

    name: str
    opcode: str
    shapes: tuple[Shape, ...]  # of the result; several for a tuple
    operands: tuple[str, ...]
    calls: tuple[int, ...]  # ids of the computations that it calls
    op_name: str = ""  # the framework's: "jit(train_step)/transpose(jvp(dense))/dot_general"
    matmul: HloMatmul | None = None
    target: str = ""  # of a custom call: "__cublas$lt$matmul"
    at: tuple[str, int] | None = None  # the innermost line of the user's source


class HloProgram(Record):
    """A compiled module, with its computations by id."""

    name: str
    entry: int
    computations: dict[int, tuple[Instruction, ...]]
    donates: bool  # buffers of inputs are reused for outputs, as by weight updates
    files: tuple[str, ...] = ()  # Python files with the functions that it was traced from
    # The instructions of each computation in the order in which they run; empty where not recorded.
    schedule: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def instructions(self) -> Iterator[Instruction]:
        """Yield the instructions of all computations."""
        for computation in self.computations.values():
            yield from computation

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """Yield an instruction and all that it calls, in the order of the calls, each computation once."""
        seen, waiting = set[int](), [(instruction, 0)]
        while waiting:
            inner, depth = waiting.pop()
            yield inner
            called = [call for call in dict.fromkeys(inner.calls) if call not in seen]
            if called and depth < DEEPEST:
                seen.update(called)
                found = [one for call in called for one in self.computations.get(call, ())]
                waiting += [(one, depth + 1) for one in reversed(found)]


class SourceLines(Record):
    """Finds the user's line in the stack frames of a module; numbers in the table begin with 1.

    JAX writes the frames of a program's functions without its own; those of other installed packages are skipped
    here. Older programs have one file and line for each instruction instead.
    """

    table: Any
    known: dict[int, tuple[str, int] | None] = field(default_factory=dict)  # by frame

    def of(self, metadata: Any) -> tuple[str, int] | None:  # noqa: ANN401 - a message
        """Return the innermost file and line of the user's that an instruction's metadata names."""
        frame, passed, place = metadata.stack_frame_id, list[int](), None
        frames, places = self.table.stack_frames, self.table.file_locations
        while 0 < frame <= len(frames) and frame not in self.known:
            place = self._file(places, frames[frame - 1].file_location_id)
            self.known[frame] = place  # ends a circle of frames, too
            passed.append(frame)
            frame = 0 if place else frames[frame - 1].parent_frame_id
        place = place or self.known.get(frame)
        self.known.update(dict.fromkeys(passed, place))
        return place or _of_user(metadata.source_file, metadata.source_line)

    def _file(self, places: Any, number: int) -> tuple[str, int] | None:  # noqa: ANN401 - messages
        if not 0 < number <= len(places):
            return None
        place, names = places[number - 1], self.table.file_names
        known = 0 < place.file_name_id <= len(names)
        return _of_user(names[place.file_name_id - 1], place.line) if known else None


def _of_user(path: str, line: int) -> tuple[str, int] | None:
    outside = any(part in path for part in INSTALLED)
    return (clean(path), line) if path and line and not outside else None


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
    described = hlo_types()
    if described is None:
        return None
    kind, element_types = described
    try:
        module = kind.FromString(data).hlo_module
    except DecodeError:
        return None
    places = SourceLines(module.stack_frame_index)
    instructions = [one for computation in module.computations for one in computation.instructions]
    names = {instruction.id: clean(instruction.name) for instruction in instructions}
    sequences = module.schedule.sequences.items()
    return HloProgram(
        clean(module.name),
        module.entry_computation_id,
        {one.id: _computation(one, element_types, places) for one in module.computations},
        bool(module.input_output_alias.entries),
        tuple(map(clean, module.stack_frame_index.file_names)),
        {number: tuple(names[at] for at in one.instruction_ids if at in names) for number, one in sequences},
    )


def _computation(computation: Any, types: dict[int, str], places: SourceLines) -> tuple[Instruction, ...]:  # noqa: ANN401
    shapes = {message.id: _shapes(message.shape, types) for message in computation.instructions}
    names = {message.id: clean(message.name) for message in computation.instructions}
    return tuple(
        Instruction(
            names[message.id],
            message.opcode,
            shapes[message.id],
            tuple(names.get(operand, "") for operand in message.operand_ids),
            tuple(message.called_computation_ids),
            clean(message.metadata.op_name),
            _matmul(message, [shapes.get(operand, ()) for operand in message.operand_ids], shapes[message.id]),
            message.custom_call_target,
            places.of(message.metadata),
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


def _matmul(instruction: Any, operands: Sequence[tuple[Shape, ...]], result: tuple[Shape, ...]) -> HloMatmul | None:  # noqa: ANN401
    """Return the sizes of a dot, a convolution or a library's call; None for any other instruction."""
    arrays = [*operands[:MATMUL_OPERANDS], result]
    if len(operands) < MATMUL_OPERANDS or not all(arrays):
        return None
    left, right, product = (shapes[0] for shapes in arrays)
    target = instruction.custom_call_target
    convolved = Pass.FORWARD if instruction.opcode == "convolution" else CUDNN.get(target)
    # A gradient has the sizes of the forward convolution, one of whose arrays is its result.
    others = {Pass.FORWARD: (right, product), Pass.INPUT: (right, left), Pass.FILTER: (product, right)}
    try:
        if instruction.opcode == "dot":
            return _dot(instruction.dot_dimension_numbers, left, right)
        if target.startswith(CUBLAS):
            return _dot(_gemm(instruction.backend_config), left, right)
        return _convolution(instruction, left, *others[convolved], convolved) if convolved else None
    except (IndexError, KeyError, TypeError, ValueError):  # dimensions that the shapes lack: damage
        return None


def _gemm(config: bytes) -> Any:  # noqa: ANN401 - as the message of a dot
    """Return the dimension numbers of a matmul from the settings of its call."""
    written = json.loads(config)
    numbers = written.get("gemm_backend_config", written)["dot_dimension_numbers"]
    names = ("lhs_batch", "lhs_contracting", "rhs_batch", "rhs_contracting")
    return SimpleNamespace(
        **{f"{name}_dimensions": [int(axis) for axis in numbers.get(f"{name}_dimensions", ())] for name in names}
    )


def _dot(numbers: Any, left: Shape, right: Shape) -> HloMatmul:  # noqa: ANN401 - a message
    batch, inner = list(numbers.lhs_batch_dimensions), list(numbers.lhs_contracting_dimensions)
    not_n = [*numbers.rhs_batch_dimensions, *numbers.rhs_contracting_dimensions]
    m = _size(left, [axis for axis in range(len(left.dims)) if axis not in (*batch, *inner)])
    n = _size(right, [axis for axis in range(len(right.dims)) if axis not in not_n])
    return HloMatmul(_size(left, batch), m, n, _size(left, inner), dtype=left.dtype)


def _convolution(instruction: Any, factor: Shape, kernel: Shape, output: Shape, convolved: Pass) -> HloMatmul:  # noqa: ANN401
    numbers = instruction.convolution_dimension_numbers
    m = _size(output, [numbers.output_batch_dimension, *numbers.output_spatial_dimensions])
    n, k = output.dims[numbers.output_feature_dimension], kernel.dims[numbers.kernel_input_feature_dimension]
    window = _size(kernel, list(numbers.kernel_spatial_dimensions))
    groups = max(1, instruction.feature_group_count, instruction.batch_group_count)
    return HloMatmul(1, m, n, k, window, groups, factor.dtype, convolved)


def _size(shape: Shape, axes: Iterable[int]) -> int:
    return prod(shape.dims[axis] for axis in axes)
