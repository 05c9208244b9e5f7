"""recompilation: compilations that continue during training."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.recompilation import check

LINE = script(3)


def example(
    compiling: CompileTime = CompileTime(20, 20, 10, 250.0, 0.0, 346.0), host_ms: float = 268.0,
    program: Program | None = None, padding: SequencePadding | None = None,
) -> Verdict:  # fmt: skip
    """Every batch has another length, and XLA compiles in 20 of 20 steps."""
    return check(compiling, Breakdown.of(host=host_ms, device=4.0), program, padding)


def tensor(shape: str) -> str:
    return f"TensorSpec(shape={shape}, dtype=tf.int32, name=None)"


def fed(element: str, *more: Dataset, rows: int | None = None, drops: bool = False) -> Program:
    """A program whose second dataset feeds the run."""
    given = DatasetParameters(drop_remainder=drops, batch_size=rows)
    batch = Dataset(id=1, kind="_BatchDataset", parameters=given, element=element, at=LINE)
    last = Dataset(id=2, kind="_PrefetchDataset", inputs=(1,), element=element)
    return Program(datasets=(batch, last, *more), feeds=2)


sick = example
healthy = described("XLA compiled before the traced steps.", example, CompileTime(0, 20, 0), 0.5)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["trap: a trace that holds the first calls"] = [
        example(CompileTime(steps, 20, late, 15.0), 20.0) for steps, late in ((2, 1), (1, 1), (9, 0))
    ]
    told["compiling in long steps alone promises no saving"] = example(CompileTime(3, 20, 2, 0.0, 0.0, 300.0), 1.0)
    for share in (0.93, 0.2, 0.1, 0.01):
        compiling = CompileTime(5, 20, 3, 2.5, 0.0, 850.0, share, frozenset((2, 5, 11, 17)))
        told[f"trap: steady steps say little of {share} of the traced time"] = example(compiling, 3.0)
    for number in (3, 2):
        once = CompileTime(1, 20, 0, 0.0, 0.0, 800.0, 0.5, frozenset({7}), number, number * 1_200.0)
        told[f"one traced step compiles, and {number} steps of the run take as long"] = example(once, 1.0)
    in_all = CompileTime(3, 20, 2, 0.0, 0.0, 800.0, 0.5, frozenset({3, 7, 15}), 5, 6_000.0)
    told["three traced steps compile, and five of the run take as long"] = example(in_all, 1.0)
    steady = CompileTime(1, 20, 0, 2.0, 0.0, 800.0, 0.05, frozenset(), 9, 9_000.0)
    told["trap: a step that is no longer than the others compiles"] = example(steady, 3.0)


@golden_cases
def test_remedies(told: Cases) -> None:
    """Trap: drop_remainder does not help with sequences of different lengths."""
    for name, element in (
        ("batches of any size", tensor("(None, 20)")),
        ("pairs of batches of any size", f"({tensor('(None, 20)')}, {tensor('(None,)')})"),
        ("sequences of any length, in batches of any size", f"({tensor('(None, None)')}, {tensor('(None,)')})"),
        ("sequences of any length", f"({tensor('(16, None)')}, {tensor('(16,)')})"),
        ("fixed shapes", tensor("(16, 20)")),
        ("unrecorded elements", ""),
        ("unknown shapes", tensor("<unknown>")),
        ("ragged tensors", "RaggedTensorSpec(TensorShape([None]), tf.int32, 0)"),
        ("sparse tensors", f"({tensor('(None, 2)')}, SparseTensorSpec(TensorShape([2, 3]), tf.int32))"),
    ):
        told[name] = example(program=fed(element))
    padded = Dataset(id=1, kind="_PaddedBatchDataset", element=tensor("(16, None)"), at=LINE)
    told["the line that pads"] = example(program=Program(datasets=(padded,), feeds=1))
    told["a run without a pipeline, and an unknown one"] = example(program=Program()), example()
    element = tensor("(None, 20)")
    other = Dataset(id=7, kind="_BatchDataset", parameters=DatasetParameters(drop_remainder=False))
    told["the line is that of the batch that feeds the run"] = example(program=fed(element, other))
    told["a batch that drops the remainder"] = example(program=fed(element, other, drops=True))
    padding = SequencePadding((PaddedInput(200, ((50,) * 31 + (200,),)),))
    told["the code has the recorded sizes"] = example(program=fed(tensor("(16, None)"), rows=32), padding=padding)
