"""The cases of padding-waste: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.padding_waste import LengthWork, check
from tfdoctor.rules.input.padding_waste.batch_source import BatchMaker, BatchSource


def example(
    *inputs: PaddedInput,
    rows: tuple[OperationTime, ...] = (),
    source: BatchSource = BatchSource(BatchMaker.DATASET),
    breakdown: Breakdown | None = None,
    loops: LoopWork | None = None,
    program: Program | None = None,
    overhead: PythonOverhead | None = None,
) -> Verdict:
    """Sequences of 50 words are padded to 200 for a matmul of 30 ms."""
    tensors = (("float32", (32, 200, 256)), ("float32", (256, 256)))
    graph = Operation(name="model/dense/MatMul", type="MatMul", inputs=tensors)
    matmul = OperationTime(name=graph.name, type="MatMul", ms=30.0, operation=graph)
    padding = SequencePadding(inputs or (of_length(50),))
    work = LengthWork.measure(padding, Operations(rows or (matmul,)), loops, program)
    return check(padding, source, work, breakdown or Breakdown.of(device=30.0), program, overhead)


def of_length(length: int) -> PaddedInput:
    """Build an input whose sequences are padded to the longest one of 200 positions."""
    return PaddedInput(200, ((length,) * 31 + (200,),))


sick = example


def healthy() -> Verdict:
    """Sequences of 190 words are padded to 200."""
    return example(of_length(190))
