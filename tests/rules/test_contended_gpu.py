"""contended-gpu: others count by what they compute, not by being there."""

from tests.rules.kit import *
from tfdoctor.rules.scale.contended_gpu import check


def example(share: float | None = 0.4, *, others: int = 1, kind: DeviceKind = DeviceKind.GPU) -> Verdict:
    """Another process computes on the GPU for 40 % of the time."""
    board = Board(name="GPU", index=0, others=others, others_share=share)
    return check(GpuBoards((board,)), Device(kind, 1, 1))


def sampled(**processes: object) -> GpuBoards:
    gpu = {"index": 0, "processes": {"run": 1, "others": 1, **processes}}
    rows = [{"unix_ns": n, "gpu": [gpu]} for n in range(1, 4)]
    return chart(trace(), recording(samples=rows)).fact(GpuBoards)


sick = example
healthy = described("An idle notebook holds memory of the GPU.", example, 0.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the step computes faster by their share at most"] = example(0.4)
    told["a tenth of the time, and less"] = example(0.1), example(0.09)
    told["an idle notebook is listed among the processes that compute"] = example(0.0)
    told["an unknown share, and no other process"] = example(None, others=2), example(None, others=0)
    told["a CPU"] = example(kind=DeviceKind.CPU)
    told["the share is of readings while the run computes"] = sampled(attribution="by process", others_sm_pct=40.0)
    told[...] = sampled(run=0, attribution="by process", others_sm_pct=40.0)
    told["of a container's processes one may be the run's"] = sampled(attribution="assumed", others_sm_pct=40.0)
