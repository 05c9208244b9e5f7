"""collective-bound: the exchange, separated from waiting where the trace allows."""

import pytest

from tests.builders import Row, line
from tests.replicas import EACH, NCCL, STEPS, examine, replica
from tests.rules.kit import *
from tfdoctor.rules.scale import collective_bound
from tfdoctor.rules.scale.collective_bound import check


def sick() -> Verdict:
    """An all-reduce of 5 ms follows 15 ms of compute."""
    return check(Breakdown.of(device=15.0, collective=5.0), None, None, Replicas())


def healthy() -> Verdict:
    """An all-reduce of which 0.5 ms are exposed."""
    return check(Breakdown.of(device=19.5, collective=0.5), None, None, Replicas())


def both(first: float, exchange: float = 1.0) -> object:
    return examine(collective_bound, replica(first, 12, exchange), replica(12, 12, exchange)).outcome


test_a_tenth_of_the_step_in_the_exchange_is_found = each_is(
    (both(12, 2.0), Finding),
    (both(12, 1.9), Healthy),
    # Trap: the NCCL kernel runs for 5 ms on the fast device, 4 of them because the other one is late
    (both(8), Healthy, "delays each step by 1.00 ms"),
)


def test_with_one_device_the_summary_says_that_waiting_is_included() -> None:
    result = examine(collective_bound, replica(8, 12))
    assert isinstance(result.outcome, Finding)
    assert "including waiting" in result.outcome.summary
    assert result.saving is not None
    assert result.saving.ms_per_step == pytest.approx(5.0, abs=1e-3)


def test_hidden_collectives_cost_nothing() -> None:
    rows: list[Row] = []
    for at in range(0, STEPS * EACH, EACH):
        rows += [("kernel", at + 1, at + 18), (NCCL, at + 2, at + 17)]
    both = line("Stream #14(Kernel)", *rows[::2]), line("Stream #20(Kernel)", *rows[1::2])
    assert isinstance(examine(collective_bound, v100(*both)).outcome, Healthy)


def test_without_collectives_nothing_is_judged() -> None:
    kernels = [("kernel", at + 1, at + 12) for at in range(0, STEPS * EACH, EACH)]
    lone = v100(line("Stream #14(Kernel)", *kernels))
    assert isinstance(examine(collective_bound, lone).outcome, NotApplicable)


def test_on_a_cpu_worker_the_breakdown_is_enough() -> None:
    parts = Breakdown.of(device=15.0, collective=5.0)
    replicas = Replicas("MultiWorkerMirroredStrategy", 2, 0, batch=64, divided=True)
    finding = as_finding(collective_bound.check(parts, None, None, replicas))
    assert "32 examples" in finding.remedies[1].action
