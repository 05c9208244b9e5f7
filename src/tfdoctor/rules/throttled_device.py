from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards
from tfdoctor.facts.machine.gpu_clocks import GpuClock, GpuClocks
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.units import watts

__doc__, CODE = page(__file__)

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
        "Smallest share of the busy time with heat or power as the reason; clocks also change for shorter times",
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
    def share(self) -> float:
        """The share of the GPU's busy time."""
        return self.gpu.share(self.reason)

    @property
    def ratio(self) -> float | None:
        """The clock meanwhile relative to its maximum; None is unknown."""
        return self.gpu.ratio(self.reason)

    @property
    def scales(self) -> float:
        """The compute time at the maximum clock relative to that now, if only the clock limited it."""
        return 1.0 if self.ratio is None else 1.0 - self.share * (1.0 - self.ratio)

    def counts(self, limits: Limits) -> bool:
        """Say whether it is to be reported: a GPU at its power cap is, where its clock is low."""
        low = self.ratio is not None and self.ratio < limits.cap
        return self.share >= limits.share and (low or self.reason != POWER_CAP)

    @property
    def clock(self) -> str:
        """The clock meanwhile, for the reader."""
        mhz, maximum = self.gpu.held_mhz.get(self.reason), self.gpu.top_mhz
        if not mhz:
            return "unknown"
        return f"{mhz:.0f} of {maximum:.0f} MHz" if maximum else f"{mhz:.0f} MHz"

    def __str__(self) -> str:
        speed = f", to {percent(self.ratio)} of the maximum" if self.ratio is not None else ""
        time = f"for {percent(self.share)} of the busy time"
        return f"{self.gpu.name} reduced its clock ({self.reason}) {time}{speed}"


def check(clocks: GpuClocks, boards: GpuBoards | None, limits: Limits = Limits()) -> Verdict:
    """Report reasons for a reduced clock, other than idleness, while the GPU was busy."""
    gpus = [gpu for gpu in clocks.gpus if gpu.reasons_known >= limits.samples]
    if not gpus:
        return NotApplicable(
            reason="too few samples show a busy GPU and the reasons for its clock; record a longer run"
        )
    found = [Throttle(gpu, reason) for gpu in gpus for reason in REMEDIES]
    throttles = sorted(
        (throttle for throttle in found if throttle.counts(limits)), key=lambda throttle: throttle.scales
    )
    sample_count = sum(gpu.reasons_known for gpu in gpus)
    measure = Measure("samples of busy GPUs", count(sample_count), count(limits.samples))
    by_index = {board.index: board for board in boards.boards} if boards else {}
    if throttles:
        return _finding(throttles, by_index, measure, limits)
    most = max(gpus, key=lambda gpu: gpu.share(POWER_CAP))
    summary = "Neither heat nor power reduced the clock"
    if capped := most.share(POWER_CAP):
        summary = f"The power cap limited {percent(capped)} of the busy time, which is normal under full load"
        if lowered := _lowered(by_index.get(most.index)):
            summary = f"The power cap limited {percent(capped)} of the busy time{lowered}"
    return Healthy(summary=summary, evidence=(measure, *_power(by_index.get(most.index))))


def _lowered(board: Board | None) -> str:
    """Say that a board's power limit was set below its own one; "" where it was not, or is unknown."""
    if board is None or board.power_limit_w is None or board.power_default_w is None:
        return ""
    if board.power_limit_w >= board.power_default_w:
        return ""
    now, own = quantity(watts(board.power_limit_w)), quantity(watts(board.power_default_w))
    return f"; the power limit was lowered to {now} from {own}"


def _power(board: Board | None) -> Iterator[Measure]:
    """Yield the power limits of a board, as far as they are known."""
    if board is None:
        return
    limits = (
        ("power limit in force", board.power_limit_w),
        ("power limit after a restart", board.power_default_w),
        ("highest power limit allowed", board.power_max_w),
    )
    for label, limit_w in limits:
        if limit_w is not None:
            yield Measure(label, watts(limit_w))


def _finding(throttles: list[Throttle], boards: Mapping[int, Board], measure: Measure, limits: Limits) -> Finding:
    worst = throttles[0]
    board = boards.get(worst.gpu.index) if worst.reason == POWER_CAP else None
    effect = Effect(Stage.DEVICE, worst.scales, bound=Bound.AT_MOST)
    is_clock_known = worst.ratio is not None
    reasons = dict.fromkeys(throttle.reason for throttle in throttles)
    table = Table.of(
        throttles,
        ("GPU", lambda throttle: f"{throttle.gpu.name} ({throttle.gpu.index})"),
        ("reason", lambda throttle: throttle.reason),
        ("share of the busy time", lambda throttle: ratio(throttle.share)),
        ("clock", lambda throttle: throttle.clock),
    )
    label = "share of the busy time with a reduced clock"
    return Finding(
        summary=f"{worst}{_lowered(board)}",
        evidence=(measure, Measure.share(label, worst.share, limits.share), *_power(board), table),
        remedies=tuple(Remedy(REMEDIES[reason], INSPECT) for reason in reasons),
        effects=(effect,) if is_clock_known else (),
        severity=None if is_clock_known else Severity.WARNING,
    )


INSPECT = "# in a terminal, during training: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK"
