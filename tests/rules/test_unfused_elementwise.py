"""unfused-elementwise: on GPUs, without what belongs to other rules."""

from tests.rules.kit import *
from tfdoctor.rules.operations.unfused_elementwise import check


def example(
    total: float = 10.0, number: int = 20, scope: str = "model", layer: str = "", kind: DeviceKind = DeviceKind.GPU
) -> Verdict:
    """Twenty elementwise operations take a third of the compute time of a GPU."""
    rows = [took(f"{scope}/mul_{n}", "Mul", total / number, layer=layer) for n in range(number)]
    operations = training_step(30.0, *rows)
    program = Program(layers=(Layer(name="bn", kind="BatchNormalization"),))
    work = OptimizerWork.measure(operations)
    return check(operations, work, Hardware(kind, "example"), program)


sick = example
healthy = described("The step runs two elementwise operations.", example, 1.0, 2)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["ten operations take a third of the time, and nine"] = [example(number=number) for number in (10, 9)]
    told["a tenth of the compute time, and less"] = example(3.0 + 1e-09, number=10), example(2.9, number=10)
    told["on a CPU only a trial shows the gain"] = example(kind=DeviceKind.CPU)
    rows = training_step(30.0)
    work, tpu = OptimizerWork.measure(rows), Hardware(DeviceKind.TPU, "x")
    told["on a TPU XLA fuses them"] = applied(check, rows, work, tpu)
    told["batch normalizations belong to another rule"] = example(layer="bn")
    told["optimizers belong to another rule"] = example(scope="adam")
    facts = (UNNAMED_WORK, OptimizerWork.measure(UNNAMED_WORK), Hardware(DeviceKind.GPU, "x"), None)
    told["a step of unnamed work"] = applied(check, *facts)
