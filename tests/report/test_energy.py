"""Energy in every rendering, with money and CO2 where they were given, and nowhere without a counter."""

from tests.report.kit import *

(BOARDS,) = sure(full().energy).rows
ENERGY = EnergyAccount(rows=(BOARDS,), measured_s=61.0, epoch_steps=1000, usd_per_kwh=0.3, gco2_per_kwh=360.0)


def test_without_prices_there_is_no_money() -> None:
    plain = replace(BOARDS, per_step=EnergyAmount(joules=42.0), run=EnergyAmount(joules=7.2e6))
    told = energy_brief(replace(full(), energy=EnergyAccount(rows=(plain,), measured_s=61.0)))
    assert told == "two GPU boards (NVML): 42 J per step, 2 kWh in the run"


@cases(
    (replace(BOARDS, idle_w=None), DeviceKind.GPU, "not idle for long enough"),
    (replace(BOARDS, without=1), DeviceKind.GPU, "one GPU board of the run shows no counter"),
    (BOARDS, DeviceKind.CPU, "The steps did not run on these boards"),
    (BOARDS, None, "Whether the steps ran on these boards was not recorded"),
    (replace(BOARDS, source=EnergySource.CPU), DeviceKind.CPU, "RAPL counts all programs"),
)
def test_what_a_figure_is_not_stands_beside_it(row: EnergyRow, device: DeviceKind, told: str) -> None:
    assert told in " ".join(energy_notes(replace(ENERGY, rows=(row,)), device))


def test_one_line_tells_of_boards_that_the_steps_did_not_run_on() -> None:
    on_cpu = replace(full(), energy=ENERGY, subject=replace(full().subject, device=DeviceKind.CPU))
    assert "two GPU boards (NVML), which the steps did not run on: 42 J" in energy_brief(on_cpu)
