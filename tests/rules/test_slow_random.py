"""slow-random: expensive distributions compared with uniform numbers."""

from tests.rules.kit import *
from tfdoctor.rules.operations.slow_random import NORMAL, REMAINING, check

GPU = Hardware(DeviceKind.GPU, "x")


def example(
    kind: str = "TruncatedNormal",
    time_ms: float = 10.0,
    total_ms: float = 30.0,
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """Truncated normal noise takes a third of the compute time."""
    drawn = OperationTime(name=f"model/noise/{kind}", type=kind, ms=time_ms, layer="noise", at=script(14))
    name = "gradient_tape/model/dense/MatMul"
    rest = took(name, "MatMul", total_ms - time_ms)
    return check(Operations((drawn, rest)), hardware)


sick = example
healthy = described("The step draws uniform noise.", example, "RandomUniform", 2.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for kind in sorted(REMAINING):
        told[f"on a CPU the time of the replacement of {kind} remains"] = example(kind)
    for kind in ("StatelessMultinomial", "RandomGamma", "Multinomial"):
        told[f"{kind} on a CPU"] = example(kind)
    told["on a GPU no ratio was measured"] = example(hardware=GPU)
    for kind in ("RandomUniform", "StatelessRandomUniformV2", "RandomUniformInt"):
        told[f"{kind} is not expensive"] = example(kind, 60.0, 100.0)
    told["a twentieth of the compute time, and less"] = [example(time_ms=ms, total_ms=100.0) for ms in (5.0, 4.9)]
    told["a step of unnamed work"] = applied(check, UNNAMED_WORK, GPU)
    for kind in sorted(NORMAL):
        told[f"trap: a diffusion model needs much {kind}"] = [example(kind, ms, 100.0) for ms in (60.0, 4.9)]
