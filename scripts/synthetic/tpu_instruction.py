"""What a TPU's profile says of an instruction once, in its event type."""

from dataclasses import dataclass

from xprof.protobuf import op_metrics_pb2

from scripts.synthetic.operation import Kind, Op, Shape
from scripts.synthetic.xspace import U64, Plane, Ref

PROGRAM_ID = 12_190_760_917_235_803_885

CATEGORY = {Kind.CONVOLUTION: "convolution fusion", Kind.MATMUL: "convolution fusion",
            Kind.DEPTHWISE: "convolution fusion"}  # fmt: skip
"""What XLA calls an operation that multiplies; all others are loop fusions, but for..."""

OTHERS = {Kind.LAYOUT: "data formatting", Kind.POOLING: "reduce-window"}

SEARCHING = "select-and-scatter"
"""What it calls the gradient of max pooling."""


def layout(shape: Shape, precision: str) -> str:
    """Return a shape as XLA writes it, channels minor: "bf16[32,32,32,144]{3,2,1,0:T(8,128)(2,1)}"."""
    value, tile = ("bf16", "T(8,128)(2,1)") if precision == "bf16" else ("f32", "T(8,128)")
    order = ",".join(map(str, reversed(range(len(shape)))))
    return f"{value}[{','.join(map(str, shape))}]{{{order}:{tile}}}"


def hlo(number: int, op: Op, precision: str) -> str:
    """Return an operation's instruction."""
    operands = ", ".join(f"{layout(s, precision)} %p.{i}" for i, s in enumerate(op.operands))
    kind = "kOutput" if op.kind in CATEGORY else "kLoop"
    body = f"kind={kind}, calls=%fused_computation.{number}"
    return f"%fusion.{number} = {layout(op.result, precision)} fusion({operands}), {body}"


def category(op: Op) -> str:
    """Return the category in which a profile counts an operation."""
    return SEARCHING if op.type == "MaxPoolGrad" else (CATEGORY | OTHERS).get(op.kind, "loop fusion")


def hbm_traffic(nbytes: int) -> bytes:
    """Return a serialized MemoryAccessBreakdown: half read, half written, all of it HBM."""
    breakdown = op_metrics_pb2.MemoryAccessBreakdown()
    for operation in (1, 2):  # read, write
        breakdown.memory_accessed.add(operation_type=operation, memory_space=1, bytes_accessed=nbytes // 2)
    return bytes(breakdown.SerializeToString())


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a TPU's profile says of an instruction once, in its event type."""

    name: str
    text: str
    tf_op: str
    category: str
    shape: str
    line: int
    flops: int
    nbytes: int

    def add(self, plane: Plane, symbol: int) -> int:
        """Add the event type; without program and symbol (not 0), xprof ignores it."""
        return plane.type(
            self.text, self.name, program_id=U64(PROGRAM_ID), symbol_id=symbol,
            hlo_category=Ref(self.category), tf_op=Ref(self.tf_op), flops=U64(self.flops),
            model_flops=U64(self.flops), bytes_accessed=U64(self.nbytes),
            raw_bytes_accessed=U64(self.nbytes), memory_access_breakdown=hbm_traffic(self.nbytes),
            source=Ref(f"train.py:{self.line}"), shape_with_layout=self.shape,
        )  # fmt: skip
