"""Heat or power limits slow the GPU's clock.

## What it checks

The samples of the whole run in which the GPU was busy: how often the driver named heat, a hardware slowdown, a
power brake or the power cap as the reason for a reduced clock, and how far below its maximum the clock was then.
Running at the power cap is normal under full load: it counts only where the clock is far below its maximum.

## Why it matters

Compute-bound operations slow down with the clock, memory-bound ones less. On several GPUs that train
synchronously, one hot GPU slows all of them.

## How to fix

Heat: check air flow, fans, room temperature and the other machines in the rack. Power brake and hardware slowdown:
check the power supply and its cables. Power cap: `nvidia-smi -q -d POWER` shows the current limit and the highest
allowed one; a laptop's GPU shares its power with the processor. `nvidia-smi -q -d PERFORMANCE` shows the reasons
at any time.

## Holds for

NVIDIA GPUs whose driver reports the reasons (data-center and workstation boards; most GeForce), recorded with
`tfdoctor profile` for at least a few seconds, since the reasons are read once a second.

## Sources

- [NVML, clocks event reasons, NVIDIA](https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html)
- [nvidia-smi documentation, NVIDIA](https://docs.nvidia.com/deploy/nvidia-smi/index.html)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.gpu_clocks import GpuClock, GpuClocks
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.units import count, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.1.0"
BY_HAND = "the cause is the machine, not the file"

POWER_CAP = "power-cap"

REMEDIES = {
    "software-thermal": "Cool the GPU: check air flow, fans and room temperature",
    "hardware-thermal": "Cool the GPU now: it is so hot that the hardware slows it down",
    "power-brake": "Check the power supply: it signals the GPU to draw less power",
    "hardware-slowdown": "Check temperature and power supply: the hardware slows the GPU down",
    POWER_CAP: "Compare the power limit with the highest one allowed",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    samples: float = limit(
        3.0,
        "Smallest number of samples of a busy GPU, one per second, that give a reason for its clock; fewer may "
        "be chance",
    )
    share: float = share_limit(
        0.1,
        "Smallest share of the busy time with heat or power as the reason; clocks also change for shorter "
        "times",
    )
    cap: float = share_limit(
        0.8,
        "Ratio of the clock to its maximum below which the power cap counts; GPUs at their power cap usually "
        "stay above it under full load",
    )


@dataclass(frozen=True, slots=True)
class Throttle:
    """One reason that reduced the clock of one GPU."""

    gpu: GpuClock
    reason: str

    @property
    def scales(self) -> float:
        """The compute time at the maximum clock relative to that now, if only the clock limited it."""
        clock = self.gpu.ratio(self.reason)
        return 1.0 if clock is None else 1.0 - self.gpu.share(self.reason) * (1.0 - clock)


def check(clocks: GpuClocks, limits: Limits = Limits()) -> Verdict:
    """Report reasons for a reduced clock, other than idleness, while the GPU was busy."""
    gpus = [gpu for gpu in clocks.gpus if gpu.reasons_known >= limits.samples]
    if not gpus:
        return NotApplicable(
            reason="too few samples show a busy GPU and the reasons for its clock; record a longer run"
        )
    throttles = sorted(_throttles(gpus, limits), key=lambda throttle: throttle.scales)
    sample_count = sum(gpu.reasons_known for gpu in gpus)
    measure = Measure("samples of busy GPUs", count(sample_count), count(limits.samples))
    if not throttles:
        return Healthy(summary=_healthy(gpus), evidence=(measure,))
    worst = throttles[0]
    share = ratio(worst.gpu.share(worst.reason))
    is_clock_known = worst.gpu.ratio(worst.reason) is not None
    return Finding(
        summary=_summary(worst),
        evidence=(
            measure,
            Measure("share of the busy time with a reduced clock", share, ratio(limits.share)),
            Table.of(
                throttles,
                ("GPU", lambda throttle: f"{throttle.gpu.name} ({throttle.gpu.index})"),
                ("reason", lambda throttle: throttle.reason),
                (
                    "share of the busy time",
                    lambda throttle: ratio(throttle.gpu.share(throttle.reason)),
                ),
                ("clock", _clock),
            ),
        ),
        remedies=tuple(_remedies(throttles)),
        effects=(Effect(Stage.DEVICE, worst.scales, bound=Bound.AT_MOST),)
        if is_clock_known
        else (),
        severity=None if is_clock_known else Severity.WARNING,
    )


def _throttles(gpus: list[GpuClock], limits: Limits) -> Iterator[Throttle]:
    for gpu in gpus:
        for reason in REMEDIES:
            clock = gpu.ratio(reason)
            counts = reason != POWER_CAP or (clock is not None and clock < limits.cap)
            if gpu.share(reason) >= limits.share and counts:
                yield Throttle(gpu, reason)


def _summary(throttle: Throttle) -> str:
    gpu, reason = throttle.gpu, throttle.reason
    clock = gpu.ratio(reason)
    speed = f", to {percent(clock)} of the maximum" if clock is not None else ""
    return f"{gpu.name} reduced its clock ({reason}) for {percent(gpu.share(reason))} of the busy time{speed}"


def _healthy(gpus: list[GpuClock]) -> str:
    capped = max(gpu.share(POWER_CAP) for gpu in gpus)
    if not capped:
        return "Neither heat nor power reduced the clock"
    return (
        f"The power cap limited {percent(capped)} of the busy time, which is normal under full load"
    )


def _remedies(throttles: list[Throttle]) -> list[Remedy]:
    reasons = dict.fromkeys(throttle.reason for throttle in throttles)
    command = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK"
    return [
        Remedy(REMEDIES[reason], f"# in a terminal, during training: {command}")
        for reason in reasons
    ]


def _clock(throttle: Throttle) -> str:
    mhz, maximum = throttle.gpu.held_mhz.get(throttle.reason), throttle.gpu.top_mhz
    if not mhz:
        return "unknown"
    return f"{mhz:.0f} of {maximum:.0f} MHz" if maximum else f"{mhz:.0f} MHz"


def example(
    samples: int = 30, held: int = 10, reason: str = "software-thermal", mhz: float | None = 1000.0
) -> Verdict:
    """A GPU that is too hot for a third of the time, and then runs at 1000 of 1500 MHz."""
    clocks = {reason: mhz} if mhz else {}
    return check(GpuClocks((GpuClock("GPU", 0, samples, {reason: held}, clocks, 1500.0),)))


sick = example


def healthy() -> Verdict:
    """A GPU at its power cap that runs at 1400 of 1500 MHz."""
    return example(30, 25, POWER_CAP, 1400.0)
