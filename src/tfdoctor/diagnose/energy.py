"""The energy of steps, epochs and the run, and what findings save of it: only where a counter measured it.

A change saves the power of the time that it saves. Of a GPU that is the power while kernels run, where all of the
finding's time is compute, and its idle power, where none is: the kernels of a step that waits less are the same. Of
a CPU that the steps compute on it is the mean power, where the change removes work: work that moves to other
threads takes as much energy there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import EnergyAccount, EnergyAmount, EnergyRow, EnergySaving
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.facts.savings.given import EnergyPrices, Epoch
from tfdoctor.terms.kinds import DeviceKind, EnergySource
from tfdoctor.terms.record import common
from tfdoctor.terms.verdict import Bound, Effect, Finding, Stage

MS_PER_S = 1000.0

# Stages whose exposed time passes without kernels; a GPU waits for others in collectives with a kernel.
IDLE_STAGES = frozenset({Stage.INPUT, Stage.TRANSFER, Stage.HOST, Stage.BETWEEN})


def energy_account(chart: Chart, step_ms: float | None) -> EnergyAccount | None:
    """Return the energy of the run, of whose steps each takes so many ms; None where no counter was read."""
    energy, epoch, prices = chart.get(Energy), chart.get(Epoch), chart.get(EnergyPrices) or EnergyPrices()
    if energy is None:
        return None
    epoch_steps, rows = epoch.steps if epoch else None, []

    def of_steps(number: int | None, power_w: float | None) -> EnergyAmount | None:
        if power_w is None or not step_ms or not number:
            return None
        return _amount(prices, power_w * step_ms / MS_PER_S * number)

    for meter in energy.meters:
        row = common(
            EnergyRow,
            meter,
            per_step=of_steps(1, meter.power_w),
            idle_per_step=of_steps(1, meter.waiting_w),
            per_epoch=of_steps(epoch_steps, meter.power_w),
            run=_amount(prices, meter.run_j),
        )
        rows.append(row)
    measured_s = min(meter.seconds for meter in energy.meters)
    return common(EnergyAccount, prices, rows=tuple(rows), measured_s=measured_s, epoch_steps=epoch_steps)


def _amount(prices: EnergyPrices, joules: float) -> EnergyAmount:
    return EnergyAmount(joules=joules, usd=prices.usd(joules), gco2=prices.gco2(joules))


def with_energy(chart: Chart, results: Iterable[Result]) -> Iterator[Result]:
    """Add to findings what they save of energy; nothing where the power of the time was not measured."""
    energy, device, prices = chart.get(Energy), chart.get(Device), chart.get(EnergyPrices) or EnergyPrices()
    meters = {meter.source: meter for meter in energy.meters} if energy else {}
    for result in results:
        finding, saving = result.outcome, result.saving
        if not meters or not isinstance(finding, Finding) or saving is None or saving.ms_per_step <= 0:
            yield result
            continue
        effects = [effect for effect in finding.effects if effect.names]
        source = EnergySource.GPU if device and device.kind is DeviceKind.GPU else EnergySource.CPU
        power_w = _power(meters.get(source), device, effects)
        if power_w is None:
            yield result
            continue
        of_run = result.run.ms if result.run and not finding.run_effects else 0.0
        saved = EnergySaving(
            source=source,
            power_w=power_w,
            per_step=_amount(prices, power_w * saving.ms_per_step / MS_PER_S),
            run=_amount(prices, power_w * of_run / MS_PER_S) if of_run > 0 else None,
            bound=Bound.AT_MOST if source is EnergySource.CPU else saving.bound,
        )
        yield replace(result, energy=saved)


def _power(meter: EnergyMeter | None, device: Device | None, effects: Sequence[Effect]) -> float | None:
    """Return the power in W that the time of effects has; None where it is unknown."""
    stages = {effect.stage for effect in effects}
    if meter is None or device is None or not stages:
        return None
    if device.kind is DeviceKind.GPU:
        return meter.busy_w if stages == {Stage.DEVICE} else meter.idle_w if stages <= IDLE_STAGES else None
    moves = any(effect.overlaps or effect.spreads for effect in effects)
    return meter.power_w if device.kind is DeviceKind.CPU and not moves else None
