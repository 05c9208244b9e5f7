"""The energy of boards and packages: counters between readings, idle power, and what a counter cannot tell."""

from typing import Any

import pytest

from tests.builders import chart, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.recording.manifest import Manifest
from tfdoctor.terms.kinds import EnergySource

S = 1_000_000_000

IDLE, BUSY = 90.0, 400.0
"""Watts of the board in these tests."""


def window(start: float, stop: float) -> Manifest:
    return Manifest(window=TracedWindow(started_unix_ns=int(start * S), stopped_unix_ns=int(stop * S)))


def board(at: float, joules: float | None, load: float = 0.0, index: int = 0, **more: Any) -> Any:
    gpu = {"index": index, "gpu_pct": load, **more}
    return {"unix_ns": int(at * S), "gpu": [gpu if joules is None else gpu | {"energy_j": joules}]}


def trained(*, load: float = 50.0, busy_w: float = BUSY) -> list[Any]:
    """Ten seconds idle, then ten seconds of training, with a reading each second."""
    idle = [board(100 + at, 5000 + IDLE * at) for at in range(10)]
    began = 5000 + IDLE * 10
    return idle + [board(110 + at, began + busy_w * at, load) for at in range(11)]


def meters(manifest: Manifest, *rows: Any) -> dict[EnergySource, EnergyMeter]:
    facts = chart(trace(), recording(manifest=manifest, samples=rows))
    return {meter.source: meter for meter in facts.fact(Energy).meters}


def test_power_is_what_the_counter_gained_while_training() -> None:
    (meter,) = meters(window(110, 120), *trained()).values()
    assert (meter.source, meter.devices, meter.without) == (EnergySource.GPU, 1, 0)
    assert meter.power_w == pytest.approx(BUSY)
    assert meter.seconds == pytest.approx(10)
    assert meter.run_j == pytest.approx(IDLE * 10 + BUSY * 10)


def test_readings_need_not_be_at_the_ends() -> None:
    (meter,) = meters(window(112.5, 117.25), *trained()).values()
    assert meter.power_w == pytest.approx(BUSY)


def test_the_time_without_kernels_takes_at_least_idle_power() -> None:
    (meter,) = meters(window(110, 120), *trained(load=75.0)).values()
    assert meter.idle_w == pytest.approx(IDLE)
    assert meter.busy == pytest.approx(0.75)
    assert meter.waiting_w == pytest.approx(0.25 * IDLE)
    assert meter.busy_w == pytest.approx((BUSY - 0.25 * IDLE) / 0.75)


def test_idle_power_that_was_not_seen_is_unknown() -> None:
    (meter,) = meters(window(110, 120), *trained()[10:]).values()
    assert (meter.idle_w, meter.waiting_w, meter.busy_w) == (None, None, None)


def test_a_short_window_has_no_power() -> None:
    """Trap: twenty steps take half a second, and the counter is read once a second."""
    with pytest.raises(Unavailable, match="a longer run"):
        meters(window(110, 112.9), *trained())


def test_without_a_counter_there_is_no_figure() -> None:
    rows = [board(100 + at, None, 75.0) for at in range(20)]
    with pytest.raises(Unavailable):
        meters(window(105, 115), *rows)
    with pytest.raises(Unavailable, match="no counter"):
        meters(window(105, 115), {"unix_ns": 1, "host": {}})


def test_a_board_that_the_run_may_not_use_is_not_counted() -> None:
    hidden = [board(100 + at, 1e6 * at, 100.0, index=1, visible=False) for at in range(21)]
    (meter,) = meters(window(110, 120), *trained(), *hidden).values()
    assert meter.devices == 1
    assert meter.power_w == pytest.approx(BUSY)


def test_a_board_without_a_counter_is_told() -> None:
    other = [board(100 + at, None, 100.0, index=1) for at in range(21)]
    (meter,) = meters(window(110, 120), *trained(), *other).values()
    assert (meter.devices, meter.without) == (1, 1)


def test_two_boards_add_up() -> None:
    second = [board(100 + at, 100.0 * at, 100.0, index=1) for at in range(21)]
    (meter,) = meters(window(110, 120), *trained(), *second).values()
    assert meter.devices == 2
    assert meter.power_w == pytest.approx(BUSY + 100)
    assert meter.idle_w is None  # the second one was never idle


def test_a_counter_that_begins_again_tells_nothing() -> None:
    """Trap: the driver was loaded anew meanwhile."""
    with pytest.raises(Unavailable):
        meters(window(100, 110), *[board(100 + at, 1000.0 if at < 5 else at) for at in range(11)])


def test_packages_of_the_cpu_are_apart() -> None:
    rows = [
        {
            "unix_ns": (100 + at) * S,
            "package": [{"name": "package-0", "energy_j": 30.0 * at}, {"name": "package-1", "energy_j": 20.0 * at}],
        }
        for at in range(21)
    ]
    found = meters(window(110, 120), *trained(), *rows)
    cpu = found[EnergySource.CPU]
    assert cpu.devices == 2
    assert cpu.power_w == pytest.approx(50.0)
    assert (cpu.idle_w, cpu.busy) == (None, None)
    assert found[EnergySource.GPU].power_w == pytest.approx(BUSY)
