"""The energy of steps, epochs and the run, and what findings save of it: only where a counter measured it.

A change saves the power of the time that it saves. Of a GPU that is the power while kernels run, where all of the
finding's time is compute, and its idle power, where none is: the kernels of a step that waits less are the same. Of
a CPU that the steps compute on it is the mean power, where the change removes work: work that moves to other
threads takes as much energy there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import EnergyAccount, EnergyAmount, EnergyRow, EnergySaving
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.energy import Energy
from tfdoctor.facts.savings.price import EnergyPrices, Epoch
from tfdoctor.terms.kinds import DeviceKind, EnergySource
from tfdoctor.terms.record import Record, common
from tfdoctor.terms.verdict import Bound, Effect, Finding, Stage

MS_PER_S = 1000.0

# Stages whose exposed time passes without kernels; a GPU waits for others in collectives with a kernel.
IDLE_STAGES = frozenset({Stage.INPUT, Stage.TRANSFER, Stage.HOST, Stage.BETWEEN})


class MeasuredEnergy(Record):
    """The counters with the prices, the device of the steps, and the time of a step in ms."""

    energy: Energy
    prices: EnergyPrices
    device: DeviceKind | None
    step_ms: float | None
    epoch_steps: int | None

    @classmethod
    def of(cls, chart: Chart, step_ms: float | None) -> Self | None:
        """Gather them; None where no counter was read."""
        energy = chart.get(Energy)
        if energy is None:
            return None
        device, epoch = chart.get(Device), chart.get(Epoch)
        prices = chart.get(EnergyPrices) or EnergyPrices()
        return cls(energy, prices, device.kind if device else None, step_ms, epoch.steps if epoch else None)

    def account(self) -> EnergyAccount:
        """Return the energy of the run."""
        rows = (
            common(
                EnergyRow,
                meter,
                per_step=self._of_steps(1, meter.power_w),
                idle_per_step=self._of_steps(1, meter.waiting_w),
                per_epoch=self._of_steps(self.epoch_steps, meter.power_w),
                run=self._priced(meter.run_j),
            )
            for meter in self.energy.meters
        )
        measured_s = min(meter.seconds for meter in self.energy.meters)
        return common(EnergyAccount, self, self.prices, rows=tuple(rows), measured_s=measured_s)

    def _of_steps(self, number: int | None, power_w: float | None) -> EnergyAmount | None:
        if power_w is None or not self.step_ms or not number:
            return None
        return self._priced(power_w * self.step_ms / MS_PER_S * number)

    def _priced(self, joules: float) -> EnergyAmount:
        return EnergyAmount(joules=joules, usd=self.prices.usd(joules), gco2=self.prices.gco2(joules))

    def with_savings(self, results: Iterable[Result]) -> tuple[Result, ...]:
        """Add to findings what they save of energy; nothing where the power of the time was not measured."""
        return tuple(replace(result, energy=self._saving(result)) for result in results)

    def _saving(self, result: Result) -> EnergySaving | None:
        finding, saving = result.outcome, result.saving
        if not isinstance(finding, Finding) or saving is None or saving.ms_per_step <= 0:
            return None
        source, power_w = self._power([effect for effect in finding.effects if effect.names])
        if power_w is None:
            return None
        of_run = result.run.ms if result.run and not finding.run_effects else 0.0
        return EnergySaving(
            source=source,
            power_w=power_w,
            per_step=self._priced(power_w * saving.ms_per_step / MS_PER_S),
            run=self._priced(power_w * of_run / MS_PER_S) if of_run > 0 else None,
            bound=Bound.AT_MOST if source is EnergySource.CPU else saving.bound,
        )

    def _power(self, effects: Sequence[Effect]) -> tuple[EnergySource, float | None]:
        """Return whose power the time of effects has, and that power in W; None where it is unknown."""
        meters = {meter.source: meter for meter in self.energy.meters}
        if self.device is DeviceKind.GPU:
            gpu, stages = meters.get(EnergySource.GPU), {effect.stage for effect in effects}
            if gpu is None or not stages:
                return EnergySource.GPU, None
            if stages == {Stage.DEVICE}:
                return EnergySource.GPU, gpu.busy_w
            return EnergySource.GPU, gpu.idle_w if stages <= IDLE_STAGES else None
        cpu = meters.get(EnergySource.CPU) if self.device is DeviceKind.CPU else None
        moves = any(effect.overlaps or effect.spreads for effect in effects)
        return EnergySource.CPU, None if cpu is None or moves or not effects else cpu.power_w
