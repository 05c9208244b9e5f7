"""optimizer-overhead: small tensors only, in an optimizer's name scope."""

from tests.rules.kit import *
from tfdoctor.rules.operations import optimizer_overhead
from tfdoctor.rules.operations.optimizer_overhead import Limits, check


def example(
    *rows: OperationTime,
    number: int = 1000,
    host_ms: float = 0.0,
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:
    """A thousand small operations take a fifth of the compute time of a GPU."""
    small = [OperationTime(name=f"adam/Mul_{n}", type="Mul", ms=0.003) for n in range(number)]
    operations = Operations.training(15.0, *(rows or small))
    step = Breakdown.of(device=operations.total_ms, host=host_ms)
    return check(OptimizerWork.measure(operations), operations, hardware, step)


sick = example


def healthy() -> Verdict:
    """The optimizer runs ten small operations."""
    return example(number=10)


CPU, TPU = Hardware(DeviceKind.CPU, "x"), Hardware(DeviceKind.TPU, "x")


def row(ms: float, size: int | None = 64, name: str = "adam/Mul", kind: str = "Mul") -> OperationTime:
    tensors = (("float32", (size,)),) if size else ()
    graph = Operation(name=name, type=kind, inputs=tensors) if size else None
    return OperationTime(name=name, type=kind, ms=ms, operation=graph)


def test_both_sides_of_each_limit() -> None:
    """Updates of large variables are no overhead; of unknown size the short ones are small."""
    shares = (example(row(ms)) for ms in (15 * Limits().share, 0.74))
    sizes = (example(row(3.0, size)) for size in (int(Limits().values), 10001))
    unknown = OperationTime(name="adam_1/Mul", type="ResourceApplyAdam", ms=3.0)
    numbers = (example(replace(unknown, calls=calls)) for calls in (3.0 / Limits().each_ms, 599.0))
    for both in (shares, sizes, numbers):
        assert kinds(*both) == [Finding, Healthy]


def test_it_is_a_ceiling() -> None:
    finding = as_finding(example(row(3.0)))
    assert effects(finding)[0][2:] == (0.0, Bound.AT_MOST)
    assert finding.remedies[0].edit_id == "jit-compile"


def many(calls: float) -> OperationTime:
    graph = Operation(name="adam/Mul", type="Mul", inputs=(("float32", (1,)),))
    return OperationTime(name="adam/Mul", type="Mul", ms=3.0, calls=calls, operation=graph)


def test_on_a_cpu_only_many_are_reported() -> None:
    enough, few = (example(many(calls), hardware=CPU) for calls in (Limits().on_cpu, 999.0))
    assert all("3.00 ms" in summary for summary in (as_finding(enough).summary, as_healthy(few).summary))


def test_on_a_cpu_a_part_of_the_hosts_time_belongs_to_them() -> None:
    """5,000 of 5,001 operations, in steps of which 60 ms pass between operations."""
    finding = as_finding(example(many(5000.0), hardware=CPU, host_ms=60.0))
    host = next(of for part, of, *_ in effects(finding) if part is Stage.HOST)
    assert host == near(60.0 * 5000 / 5001)
    assert [remedy.edit_id for remedy in finding.remedies] == [""]


def test_only_an_optimizers_scope_counts() -> None:
    for name in ("model/sgd_like/Mul", "adam", "model/adamant/Mul"):
        assert isinstance(example(row(3.0, name=name)), NotApplicable)


def test_on_a_tpu_xla_has_fused_them() -> None:
    operations = Operations.training(15.0, row(3.0))
    work, step = OptimizerWork.measure(operations), Breakdown.of(device=15.0)
    assert isinstance(applied(optimizer_overhead, work, operations, TPU, step), Healthy)
