"""driver-start: the time to open the GPUs counts where nothing keeps the driver loaded, and where it is much."""

from tests.rules.kit import *
from tfdoctor.rules.run.driver_start import check

RUN = divided_run(60_000.0, {})


def example(
    opened_ms: float | None = 2_400.0, *, persistence: bool | None = False, others: int = 0,
    total_ms: float = 60_000.0,
) -> Verdict:  # fmt: skip
    """A run of a minute, before which the driver took 2.4 s to open the only GPU."""
    board = Board(name="GPU", index=0, persistence=persistence, others_at_start=others)
    boards = GpuBoards((board,), "580.95.05", opened_ms)
    return check(boards, divided_run(total_ms, {}))


def boards(*rows: Any) -> GpuBoards:
    return chart(trace(), recording(samples=rows)).fact(GpuBoards)


def gpu(index: int = 0, *, persistence: bool = False, **more: Any) -> dict[str, Any]:
    return {"index": index, "name": "NVIDIA A100", "board": {"persistence": persistence}, **more}


sick = example
healthy = described("The same run where the driver stays loaded.", example, 3.0, persistence=True)


@golden_cases
def test_verdicts(told: Cases) -> None:
    # The sampler opened the GPUs meanwhile, so the recorded run may not have waited
    told["a second, and less"] = example(1000.0), example(999.0)
    told["a long run does not notice it"] = [example(2400.0, total_ms=ms) for ms in (240_000.0, 240_100.0)]
    told["a library on a slow disk takes as long"] = example(5000.0, persistence=True)
    told["with another client the driver stays loaded, whatever its mode is"] = example(2400.0, others=1)
    told["an unknown mode, and an unknown time"] = example(persistence=None), example(None)
    driver = {"version": "580.95.05", "opened_ms": 2400.0}
    hidden = gpu(1, persistence=True, visible=False)
    known = boards({"unix_ns": 1, "gpu": [gpu(visible=True), hidden], "driver": driver})
    told["GPUs that the run may not use are not judged"] = known, applied(check, known, RUN)
    old = boards({"unix_ns": 1, "gpu": [{"index": 0, "name": "NVIDIA A100", "gpu_pct": 99}]})
    told["recordings before the reading of settings"] = applied(check, old, RUN)
