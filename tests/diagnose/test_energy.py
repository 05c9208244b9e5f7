"""What findings save of energy: the power of the time that they save, where it was measured."""

from dataclasses import replace
from typing import Any

import pytest

from tests.report.diagnoses import rule
from tfdoctor.diagnose.energy import energy_account, with_energy
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import EnergyAccount, EnergySaving, RunSaving, Saving
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.energy import Energy, EnergyMeter
from tfdoctor.facts.savings.price import EnergyPrices, Epoch
from tfdoctor.terms.kinds import DeviceKind, EnergySource, Phase
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Recurrence, RunEffect, Stage

BOARD = EnergyMeter(
    source=EnergySource.GPU,
    devices=1,
    without=0,
    power_w=300.0,
    seconds=60.0,
    run_j=36_000.0,
    idle_w=100.0,
    waiting_w=20.0,
    busy=0.8,
)
"""Kernels run for 80 % of the time, at 350 W."""

PACKAGES = EnergyMeter(source=EnergySource.CPU, devices=2, without=0, power_w=200.0, seconds=60.0, run_j=24_000.0)


NO_PRICES = EnergyPrices()


def measured(
    *meters: EnergyMeter,
    device: DeviceKind = DeviceKind.GPU,
    prices: EnergyPrices = NO_PRICES,
    epoch: int | None = None,
) -> Chart:
    return Chart([Energy(meters), prices, Device(device, 1, 1), *([Epoch(epoch)] if epoch else [])])


def account_of(chart: Chart, step_ms: float | None = 100.0) -> EnergyAccount:
    account = energy_account(chart, step_ms)
    assert account is not None
    return account


def saving_of(chart: Chart, *effects: Effect, per_step: float = 10.0, **more: Any) -> EnergySaving | None:
    found = Finding(summary="x", evidence=(), remedies=(), effects=effects, **more)
    saved = Saving(ms_per_step=per_step, share=0.1, bound=Bound.EXPECTED, how="")
    run = RunSaving(
        ms=60_000.0,
        share=0.1,
        rated_share=0.1,
        recurs=Recurrence.PER_STEP,
        each_ms=per_step,
        times=6000,
        bound=Bound.EXPECTED,
    )
    (result,) = with_energy(chart, [Result(rule=rule("x"), outcome=found, saving=saved, run=run)])
    return result.energy


def joules(saving: EnergySaving | None) -> float:
    assert saving is not None
    return saving.per_step.joules


def test_steps_epochs_and_the_run_have_the_energy_of_the_mean_power() -> None:
    prices = EnergyPrices(usd_per_kwh=0.36, gco2_per_kwh=400.0)
    account = account_of(measured(BOARD, prices=prices, epoch=1000))
    (row,) = account.rows
    assert row.per_step is not None
    assert row.per_step.joules == pytest.approx(30.0)
    assert row.per_step.usd == pytest.approx(3e-6)
    assert row.per_step.gco2 == pytest.approx(30.0 * 400 / 3.6e6)
    assert row.idle_per_step is not None
    assert row.idle_per_step.joules == pytest.approx(2.0)
    assert row.per_epoch is not None
    assert row.per_epoch.joules == pytest.approx(30_000.0)
    assert row.run.joules == 36_000.0


def test_without_prices_and_steps_there_is_the_energy_of_the_run_alone() -> None:
    (row,) = account_of(measured(BOARD), step_ms=None).rows
    assert (row.per_step, row.idle_per_step, row.per_epoch) == (None, None, None)
    assert (row.run.joules, row.run.usd, row.run.gco2) == (36_000.0, None, None)


def test_compute_time_of_a_gpu_is_saved_at_the_power_with_kernels() -> None:
    saving = saving_of(measured(BOARD), Effect(Stage.DEVICE, 0.9))
    assert joules(saving) == pytest.approx(0.010 * 350)
    assert saving is not None
    assert saving.run is not None
    assert saving.run.joules == pytest.approx(60 * 350)


@pytest.mark.parametrize("stage", [Stage.INPUT, Stage.TRANSFER, Stage.HOST, Stage.BETWEEN])
def test_time_without_kernels_is_saved_at_idle_power(stage: Stage) -> None:
    """Trap: the kernels of a step that waits less are the same, and take the same energy."""
    assert joules(saving_of(measured(BOARD), Effect(stage, 0.0))) == pytest.approx(0.010 * 100)


def test_a_mixture_has_no_figure() -> None:
    assert saving_of(measured(BOARD), Effect(Stage.DEVICE, 0.5), Effect(Stage.HOST, 0.5)) is None
    assert saving_of(measured(BOARD), Effect(Stage.COLLECTIVE, 0.5)) is None


def test_an_unknown_idle_power_leaves_both_unknown() -> None:
    unknown = replace(BOARD, idle_w=None, waiting_w=None)
    assert saving_of(measured(unknown), Effect(Stage.INPUT, 0.0)) is None
    assert saving_of(measured(unknown), Effect(Stage.DEVICE, 0.5)) is None


def test_the_cpu_that_computes_saves_its_mean_power_at_most() -> None:
    cpu = measured(PACKAGES, device=DeviceKind.CPU)
    saving = saving_of(cpu, Effect(Stage.INPUT, 0.0))
    assert joules(saving) == pytest.approx(2.0)
    assert saving is not None
    assert (saving.source, saving.bound) == (EnergySource.CPU, Bound.AT_MOST)


@pytest.mark.parametrize(
    "effect", [Effect(Stage.INPUT, 1.0, overlaps=True), Effect(Stage.INPUT, 0.5, spreads=True)]
)
def test_work_that_moves_to_other_threads_takes_as_much_energy(effect: Effect) -> None:
    assert saving_of(measured(PACKAGES, device=DeviceKind.CPU), effect) is None


def test_boards_that_the_steps_do_not_run_on_save_nothing() -> None:
    on_cpu = measured(BOARD, device=DeviceKind.CPU)
    assert saving_of(on_cpu, Effect(Stage.DEVICE, 0.5)) is None
    assert saving_of(measured(PACKAGES), Effect(Stage.DEVICE, 0.5)) is None


def test_other_time_of_the_run_has_another_power() -> None:
    """Trap: a slow evaluation is not at the power of training steps."""
    evaluation = RunEffect(phase=Phase.EVALUATION, of=ms(50_000.0))
    saving = saving_of(measured(BOARD), Effect(Stage.DEVICE, 0.9), run_effects=(evaluation,))
    assert saving is not None
    assert saving.run is None


def test_what_saves_no_time_saves_no_energy() -> None:
    assert saving_of(measured(BOARD), Effect(Stage.DEVICE, 0.9), per_step=0.0) is None
    healthy = Result(rule=rule("x"), outcome=Healthy(summary="x"))
    assert [*with_energy(measured(BOARD), [healthy])] == [healthy]
