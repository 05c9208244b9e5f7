"""unvectorized-operation: the loops of vectorized_map in the step and in the pipeline, and what is none."""

from tests.rules.kit import *
from tfdoctor.rules.operations.unvectorized_operation import check
from tfdoctor.rules.operations.unvectorized_operation.fallback_loops import FallbackLoop, FallbackLoops

NAME = "loop_body/adjust_contrast"
RUNNING = GraphLoop(name=f"{NAME}/pfor/while", iterations=64.0, operations=0.0, ms=0.0)
IN_STEP = FallbackLoop(name=NAME, type="AdjustContrastv2", at=script(13), loop=RUNNING)
AUGMENT = stage_time("Root::ParallelMapV2", 30.0)
IN_DATA = FallbackLoop(name=NAME, type="AdjustContrastv2", stage=AUGMENT, stage_ms=27.0)
REPLACED = graph_operation(NAME, "AdjustContrastv2")
WHILE = graph_operation(f"{NAME}/pfor/while", "StatelessWhile")


def example(
    *loops: FallbackLoop, scheduling_ms: float = 6.0, kind: DeviceKind = DeviceKind.CPU,
    pipeline: InputPipeline | None = None, step: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """The contrast of 64 images is changed one by one, for 6 of 10 ms."""
    found = FallbackLoops(loops or (IN_STEP,), scheduling_ms)
    return check(found, step or Breakdown.of(host=7.0, device=3.0), Device(kind, 1, 1), pipeline)


def found(*operations: dict[str, Any]) -> tuple[FallbackLoop, ...]:
    """The loops of a recorded graph that a stage of the pipeline is seen to run."""
    ran = recording({"graphs": [{"name": "f", "kind": "dataset", "operations": operations}]})
    inside = {f"{NAME}/pfor/while/body/_1/Mul": 1.0, "Cast": 2.0}
    pipeline = InputPipeline.of(stage_time("Root::Map", 9.0, operations=inside))
    return FallbackLoops.measure(ran, LoopWork(()), None, pipeline).loops


sick = example
healthy = described("The loop takes 0.1 ms.", example, scheduling_ms=0.1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = example(scheduling_ms=0.5), example(scheduling_ms=0.49)
    in_data = partial(example, IN_DATA, scheduling_ms=0.0, pipeline=InputPipeline.of(AUGMENT))
    told["a stage that limits it keeps its operations"] = in_data(step=Breakdown.of(input=25.0, device=5.0))
    told["a pipeline that keeps up"] = in_data(step=Breakdown.of(device=30.0))
    both = partial(example, IN_STEP, IN_DATA, scheduling_ms=24.0, pipeline=InputPipeline.of(AUGMENT))
    told["a step hides the pipeline's loop, but would wait for the stage"] = both(
        step=Breakdown.of(host=27.0, device=3.0)
    )
    row = took(f"{NAME}/pfor/while/body/Mul", "Mul", 0.2)
    loop = FallbackLoop(name=NAME, type="AdjustContrastv2", rows=(row,))
    told["on a GPU the loop is named and not priced"] = example(loop, scheduling_ms=0.0, kind=DeviceKind.GPU)
    (loop,) = found(REPLACED, WHILE)
    told["a loop has the operation that it replaces, and the stage's time"] = (loop.type, loop.stage_ms)
    told["trap: a loop in the function, whose vectorized form is a loop as well"] = found(
        *(graph_operation(NAME, "StatelessWhile"), WHILE)
    )
    told[...] = found(*(REPLACED, graph_operation("map/while", "StatelessWhile"))), found(*(WHILE,))
