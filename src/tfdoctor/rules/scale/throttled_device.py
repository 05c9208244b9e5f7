from tfdoctor.facts.machine.samples import Board, GpuClock, GpuClocks
from tfdoctor.families.kit import *
from tfdoctor.terms.units import watts

__doc__, CODE = page(__file__)

POWER_CAP = "power-cap"
REMEDIES = {
    "software-thermal": "Cool the GPU: check air flow, fans and room temperature",
    "hardware-thermal": "Cool the GPU now: it is so hot that the hardware slows it down",
    "power-brake": "Check the power supply: it signals the GPU to draw less power",
    "hardware-slowdown": "Check temperature and power supply: the hardware slows the GPU down",
    POWER_CAP: "Compare the power limit with the highest one allowed",
}
FEW = "too few samples show a busy GPU and the reasons for its clock; record a longer run"


class Limits(RuleLimits):
    samples: float = limit(3.0)
    share: float = share_limit(0.1)
    cap: float = share_limit(0.8)


def check(clocks: GpuClocks, boards: GpuBoards | None, limits: Limits = Limits()) -> Verdict:
    """Report reasons for a reduced clock, other than idleness, while the GPU was busy."""
    gpus = [gpu for gpu in clocks.gpus if gpu.reasons_known >= limits.samples]
    if not gpus:
        return NotApplicable(reason=FEW)
    samples = Measure("samples of busy GPUs", count(sum(gpu.reasons_known for gpu in gpus)), count(limits.samples))
    by_index = {board.index: board for board in boards.boards} if boards else {}
    throttled = [(gpu, why) for gpu in gpus for why in REMEDIES if gpu.share(why) >= limits.share]
    # The power cap limits each GPU under full load: it is a fault where the clock is low.
    found = [one for one in throttled if one[1] != POWER_CAP or (one[0].ratio(POWER_CAP) or 1.0) < limits.cap]
    if not found:
        gpu = max(gpus, key=lambda gpu: gpu.share(POWER_CAP))
        board, capped = by_index.get(gpu.index), gpu.share(POWER_CAP)
        lowered = _lowered(board) or ", which is normal under full load"
        cap = f"The power cap limited {percent(capped)} of the busy time{lowered}"
        summary = cap if capped else "Neither heat nor power reduced the clock"
        return Healthy(summary=summary, evidence=(samples, *_power(board)))
    found.sort(key=lambda one: one[0].left(one[1]))
    gpu, reason = found[0]
    share, held = gpu.share(reason), gpu.ratio(reason)
    board = by_index.get(gpu.index) if reason == POWER_CAP else None
    speed = f", to {percent(held)} of the maximum" if held is not None else ""

    def clock(gpu: GpuClock, why: str) -> str:
        top = f" of {gpu.top_mhz:.0f}" if gpu.top_mhz else ""
        return f"{mhz:.0f}{top} MHz" if (mhz := gpu.held_mhz.get(why)) else "unknown"

    table = Table.of(
        found,
        ("GPU", lambda one: f"{one[0].name} ({one[0].index})"),
        ("reason", lambda one: one[1]),
        ("share of the busy time", lambda one: ratio(one[0].share(one[1]))),
        ("clock", lambda one: clock(*one)),
    )
    measure = Measure.share("share of the busy time with a reduced clock", share, limits.share)
    time = f"for {percent(share)} of the busy time"
    return Finding(
        summary=f"{gpu.name} reduced its clock ({reason}) {time}{speed}{_lowered(board)}",
        evidence=(samples, measure, *_power(board), table),
        remedies=tuple(
            Remedy(REMEDIES[reason], CODE["inspect"]) for reason in dict.fromkeys(one[1] for one in found)
        ),
        effects=() if held is None else (Effect(Stage.DEVICE, gpu.left(reason), bound=Bound.AT_MOST),),
        severity=Severity.WARNING if held is None else None,
    )


def _lowered(board: Board | None) -> str:
    """Say that a board's power limit was set below its own one; "" where it was not, or is unknown."""
    now, own = (board.power_limit_w, board.power_default_w) if board else (None, None)
    if now is None or own is None or now >= own:
        return ""
    return f"; the power limit was lowered to {quantity(watts(now))} from {quantity(watts(own))}"


def _power(board: Board | None) -> Iterator[Measure]:
    limits = (
        ("power limit in force", board.power_limit_w),
        ("power limit after a restart", board.power_default_w),
        ("highest power limit allowed", board.power_max_w),
    ) if board else ()  # fmt: skip
    return (Measure(label, watts(limit_w)) for label, limit_w in limits if limit_w is not None)
