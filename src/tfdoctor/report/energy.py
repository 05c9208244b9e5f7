"""The energy of steps, epochs and the run as text, and what findings save of it; nothing without a counter."""

from collections.abc import Iterator

from tfdoctor.diagnosis.savings import EnergyAccount, EnergyAmount, EnergyRow, EnergySaving
from tfdoctor.report.tables import Grid
from tfdoctor.terms.humanize import counted, dollars, energy, percent, quantity
from tfdoctor.terms.kinds import DeviceKind, EnergySource
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import grams_co2, watts
from tfdoctor.terms.verdict import Bound

# What a counter counts, and whose it is.
COUNTED = {EnergySource.GPU: ("GPU board", "NVML"), EnergySource.CPU: ("CPU package", "RAPL")}


class EnergySection(Record, kw_only=True):
    """The energy: a table with a row for each kind of counter, remarks, and one line that says the most."""

    grid: Grid
    notes: tuple[str, ...]
    brief: str


def section(account: EnergyAccount | None, device: DeviceKind | None) -> EnergySection | None:
    """Return the energy of a diagnosis whose steps ran on a device; None where no counter measured it."""
    if account is None or not account.rows:
        return None
    columns = ["counter", "power", "per step", "without kernels", *_epoch(account), "whole run"]
    rows = tuple(tuple(_cells(row, account)) for row in account.rows)
    kinds = ("text", *("number",) * (len(columns) - 1))
    return EnergySection(
        grid=Grid(tuple(columns), kinds, rows),
        notes=tuple(_notes(account, device)),
        brief="; ".join(_brief(row, device) for row in account.rows),
    )


def _epoch(account: EnergyAccount) -> list[str]:
    steps = account.epoch_steps
    return [f"per epoch of {steps:,} steps"] if steps else []


def _cells(row: EnergyRow, account: EnergyAccount) -> Iterator[str]:
    yield _counter(row)
    yield quantity(watts(row.power_w))
    yield _amount(row.per_step)
    idle = _amount(row.idle_per_step)
    yield f"at least {idle}" if row.idle_per_step else idle
    if account.epoch_steps:
        yield _amount(row.per_epoch)
    yield _amount(row.run)


def _counter(row: EnergyRow) -> str:
    """Return what was counted: "2 GPU boards (NVML)"."""
    noun, counter = COUNTED[row.source]
    return f"{counted(row.devices, noun)} ({counter})"


def _amount(amount: EnergyAmount | None) -> str:
    """Return an energy, with money and CO2 where their prices were given: "3.4 Wh ($0.001, 1.3 g CO2)"."""
    if amount is None:
        return "unknown"
    also = [] if amount.usd is None else [dollars(amount.usd)]
    also += [] if amount.gco2 is None else [quantity(grams_co2(amount.gco2))]
    return f"{energy(amount.joules)} ({', '.join(also)})" if also else energy(amount.joules)


def _brief(row: EnergyRow, device: DeviceKind | None) -> str:
    step = f"{_amount(row.per_step)} per step, " if row.per_step else ""
    aside = row.source is EnergySource.GPU and device not in {None, DeviceKind.GPU}
    unused = ", which the steps did not run on" if aside else ""
    return f"{_counter(row)}{unused}: {step}{_amount(row.run)} in the run"


def _notes(account: EnergyAccount, device: DeviceKind | None) -> Iterator[str]:
    yield (
        f"The mean power of {account.measured_s:.0f} s of training steps, by counters that are read once a second; "
        "a step's energy is that power for its time."
    )
    for row in account.rows:
        if row.source is EnergySource.GPU:
            yield from _about_boards(row, device)
        else:
            yield "RAPL counts all programs on the processor, and neither its memory nor the rest of the machine."


def _about_boards(row: EnergyRow, device: DeviceKind | None) -> Iterator[str]:
    if device is None:
        yield "Whether the steps ran on these boards was not recorded."
    elif device is not DeviceKind.GPU:
        yield "The steps did not run on these boards: it is what they took meanwhile."
    if row.without:
        yield f"{counted(row.without, 'GPU board')} of the run shows no counter and is not in these figures."
    if row.idle_w is None or row.busy is None:
        yield "The boards were not idle for long enough to tell their idle power."
        return
    yield (
        f"Kernels ran for {percent(row.busy)} of that time. The time without them is counted at the "
        f"{quantity(watts(row.idle_w))} of the boards while nothing runs: at least, as they take more then."
    )


def saves(saving: EnergySaving | None) -> str:
    """Return what a finding saves of energy, as a sentence; "" where that was not measured."""
    if saving is None:
        return ""
    most = "at most " if saving.bound is Bound.AT_MOST else ""
    run = f", {_amount(saving.run)} of the run" if saving.run else ""
    noun, _ = COUNTED[saving.source]
    power = quantity(watts(saving.power_w))
    return f"This saves {most}{_amount(saving.per_step)} of each step{run}, at {power} of the {noun}s."


def saves_briefly(saving: EnergySaving | None) -> str:
    """Return what a finding saves of energy, of the run where it is known; "" where that was not measured."""
    if saving is None:
        return ""
    most = "at most " if saving.bound is Bound.AT_MOST else ""
    if saving.run:
        return f"{most}{_amount(saving.run)} of the run"
    return f"{most}{_amount(saving.per_step)} of each step"
