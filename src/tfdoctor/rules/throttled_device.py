"""The GPU's clock is held down by heat or power while it is busy.

## What it checks

In the samples of the whole run in which the GPU was busy: how often the driver named heat, a hardware
slowdown, a power brake or the power cap as what holds the clock back, and how far below its highest the
clock was then. Running at the power cap is normal under full load: it counts only where the clock is far
down.

## Why it matters

Operations that are bound by arithmetic slow down as the clock does; those bound by memory do less. On several
GPUs that train in step, one hot GPU slows all of them.

## How to fix

Heat: the air flow, the fans, the temperature of the room, what else is in the rack. Power brake and hardware
slowdown: the power supply and its cables. Power cap: `nvidia-smi -q -d POWER` shows the limit that is set
and the highest that is allowed; a laptop shares its power with the processor. `nvidia-smi -q -d PERFORMANCE`
shows the reasons at any time.

## Holds for

NVIDIA GPUs whose driver tells the reasons (data-centre and workstation boards; most GeForce). Recorded with
`tfdoctor profile` over some seconds at least, as the reasons are read once a second.

## Sources

- [NVML, clocks event reasons, NVIDIA](https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html)
- [nvidia-smi documentation, NVIDIA](https://docs.nvidia.com/deploy/nvidia-smi/index.html)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.machine.gpu_clocks import GpuClock, GpuClocks
from tfdoctor.humanize import percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ratio
from tfdoctor.verdict import (
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

POWER_CAP = "power-cap"

REMEDIES = {
    "software-thermal": "Cool the GPU: air flow, fans, the temperature of the room",
    "hardware-thermal": "Cool the GPU now: it is so hot that the hardware itself slows it",
    "power-brake": "Check the power supply: it asks the GPU to draw less",
    "hardware-slowdown": "Look for heat or a weak power supply: the hardware itself slows the GPU",
    POWER_CAP: "Compare the power limit that is set with the highest that is allowed",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    samples: float = limit(
        3.0, "samples of a busy GPU that name reasons: fewer, a second apart, are chance"
    )
    share: float = limit(
        0.1,
        "of the busy time with heat or power as the reason: shorter spells also come from changing clocks",
        most=1.0,
    )
    cap: float = limit(
        0.8,
        "of the highest clock: GPUs at their power cap under full load usually stay above it",
        most=1.0,
    )


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Hold:
    """One reason that held one GPU's clock back."""

    gpu: GpuClock
    reason: str

    @property
    def scales(self) -> float:
        """The compute time at the full clock over that now, were it bound by the clock alone."""
        ratio_ = self.gpu.ratio(self.reason)
        return 1.0 if ratio_ is None else 1.0 - self.gpu.share(self.reason) * (1.0 - ratio_)


def check(clocks: GpuClocks, limits: Limits = LIMITS) -> Verdict:
    """Look for reasons other than idleness, while the GPU was busy."""
    enough = [gpu for gpu in clocks.gpus if gpu.told >= limits.samples]
    if not enough:
        return NotApplicable(
            reason="the GPU was busy in too few samples to say what holds its clock: record a longer run"
        )
    holds = sorted(_holds(enough, limits), key=lambda hold: hold.scales)
    seen = sum(gpu.told for gpu in enough)
    evidence = (Measure("samples of busy GPUs", count(seen), count(limits.samples)),)
    if not holds:
        return Healthy(summary=_healthy(enough), evidence=evidence)
    worst = holds[0]
    share = worst.gpu.share(worst.reason)
    held = worst.gpu.ratio(worst.reason)
    slow = f", then at {percent(held)} of its highest" if held is not None else ""
    return Finding(
        summary=f"{worst.gpu.name}: the clock is held down ({worst.reason}) for {percent(share)} of the "
        f"busy time{slow}",
        evidence=(
            *evidence,
            Measure("of the busy time", ratio(share), ratio(limits.share)),
            _table(holds),
        ),
        remedies=tuple(_remedies(holds)),
        effects=(Effect(Stage.DEVICE, worst.scales, bound=Bound.AT_MOST),) if held else (),
        severity=None if held else Severity.WARNING,
    )


def _holds(gpus: list[GpuClock], limits: Limits) -> Iterator[Hold]:
    for gpu in gpus:
        for reason in REMEDIES:
            low = gpu.ratio(reason)
            far = reason != POWER_CAP or (low is not None and low < limits.cap)
            if gpu.share(reason) >= limits.share and far:
                yield Hold(gpu, reason)


def _healthy(gpus: list[GpuClock]) -> str:
    capped = max(gpu.share(POWER_CAP) for gpu in gpus)
    if not capped:
        return "Neither heat nor power held the clocks back"
    return f"At the power cap for {percent(capped)} of the busy time, as is normal under full load"


def _remedies(holds: list[Hold]) -> list[Remedy]:
    reasons = dict.fromkeys(hold.reason for hold in holds)
    shown = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK"
    return [
        Remedy(REMEDIES[reason], f"# in a terminal, while it trains: {shown}") for reason in reasons
    ]


def _table(holds: list[Hold]) -> Table:
    rows = tuple(
        (
            f"{hold.gpu.name} ({hold.gpu.index})",
            hold.reason,
            ratio(hold.gpu.share(hold.reason)),
            _clock(hold),
        )
        for hold in holds
    )
    return Table(("GPU", "reason", "of the busy time", "clock then"), rows)


def _clock(hold: Hold) -> str:
    held, top = hold.gpu.held_mhz.get(hold.reason), hold.gpu.top_mhz
    said = f"{held:.0f} MHz" if held else "unknown"
    return f"{said} of {top:.0f}" if held and top else said


def sick() -> Verdict:
    """A GPU that is too hot for a third of the time, and then at 1000 of 1500 MHz."""
    return check(
        GpuClocks(
            (
                GpuClock(
                    "GPU", 0, 30, {"software-thermal": 10}, {"software-thermal": 1000.0}, 1500.0
                ),
            )
        )
    )


def healthy() -> Verdict:
    """A GPU at its power cap, at 1400 of 1500 MHz."""
    return check(GpuClocks((GpuClock("GPU", 0, 30, {POWER_CAP: 25}, {POWER_CAP: 1400.0}, 1500.0),)))
