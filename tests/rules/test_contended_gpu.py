"""contended-gpu: others count by what they compute, not by being there."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.scale.contended_gpu import check


def example(share: float | None = 0.4, *, others: int = 1, kind: DeviceKind = DeviceKind.GPU) -> Verdict:
    """Another process computes on the GPU for 40 % of the time."""
    board = Board(name="GPU", index=0, others=others, others_share=share)
    return check(GpuBoards((board,)), Device(kind, 1, 1))


sick = example


def healthy() -> Verdict:
    """An idle notebook holds memory of the GPU."""
    return example(0.0)


test_others_count_by_what_they_compute = each_is(
    (example(0.1), Finding),
    (example(0.09), Healthy),
    (example(0.0), Healthy),  # trap: an idle notebook is listed among the processes that compute
    (example(None, others=2), NotApplicable, "does not tell"),
    (example(None, others=0), Healthy, "No other"),
    (example(kind=DeviceKind.CPU), NotApplicable, "no GPU"),
)


def test_the_step_computes_faster_by_their_share_at_most() -> None:
    (effect,) = as_finding(example(0.4)).effects
    assert (effect.stage, effect.scales, effect.bound) == (Stage.DEVICE, 0.6, Bound.AT_MOST)


def sampled(**processes: object) -> GpuBoards:
    gpu = {"index": 0, "processes": {"run": 1, "others": 1, **processes}}
    rows = [{"unix_ns": n, "gpu": [gpu]} for n in range(1, 4)]
    return chart(trace(), recording(samples=rows)).fact(GpuBoards)


def test_the_share_is_of_readings_in_which_the_run_computes_too() -> None:
    (board,) = sampled(attribution="by process", others_sm_pct=40.0).boards
    assert board.others_share == pytest.approx(0.4)
    (before,) = sampled(run=0, attribution="by process", others_sm_pct=40.0).boards
    assert before.others_share is None


def test_processes_of_the_host_of_a_container_are_not_told_apart() -> None:
    """Trap: the run's own process may be among them, under another number."""
    (board,) = sampled(attribution="assumed", others_sm_pct=40.0).boards
    assert (board.others, board.others_share) == (1, None)
