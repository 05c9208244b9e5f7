"""deterministic-operations: what switches them on, which operations count, and both sides of the limits."""

from tests.rules.kit import *
from tfdoctor.rules.execution.deterministic_operations import Limits, check
from tfdoctor.rules.execution.deterministic_operations.determinism import Determinism

T4 = Hardware(DeviceKind.GPU, "Tesla T4", "Tensor Core", bandwidth_bytes_s=320e9, peak_flop_s=65e12)
LEAST_MS = 2 * 32 * 128 * 128 * 128 * 9 * 64 / 65e12 * 1e3


def example(
    *rows: OperationTime, time_ms: float = 60.0, hardware: Hardware = T4,
    determinism: Determinism = Determinism(by_call=True, at=script(5)),
) -> Verdict:  # fmt: skip
    """The gradient of a filter takes 60 of 70 ms, at 2 % of the peak rate of a T4."""
    kind = "Conv2DBackpropFilter"
    images = ("float16", (32, 128, 128, 64))
    graph = Operation(name=f"gradient_tape/model/conv2d/{kind}", type=kind, inputs=(images,))
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=script(9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    operations = training_step(70.0, *(rows or (row,)), rest="ReluGrad")
    return check(determinism, operations, hardware)


def row(kind: str, ms: float) -> OperationTime:
    return took(f"gradient_tape/bias/{kind}", kind, ms)


sick = example
healthy = described("Nothing asks for deterministic operations.", example, determinism=Determinism())


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["half of the peak"] = [example(time_ms=LEAST_MS / Limits().reached * factor) for factor in (1.01, 0.99)]
    told["a twentieth of the step, and less"] = example(row("BiasAddGrad", 3.51)), example(row("BiasAddGrad", 3.4))
    told["a MatMul, of which one kernel exists"] = example(row("MatMul", 60.0))
    told["a variable is named"] = example(determinism=Determinism(variable="TF_DETERMINISTIC_OPS"))
    operations = training_step(70.0, row("BiasAddGrad", 60.0))
    cpu = Hardware(DeviceKind.CPU, "x")
    told["on a CPU nothing is said"] = applied(check, Determinism(by_call=True), operations, cpu)

    def measured(*aids: str, **environment: str) -> Determinism:
        program = Program(settings=RunSettings(debugging=tuple(map(DebugAid, aids))))
        return Determinism.measure(recording(manifest=manifest(environment=environment)), program)

    told["nothing, a variable that is off, and another aid"] = measured()
    told[...] = measured(TF_DETERMINISTIC_OPS="0"), measured("check_numerics")
    told["a variable"] = measured(TF_DETERMINISTIC_OPS="True"), measured(TF_CUDNN_DETERMINISTIC="1")
    told["the call, beside the variable"] = measured("op_determinism", TF_DETERMINISTIC_OPS="1")
    told["a trace of another profiler says nothing of settings"] = lambda: Determinism.measure(recording(), None)
