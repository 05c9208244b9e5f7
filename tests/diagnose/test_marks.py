"""Which findings are about which work, by their effects on a stage, a part, an operation or an input's stage."""

from tfdoctor.diagnose.summary.timeline import WorkMarks
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Stage, StepWork


def found(name: str, *effects: Effect) -> Result:
    finding = Finding(summary="", evidence=(), remedies=(), effects=effects)
    rule = Rule.named(name, Topic.OPERATIONS, name, own=False, general=False)
    return Result(rule=rule, outcome=finding)


def test_a_whole_stage_is_all_of_its_work_and_its_part_of_the_step() -> None:
    marks = WorkMarks.of([found("input-bound", Effect(Stage.INPUT, 0.0))])
    assert marks.of_part("input") == ("input-bound",)
    assert marks.of_work(Stage.INPUT, "Map") == ("input-bound",)
    assert marks.of_part("device") == marks.of_work(Stage.DEVICE, "Map") == ()


def test_an_operation_is_known_by_its_name_or_as_one_of_several() -> None:
    norm = Effect(Stage.DEVICE, 0.5, "bn", ms(2.0), parts=("bn/mul", "bn/sub"))
    marks = WorkMarks.of([found("unfused-batch-norm", norm), found("hot", Effect(Stage.DEVICE, 0.0))])
    assert marks.of_work(Stage.DEVICE, "bn/mul") == ("hot", "unfused-batch-norm")
    assert marks.of_work(Stage.DEVICE, "conv", "kernel") == marks.of_part("device") == ("hot",)


def test_what_is_neither_operation_nor_stage_is_its_part_of_the_step_alone() -> None:
    marks = WorkMarks.of([found("retracing", Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(1.0)))])
    assert (marks.of_part("host"), marks.of_work(Stage.HOST, "launch")) == (("retracing",), ())


def test_what_gets_longer_by_a_change_is_not_what_is_wrong() -> None:
    slower = found("float32-matmul", Effect(Stage.DEVICE, 1.2, "bn", ms(2.0)))
    healthy = Result(rule=slower.rule, outcome=Healthy(summary="fine"))
    assert WorkMarks.of([slower, healthy]) == WorkMarks()
