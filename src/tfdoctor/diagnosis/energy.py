"""The energy that counters measured, and what findings save of it; with money and CO2 where prices were given."""

from tfdoctor.terms.json_form import Count, Number, Share, Sometimes
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Bound


class EnergyAmount(Record, kw_only=True):
    """An energy in joules; in US dollars and grams of CO2 where the price of a kWh was given."""

    joules: Number = field(name="j")
    usd: Sometimes[Number | None] = None
    gco2: Sometimes[Number | None] = None


class EnergyRow(Record, kw_only=True):
    """What the counters of one kind tell.

    ``idle_per_step`` is the part of ``per_step`` that idle power takes while no kernel runs: at least, as boards
    take more between kernels than between runs. None is unknown.
    """

    source: EnergySource
    devices: Count = field(name="device_count")
    without: Count = field(default=0, name="devices_without_counter")
    power_w: Number  # mean while training
    idle_w: Number | None = None
    busy: Share | None = None  # share of the time with kernels
    per_step: EnergyAmount | None = None
    idle_per_step: EnergyAmount | None = None
    per_epoch: EnergyAmount | None = None
    run: EnergyAmount  # from the first reading to the last


class EnergyAccount(Record, kw_only=True):
    """The energy of the run, by its counters, and the prices of a kWh that the user gave."""

    rows: tuple[EnergyRow, ...]
    measured_s: Number  # time of training that the mean power is of
    epoch_steps: Count | None = None
    usd_per_kwh: Sometimes[Number | None] = None
    gco2_per_kwh: Sometimes[Number | None] = None


class EnergySaving(Record, kw_only=True):
    """What a change saves of energy: time at a power that was measured."""

    source: EnergySource
    power_w: Number  # of the time that is saved
    per_step: EnergyAmount
    run: EnergyAmount | None = None  # of the recorded run
    bound: Bound
