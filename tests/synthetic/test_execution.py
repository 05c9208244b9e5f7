"""The rules of launching, copying and reading on synthetic GPUs: what was built in is found, no more."""

from pathlib import Path

import pytest

from scripts.synthetic import samples
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run
from tfdoctor.diagnose.engine import examine
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding, Healthy
from tfdoctor.trace import xplane

LARGE = Network(batch=256, size=128, width=16)

RUNS = {
    "launch": Run(device="a100", precision="bf16", dispatch_us=150.0, network=Network(batch=1)),
    "copy": Run(device="v100", copy="pageable", network=LARGE),
    "hidden": Run(device="t4", precision="fp16", overlap=True, copy="pageable"),
    "input": Run(device="a100", precision="tf32", input_ms=3.0),
}

TRUTH = {"launch": {"kernel-launch-bound"}, "copy": {"serial-transfer"}, "hidden": set(), "input": set()}
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
