"""The instructions of XLA's programs as operations with shapes, types and lines, as facts expect them."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Operation, Tensor
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.trace.hlo import PROGRAM, HloMatmul, HloProgram, Instruction, Pass, Shape

# Names of types as tensors have them, by XLA's.
TYPES = {
    "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64", "pred": "bool",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip

# The ends of TensorFlow's types of the same computation.
GRADIENT = {Pass.FORWARD: "", Pass.INPUT: "BackpropInput", Pass.FILTER: "BackpropFilter"}
# Opcodes that read or write a part of an array: its size says nothing about the bytes that are moved.
PARTIAL = frozenset({"dynamic-slice", "dynamic-update-slice", "gather", "scatter", "slice"})
IDLE = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast"})  # Opcodes that no kernel runs


class XlaOperations(Record):
    """The instructions as operations, by the fingerprint of their program and their name."""

    operations: Mapping[tuple[str, str], Operation] = field(default_factory=dict)

    @classmethod
    def measure(cls, xla_programs: XlaPrograms) -> Self:
        """Convert the instructions of all programs that have a fingerprint."""
        operations = {}
        for module, program in xla_programs.programs.items():
            fingerprint = PROGRAM.search(module)
            fused = {call for one in program.instructions() if one.opcode == "fusion" for call in one.calls}
            for number, computation in program.computations.items() if fingerprint else ():
                shapes = {instruction.name: instruction.shapes for instruction in computation}
                for instruction in computation if number not in fused else ():
                    if fingerprint and instruction.opcode not in IDLE:
                        operations[fingerprint[1], instruction.name] = operation(program, instruction, shapes)
        return cls(operations)


def operation(program: HloProgram, instruction: Instruction, shapes: Mapping[str, tuple[Shape, ...]]) -> Operation:
    """Return an instruction as an operation; ``shapes`` are those of its computation's instructions by name."""
    inner = list(program.inside(instruction))
    named = instruction.op_name or next((one.op_name for one in inner if one.op_name), "")
    at = instruction.at or next((one.at for one in inner if one.at), None)
    kind = named.rpartition("/")[2] or instruction.opcode
    kind = f"{kind} (fused)" if instruction.opcode == "fusion" else kind
    read = [shape for operand in instruction.operands for shape in shapes.get(operand, ())]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    inputs, outputs = (
        tuple((TYPES.get(shape.dtype, shape.dtype), shape.dims) for shape in of)
        for of in (read, instruction.shapes)
    )
    matmuls = [one.matmul for one in inner if one.matmul]
    if len(matmuls) == 1:
        kind, inputs, outputs = _multiplying(matmuls[0], instruction.shapes[0])
    elif PARTIAL & {one.opcode for one in inner}:
        inputs, outputs = (("float32", None),), ()
    name = f"{named}/{instruction.name}" if named else instruction.name
    return Operation(name, kind, inputs, outputs, at=Location(*at) if at else None, compiled=True)


def _multiplying(matmul: HloMatmul, result: Shape) -> tuple[str, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a matmul or convolution in TensorFlow's form, with all positions in one dimension."""
    dtype, made = TYPES.get(matmul.dtype, matmul.dtype), TYPES.get(result.dtype, result.dtype)
    if matmul.convolves is None:
        batch = (matmul.batch,) if matmul.batch > 1 else ()
        left, right = (*batch, matmul.m, matmul.k), (*batch, matmul.k, matmul.n)
        kind = "BatchMatMulV2" if batch else "MatMul"
        return kind, ((dtype, left), (dtype, right)), ((made, (*batch, matmul.m, matmul.n)),)
    kind = "DepthwiseConv2dNative" if matmul.depthwise else "Conv2D"
    features = matmul.k * matmul.groups
    read, written = (dtype, (1, 1, matmul.m, features)), (dtype, (1, 1, matmul.m, matmul.n))
    kernel, sizes = (dtype, (1, matmul.window, matmul.k, matmul.n)), ("int32", (4,))
    inputs, outputs = {
        Pass.FORWARD: ((read, kernel), (written,)),
        Pass.INPUT: ((sizes, kernel, written), (read,)),
        Pass.FILTER: ((read, sizes, written), (kernel,)),
    }[matmul.convolves]
    return kind + GRADIENT[matmul.convolves], inputs, tuple((made, dims) for _, dims in outputs)
