"""unvectorized-operation: the loops of vectorized_map in the step and in the pipeline, and what is none."""

from tests.rules.kit import *
from tfdoctor.rules.operations.unvectorized_operation import FallbackLoop, FallbackLoops, Limits, check

NAME = "loop_body/adjust_contrast"


RUNNING = GraphLoop(name=f"{NAME}/pfor/while", iterations=64.0, operations=0.0, ms=0.0)


IN_STEP = FallbackLoop(name=NAME, type="AdjustContrastv2", at=Location("train.py", 13), loop=RUNNING)


def example(
    *loops: FallbackLoop, scheduling_ms: float = 6.0, kind: DeviceKind = DeviceKind.CPU,
    pipeline: InputPipeline | None = None, step: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """The contrast of 64 images is changed one by one, for 6 of 10 ms."""
    found = FallbackLoops(loops or (IN_STEP,), scheduling_ms)
    return check(found, step or Breakdown.of(host=7.0, device=3.0), Device(kind, 1, 1), pipeline)


sick = example


def healthy() -> Verdict:
    """The loop takes 0.1 ms."""
    return example(scheduling_ms=0.1)


def test_both_sides_of_the_share() -> None:
    assert kinds(*(example(scheduling_ms=ms) for ms in (10 * Limits().share, 0.49))) == [Finding, Healthy]


def test_the_step_loses_what_starting_the_loops_operations_takes() -> None:
    finding = as_finding(example())
    assert [(part, bound) for part, _, _, bound in effects(finding)] == [(Stage.HOST, Bound.AT_MOST)]
    assert finding.effects[0].subject == StepWork.SCHEDULING
    assert finding.remedies[0].at == Location("train.py", 13)
    assert "AdjustContrastv2" in finding.summary


AUGMENT = StageTime.of("Root::ParallelMapV2", 30.0)
IN_DATA = FallbackLoop(name=NAME, type="AdjustContrastv2", stage=AUGMENT, stage_ms=27.0)


PIPELINE = InputPipeline.of(AUGMENT)


def test_a_stage_that_limits_the_pipeline_loses_all_but_its_other_operations() -> None:
    waits, keeps_up = Breakdown.of(input=25.0, device=5.0), Breakdown.of(device=30.0)
    verdict = example(IN_DATA, scheduling_ms=0.0, pipeline=PIPELINE, step=waits)
    assert scales(verdict) == {AUGMENT.path: near(0.1)}
    assert effects(verdict)[0][0] is Stage.INPUT
    assert isinstance(example(IN_DATA, scheduling_ms=0.0, pipeline=PIPELINE, step=keeps_up), Healthy)


def test_a_step_that_hides_the_pipelines_loop_is_to_lose_both() -> None:
    """Without the loop in the step alone, the step waits for the stage."""
    step = Breakdown.of(host=27.0, device=3.0)
    finding = as_finding(example(IN_STEP, IN_DATA, scheduling_ms=24.0, pipeline=PIPELINE, step=step))
    assert {one[0] for one in effects(finding)} == {Stage.HOST, Stage.INPUT}
    assert Measure("time in such loops, per step", ms(24.0)) in finding.evidence  # not the stage's


def test_on_a_gpu_the_loop_is_named_and_not_priced() -> None:
    row = OperationTime(name=f"{NAME}/pfor/while/body/Mul", type="Mul", ms=0.2)
    loop = FallbackLoop(name=NAME, type="AdjustContrastv2", rows=(row,))
    finding = as_finding(example(loop, scheduling_ms=0.0, kind=DeviceKind.GPU))
    assert (finding.effects, finding.severity) == ((), None)


def found(*operations: dict[str, Any]) -> tuple[FallbackLoop, ...]:
    """The loops of a recorded graph that a stage of the pipeline is seen to run."""
    ran = recording({"graphs": [{"name": "f", "kind": "dataset", "operations": operations}]})
    inside = {f"{NAME}/pfor/while/body/_1/Mul": 1.0, "Cast": 2.0}
    pipeline = InputPipeline.of(StageTime.of("Root::Map", 9.0, operations=inside))
    return FallbackLoops.measure(ran, LoopWork(()), None, pipeline).loops


REPLACED = graph_operation(NAME, "AdjustContrastv2")
WHILE = graph_operation(f"{NAME}/pfor/while", "StatelessWhile")


def test_a_loop_has_the_operation_that_it_replaces_and_the_stage_that_runs_it() -> None:
    (loop,) = found(REPLACED, WHILE)
    assert (loop.type, loop.stage_ms) == ("AdjustContrastv2", 7.0)


def test_other_loops_are_the_users_own() -> None:
    """Trap: a loop in the function that is vectorized, whose vectorized form is a loop as well."""
    assert found(graph_operation(NAME, "StatelessWhile"), WHILE) == ()
    assert found(REPLACED, graph_operation("map/while", "StatelessWhile")) == ()
    assert found(WHILE) == ()
