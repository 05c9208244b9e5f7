"""throttled-device: the reasons that count, how often, and what is normal."""

from tests.builders import line
from tests.rules.kit import *
from tfdoctor.facts.machine.samples import GpuClock, GpuClocks
from tfdoctor.rules.scale import throttled_device
from tfdoctor.rules.scale.throttled_device import POWER_CAP, Limits, check
from tfdoctor.terms.humanize import quantity


def example(
    samples: int = 30, held: int = 10, reason: str = "software-thermal", mhz: float | None = 1000.0,
    board: Board | None = None,
) -> Verdict:  # fmt: skip
    """A GPU that is too hot for a third of the time, and then runs at 1000 of 1500 MHz."""
    clocks = {reason: mhz} if mhz else {}
    gpu = GpuClock("GPU", 0, samples, {reason: held}, clocks, 1500.0)
    return check(GpuClocks((gpu,)), GpuBoards((board,)) if board else None)


sick = example


def healthy() -> Verdict:
    """A GPU at its power cap that runs at 1400 of 1500 MHz."""
    return example(30, 25, POWER_CAP, 1400.0)


HEAT, CAP = "software-thermal", "power-cap"


def test_a_tenth_of_the_busy_time_is_enough() -> None:
    assert [type(example(20, held)) for held in (2, 1)] == [Finding, Healthy]


def test_a_few_samples_are_not_judged() -> None:
    assert [type(example(samples, samples)) for samples in (int(Limits().samples), 2)] == [Finding, NotApplicable]


def test_a_power_cap_counts_where_the_clock_is_far_down() -> None:
    """Trap: at full load most GPUs run at their power cap."""
    assert [type(example(20, 20, CAP, mhz)) for mhz in (1190.0, 1210.0)] == [Finding, Healthy]


def test_without_a_clock_the_cost_is_not_known() -> None:
    verdict = as_finding(example(20, 20, mhz=None))
    assert (verdict.effects, verdict.severity) == ((), Severity.WARNING)
    assert isinstance(example(20, 20, CAP, None), Healthy)


LOWERED = Board(name="GPU", index=0, power_limit_w=300.0, power_default_w=450.0, power_max_w=600.0)


def test_a_power_limit_that_was_lowered_is_named() -> None:
    """Where the clock is far down, and where all is healthy."""
    for mhz in (1000.0, 1400.0):
        verdict = example(20, 20, CAP, mhz, LOWERED)
        assert isinstance(verdict, Finding | Healthy)
        assert "the power limit was lowered to 300 W from 450 W" in verdict.summary
        told = {row.label: quantity(row.value) for row in verdict.evidence if isinstance(row, Measure)}
        assert told["highest power limit allowed"] == "600 W"


def test_the_limit_of_the_board_itself_is_no_cause() -> None:
    for board in (None, replace(LOWERED, power_limit_w=450.0)):
        assert "normal under full load" in as_healthy(example(20, 20, CAP, 1400.0, board)).summary


def test_heat_is_not_explained_by_a_power_limit() -> None:
    assert "power limit" not in as_finding(example(20, 20, HEAT, 1000.0, LOWERED)).summary


def row(throttle: Sequence[str] | None, *, busy: int = 99, mhz: int = 765, **more: Any) -> Any:
    gpu = {"index": 0, "name": "Tesla V100", "gpu_pct": busy, "sm_mhz": mhz, **more}
    return {"unix_ns": 1, "gpu": [gpu if throttle is None else gpu | {"throttle": list(throttle)}]}


def examine(*rows: Any) -> Result:
    """A V100 (1530 MHz) whose kernels take 9 of each step's 10 ms."""
    work = line("Stream #1", *[("kernel", 10 * n + 0.5, 10 * n + 9.5) for n in range(6)])
    facts = chart(trace([markers(6, 10)], gpus=[v100(work)]), recording(samples=rows))
    (result,) = engine.examine(facts, [Rule.from_module(throttled_device)])
    return result


def test_half_the_clock_for_half_the_time_costs_at_most_a_quarter_of_the_compute_time() -> None:
    """The samples' own highest clock comes first."""
    half, own = examine(*[row([HEAT]), row([], mhz=1530)] * 5), examine(*[row([HEAT], sm_max_mhz=1000)] * 5)
    for result, share in ((half, 0.25), (own, 0.235)):
        assert result.saving is not None
        assert result.saving.ms_per_step == near(9 * share, abs=1e-3)
        assert result.saving.bound is Bound.AT_MOST


def test_an_idle_gpu_lowers_its_clock_without_harm() -> None:
    """And one that the run may not use is not judged."""
    for gpu in (row([HEAT], busy=49), row([HEAT], visible=False)):
        assert isinstance(examine(*[gpu] * 9).outcome, NotApplicable)


def test_samples_between_the_slow_readings_do_not_count() -> None:
    assert isinstance(examine(*[row([]), *[row(None)] * 4] * 5).outcome, Healthy)
