"""throttled-device: the reasons that count, how often, and what is normal."""

from tests.rules.kit import *
from tfdoctor.rules.scale.throttled_device import POWER_CAP, check

HEAT, CAP = "software-thermal", "power-cap"
LOWERED = Board(name="GPU", index=0, power_limit_w=300.0, power_default_w=450.0, power_max_w=600.0)


def example(
    samples: int = 30, held: int = 10, reason: str = "software-thermal", mhz: float | None = 1000.0,
    board: Board | None = None,
) -> Verdict:  # fmt: skip
    """A GPU that is too hot for a third of the time, and then runs at 1000 of 1500 MHz."""
    clocks = {reason: mhz} if mhz else {}
    gpu = GpuClock("GPU", 0, samples, {reason: held}, clocks, 1500.0)
    return check(GpuClocks((gpu,)), GpuBoards((board,)) if board else None)


def row(throttle: Sequence[str] | None, *, busy: int = 99, mhz: int = 765, **more: Any) -> Any:
    gpu = {"index": 0, "name": "Tesla V100", "gpu_pct": busy, "sm_mhz": mhz, **more}
    return {"unix_ns": 1, "gpu": [gpu if throttle is None else gpu | {"throttle": list(throttle)}]}


def examine(*rows: Any) -> Result:
    """A V100 (1530 MHz) whose kernels take 9 of each step's 10 ms."""
    work = line("Stream #1", *[("kernel", 10 * n + 0.5, 10 * n + 9.5) for n in range(6)])
    facts = chart(trace([markers(6, 10)], gpus=[v100(work)]), recording(samples=rows))
    return examined(check, facts)


sick = example
healthy = described("A GPU at its power cap that runs at 1400 of 1500 MHz.", example, 30, 25, POWER_CAP, 1400.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a tenth of the busy time, and less"] = example(20, 2), example(20, 1)
    told["three samples, and two"] = example(3, 3), example(2, 2)
    told["trap: most GPUs run at their power cap at full load, the clock not far down"] = [
        example(20, 20, CAP, mhz) for mhz in (1190.0, 1210.0)
    ]
    told["without a clock the cost of heat is not known"] = example(20, 20, mhz=None)
    told["a power cap without a clock"] = example(20, 20, CAP, None)
    told["a power limit that was lowered is named, where the clock is far down and where it is not"] = [
        example(20, 20, CAP, mhz, LOWERED) for mhz in (1000.0, 1400.0)
    ]
    told["the board's own limit is no cause"] = example(20, 20, CAP, 1400.0, replace(LOWERED, power_limit_w=450.0))
    told["heat is not explained by a power limit"] = example(20, 20, HEAT, 1000.0, LOWERED)
    half, own = examine(*[row([HEAT]), row([], mhz=1530)] * 5), examine(*[row([HEAT], sm_max_mhz=1000)] * 5)
    told["half of the clock for half of the time, and a clock of two thirds by the samples' highest"] = half.saving
    told[...] = own.saving
    idle, hidden = row([HEAT], busy=49), row([HEAT], visible=False)
    told["an idle GPU lowers its clock, and one that the run may not use"] = examine(*[idle] * 9).outcome
    told[...] = examine(*[hidden] * 9).outcome
    told["samples between the slow readings do not count"] = examine(*[row([]), *[row(None)] * 4] * 5).outcome
