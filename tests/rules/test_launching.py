"""kernel-launch-bound, serial-transfer and host-sync: limits, and what they leave to others."""

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.synthetic import samples
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run
from tfdoctor.engine import examine
from tfdoctor.facts.breakdown import Breakdown
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.host_syncs import HostSyncs
from tfdoctor.facts.steps import Steps
from tfdoctor.facts.transfers import D2H, H2D, PAGEABLE, PINNED, Transfer, Transfers
from tfdoctor.facts.typical import TRACE, Typical
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules, host_sync, kernel_launch_bound, serial_transfer
from tfdoctor.trace import xplane
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Stage

LARGE = Network(batch=256, size=128, width=16)

RUNS = {
    "launch": Run(device="a100", precision="bf16", dispatch_us=150.0, network=Network(batch=1)),
    "copy": Run(device="v100", copy="pageable", network=LARGE),
    "hidden": Run(device="t4", precision="fp16", overlap=True, copy="pageable"),
    "input": Run(device="a100", precision="tf32", input_ms=3.0),
}

TRUTH = {
    "launch": {"kernel-launch-bound"},
    "copy": {"serial-transfer"},
    "hidden": set(),
    "input": set(),
}
"""Which of the three must be found in which synthetic run; in `input` the GPU waits for batches."""


@pytest.mark.parametrize("name", RUNS)
def test_synthetic_runs_show_what_was_built_into_them(name: str, tmp_path: Path) -> None:
    samples.write(RUNS[name], tmp_path)
    recording = Recording.open(tmp_path)
    chart = Chart([xplane.read(recording.traces[0]), recording])
    names = {"kernel-launch-bound", "serial-transfer", "host-sync"}
    results = examine(chart, [rule for rule in all_rules() if rule.name in names])
    outcomes = {one.rule.name: one.outcome for one in results}
    assert all(isinstance(one, Finding | Healthy) for one in outcomes.values())
    found = {name for name, one in outcomes.items() if isinstance(one, Finding)}
    if name != "input":  # its batch, which is small, is copied beside no kernel, too
        assert found == TRUTH[name]
    assert "kernel-launch-bound" not in found or name == "launch"
    assert "host-sync" not in found


def steps(count: int = 10) -> Typical:
    return Typical.of(Steps.uniform(count, 10.0))


@pytest.mark.parametrize(("exposed", "kind"), [(0.2, Finding), (0.19, Healthy)])
def test_copies_beside_no_kernel_from_two_percent_on(exposed: float, kind: type) -> None:
    copy = Transfer(H2D, 1.0, 5.0, exposed, 1e7, 1e9, {PINNED: 1e7})
    step = Breakdown.of(transfer=exposed, device=10.0 - exposed)
    assert isinstance(serial_transfer.check(Transfers((copy,)), steps(), step), kind)


def test_pageable_memory_and_the_direction_are_told() -> None:
    up = Transfer(H2D, 1.0, 2.0, 2.0, 1e7, 1e9, {PAGEABLE: 1e7})
    down = Transfer(D2H, 2.0, 3.0, 3.0, None, None, {})
    step = Breakdown.of(transfer=5.0, device=5.0)
    found = serial_transfer.check(Transfers((up,)), steps(), step)
    assert isinstance(found, Finding)
    assert "from pageable memory" in found.summary
    back = serial_transfer.check(Transfers((up, down)), steps(), step)
    assert isinstance(back, Finding)
    assert back.summary.startswith("Copies device to host")
    assert "read it every 100 steps" in back.remedies[0].action
    assert {effect.bound for effect in back.effects} == {Bound.AT_MOST}


@pytest.mark.parametrize(
    ("idle", "often", "count", "kind"),
    [
        (0.5, 1.0, 10, Finding),
        (0.49, 1.0, 10, Healthy),
        (5.0, 0.8, 10, Healthy),
        (5.0, 0.9, 10, Finding),
        (5.0, 1.0, 2, NotApplicable),
    ],
)
def test_a_value_that_is_read_in_each_step(
    idle: float, often: float, count: int, kind: type
) -> None:
    """Trap: a loss that is printed every few steps; a trace of one step, which the profiler ends."""
    syncs = HostSyncs(1.0, often, host_ms=idle / 2, between_ms=idle / 2)
    step = Breakdown.of(host=5.0, device=5.0)
    found = host_sync.check(syncs, steps(count), step)
    assert isinstance(found, kind)
    if isinstance(found, Finding):
        assert {effect.stage for effect in found.effects} == {Stage.HOST, Stage.BETWEEN}


@pytest.mark.parametrize(("launching", "kind"), [(1.0, Finding), (0.99, Healthy)])
def test_idle_while_the_host_launches(launching: float, kind: type) -> None:
    gaps, _, _ = kernel_launch_bound._example(launching)  # noqa: SLF001 - its own example
    step = Breakdown.of(host=launching, device=10.0 - launching)
    found = kernel_launch_bound.check(gaps, steps(), step)
    assert isinstance(found, kind)


def test_without_steps_nothing_is_said() -> None:
    whole = replace(steps(), unit=TRACE, why_no_steps="no step is marked")
    gaps, _, step = kernel_launch_bound._example(5.0)  # noqa: SLF001 - its own example
    for verdict in (
        kernel_launch_bound.check(gaps, whole, step),
        serial_transfer.check(Transfers(()), whole, step),
        host_sync.check(HostSyncs(1.0, 1.0), whole, step),
    ):
        assert verdict == NotApplicable(reason="no step is marked")
