"""optimizer-overhead: small tensors only, in an optimizer's name scope."""

from tests.rules.kit import *
from tfdoctor.rules.operations.optimizer_overhead import Limits, check

CPU, TPU = Hardware(DeviceKind.CPU, "x"), Hardware(DeviceKind.TPU, "x")


def example(
    *rows: OperationTime, number: int = 1000, host_ms: float = 0.0,
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:  # fmt: skip
    """A thousand small operations take a fifth of the compute time of a GPU."""
    small = [took(f"adam/Mul_{n}", "Mul", 0.003) for n in range(number)]
    operations = training_step(15.0, *(rows or small))
    step = Breakdown.of(device=operations.total_ms, host=host_ms)
    return check(OptimizerWork.measure(operations), operations, hardware, step)


def row(ms: float, size: int | None = 64, name: str = "adam/Mul", kind: str = "Mul") -> OperationTime:
    tensors = (("float32", (size,)),) if size else ()
    graph = Operation(name=name, type=kind, inputs=tensors) if size else None
    return took(name, kind, ms, operation=graph)


def many(calls: float) -> OperationTime:
    graph = Operation(name="adam/Mul", type="Mul", inputs=(("float32", (1,)),))
    return took("adam/Mul", "Mul", 3.0, calls=calls, operation=graph)


sick = example
healthy = described("The optimizer runs ten small operations.", example, number=10)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["three small operations take a fifth of the compute time of a GPU"] = example(*[row(1.0)] * 3)
    told["a twentieth of the compute time, and less"] = example(row(0.75)), example(row(0.74))
    told["updates of large variables are no overhead"] = example(row(3.0, 10_000)), example(row(3.0, 10_001))
    unknown = took("adam_1/Mul", "ResourceApplyAdam", 3.0)
    told["those of unknown size are small if short"] = example(replace(unknown, calls=3.0 / Limits().each_ms))
    told[...] = example(replace(unknown, calls=599.0))
    told["on a CPU only many are reported"] = [example(many(calls), hardware=CPU) for calls in (1000.0, 999.0)]
    told["on a CPU with 5,000 of the host's 5,001 operations"] = example(many(5000.0), hardware=CPU, host_ms=60.0)
    for name in ("model/sgd_like/Mul", "adam", "model/adamant/Mul"):
        told[f"{name} is not in an optimizer's scope"] = example(row(3.0, name=name))
    operations = training_step(15.0, row(3.0))
    work, step = OptimizerWork.measure(operations), Breakdown.of(device=15.0)
    told["on a TPU XLA has fused them"] = applied(check, work, operations, TPU, step)
