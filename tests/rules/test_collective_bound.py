"""collective-bound: the exchange, separated from waiting where the trace allows."""

from tests.replicas import EACH, NCCL, STEPS, examine, replica
from tests.rules.kit import *
from tfdoctor.rules.scale import collective_bound
from tfdoctor.rules.scale.collective_bound import check


def example(device: float, collective: float, replicas: Replicas = Replicas()) -> Verdict:
    return check(Breakdown.of(device=device, collective=collective), None, None, replicas)


def both(first: float, exchange: float = 1.0) -> object:
    return examine(collective_bound, replica(first, 12, exchange), replica(12, 12, exchange)).outcome


sick = described("An all-reduce of 5 ms follows 15 ms of compute.", example, 15.0, 5.0)
healthy = described("An all-reduce of which 0.5 ms are exposed.", example, 19.5, 0.5)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a tenth of the step, and less"] = both(12, 2.0), both(12, 1.9)
    told["the NCCL kernel runs for 5 ms on the fast device, 4 of them because the other one is late"] = both(8)
    one = examine(collective_bound, replica(8, 12))
    told["with one device the summary says that waiting is included"] = one.outcome, one.saving
    rows: list[Row] = []
    for at in range(0, STEPS * EACH, EACH):
        rows += [("kernel", at + 1, at + 18), (NCCL, at + 2, at + 17)]
    streams = line("Stream #14(Kernel)", *rows[::2]), line("Stream #20(Kernel)", *rows[1::2])
    told["hidden collectives cost nothing"] = examine(collective_bound, v100(*streams)).outcome
    kernels = [("kernel", at + 1, at + 12) for at in range(0, STEPS * EACH, EACH)]
    told["without collectives"] = examine(collective_bound, v100(line("Stream #14(Kernel)", *kernels))).outcome
    replicas = Replicas(2, 0, batch=64, divided=True)
    told["on a CPU worker the breakdown is enough"] = example(15.0, 5.0, replicas)
