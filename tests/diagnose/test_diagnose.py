"""From a recording to a diagnosis: over the real traces, and where there is little to read.

The real traces lie beside the project where its makers work; elsewhere their tests are skipped.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.builders import manifest
from tfdoctor.diagnose.diagnose import chart_of, diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import Missing
from tfdoctor.recording.program import ProgramRecord, RecordedLayer
from tfdoctor.rules import all_rules
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, Severity

TRACES = Path(__file__).parents[2].parent / "shared" / "traces"
NAMES = sorted(p.name for p in TRACES.glob("*") if list(p.rglob("*.xplane.pb")))
READABLE = [name for name in NAMES if "corrupt" not in name]

real = pytest.mark.skipif(not NAMES, reason="the real traces are not here")


@cache
def of(name: str) -> Diagnosis:
    return diagnose(Recording.open(TRACES / name), all_rules(), name, ask_xprof=False)


def result(name: str, rule: str) -> Result:
    return next(one for one in of(name).results if one.rule.name == rule)


# The real traces


@real
@pytest.mark.parametrize("name", READABLE)
def test_every_rule_has_an_answer(name: str) -> None:
    found = of(name)
    errors = [r.outcome for r in found.results if isinstance(r.outcome, Errored)]
    assert errors == []
    assert len(found.results) == len(all_rules())


@real
@pytest.mark.parametrize("name", READABLE)
def test_what_is_shown_adds_up(name: str) -> None:
    steps = of(name).steps
    assert bool(steps.rows) != bool(steps.missing)
    for row in steps.rows:
        assert sum(row.parts_ms.values()) == pytest.approx(row.total_ms)
        assert min(row.parts_ms.values()) >= 0
    if steps.breakdown_ms and of(name).operations:
        total = sum(row.self_ms for row in of(name).operations)
        assert total == pytest.approx(steps.breakdown_ms["device"])


@real
@pytest.mark.parametrize(
    ("name", "step", "kernels", "copies", "waiting"),
    [
        ("v100x8-bert-partial-step", 21.3, 14.9, 0.035, 2.2),
        ("tf24-v100-input-wait", 62_185, 41.6, 22.6, 62_116),
        ("tf24-v100-resnet50-fp32", 406.0, 363.7, 28.8, None),
        ("tf23-p4-alexnet-fp32", 201.0, 160.3, 24.9, 0.134),
        ("tf24-rtx2060-launch-bound", 10.6, 1.34, 0.04, 0.13),
        ("tf24-t4-lenet", 9.0, 5.7, 0.088, None),
        ("tf2-macos-cpu-lenet", 89.2, None, 0.0, 0.07),
        ("tf24-laptop-gpu-no-cupti", 252.5, 0.0, 0.0, 0.072),
    ],
)
def test_the_figures_are_those_measured_by_hand(
    name: str, step: float, kernels: float | None, copies: float, waiting: float | None
) -> None:
    """As the traces' README has them; None where the wait lies outside of the step, or no kernels are."""
    found = of(name).steps
    assert found.median_ms == pytest.approx(step, rel=0.05)
    assert found.breakdown_ms
    assert found.breakdown_ms["transfer"] == pytest.approx(copies, rel=0.05)
    if kernels is not None:
        assert found.breakdown_ms["device"] == pytest.approx(kernels, rel=0.05)
    if waiting is not None:
        assert found.breakdown_ms["input"] == pytest.approx(waiting, rel=0.05)


@real
def test_a_minute_of_waiting_is_found_and_hides_the_precision() -> None:
    name = "tf24-v100-input-wait"
    assert isinstance(result(name, "input-bound").outcome, Finding)
    hidden = result(name, "float32-matmul")
    assert isinstance(hidden.outcome, Finding)
    assert of(name).steps.too_few  # a single step says nothing of others
    assert (hidden.saving, hidden.severity, of(name).together) == (None, Severity.NOTE, None)


@real
def test_float32_on_a_v100_is_found_and_on_a_p4_is_not() -> None:
    found = result("tf24-v100-resnet50-fp32", "float32-matmul")
    assert isinstance(found.outcome, Finding)
    assert "float16" in found.outcome.remedies[0].code
    model = chart_of(Recording.open(TRACES / "tf24-v100-resnet50-fp32")).fact(StepModel)
    products, kernels, step = 226, 363.7, 406  # ms; what is no product moves half the bytes
    at_most = (products * 7 / 8 + (kernels - products) / 2) / step
    assert model.saving(found.outcome.effects) / model.step_ms == pytest.approx(at_most, rel=0.05)
    assert isinstance(result("tf23-p4-alexnet-fp32", "float32-matmul").outcome, NotApplicable)


@real
@pytest.mark.parametrize(
    "name", ["tf24-v100-resnet50-fp32", "tf23-p4-alexnet-fp32", "tf24-t4-lenet", "tf2-macos-cpu-lenet"]
)
def test_compute_bound_steps_are_not_called_input_bound(name: str) -> None:
    assert isinstance(result(name, "input-bound").outcome, Healthy)


@real
def test_a_step_that_launching_limits_is_not_promised_faster_kernels() -> None:
    outcome = result("tf24-rtx2060-launch-bound", "float32-matmul").outcome
    assert isinstance(outcome, Healthy)


@real
def test_batches_from_a_python_generator_are_found() -> None:
    found = result("v100x8-bert-partial-step", "python-input")
    assert isinstance(found.outcome, Finding)
    assert "Generator" in found.outcome.summary
    assert of("v100x8-bert-partial-step").subject.devices_visible == 8


@real
def test_kernels_that_were_not_recorded_are_said_to_be_missing_and_how_to_get_them() -> None:
    found = of("tf24-laptop-gpu-no-cupti")
    said = [text for text in found.unrecorded if "kernels were not recorded" in text]
    assert said
    assert "CUPTI" in said[0]
    assert "LD_LIBRARY_PATH" in said[0]
    assert found.trust.level == "low"
    assert found.steps.breakdown_ms
    assert found.steps.breakdown_ms["unknown"] == pytest.approx(252.4, rel=0.01)


@real
def test_without_kernels_nobody_claims_that_they_are_healthy() -> None:
    needing = {r.rule.name for r in of("tf24-laptop-gpu-no-cupti").results if isinstance(r.outcome, Healthy)}
    of_the_host = {"between-steps", "eager-step", "memory-headroom", "recompilation", "retracing"}
    assert needing - of_the_host <= {
        "hot-stage",
        "input-bound",
        "missing-prefetch",
        "per-element-map",
        "python-input",
        "sequential-map",
        "serial-batch",
        "serial-reads",
        "slow-storage",
        "small-files",
    }


@real
def test_a_damaged_trace_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError) as refused:
        of("tpu-v6e-jax-corrupt")
    assert re.fullmatch(r"[^\n]+\.", str(refused.value))


# Where there is little to read


def empty(**parts: Any) -> Diagnosis:
    given: dict[str, Any] = {
        "root": None,
        "manifest": None,
        "traces": (),
        "program": None,
        "samples": (),
        "notes": (),
    }
    return diagnose(Recording(**(given | parts)), all_rules(), "t")


def test_a_recording_without_a_trace_is_diagnosed_all_the_same() -> None:
    why = "the run ended before the traced window began"
    found = empty(manifest=manifest(missing=(Missing("trace", why),)))
    assert found.steps.missing == why
    assert (found.xprof, found.together, found.pipeline, found.operations) == (None, None, (), ())
    assert (found.pipeline_missing, found.operations_missing) == (why, why)
    assert not any(isinstance(r.outcome, Errored | Healthy) for r in found.results)
    assert found.trust.level == "low"


def test_a_program_without_a_trace_claims_nothing_about_its_run() -> None:
    layer = RecordedLayer("bn", "BatchNormalization")
    found = empty(program=ProgramRecord(layers=(layer,)), manifest=manifest())
    assert not any(isinstance(r.outcome, Healthy) for r in found.results)


@pytest.mark.parametrize("hosts", [1, 2])
def test_hosts_are_compared_where_there_are_several(hosts: int, tmp_path: Path) -> None:
    traces = []
    for n in range(hosts):
        path = tmp_path / f"host{n}.xplane.pb"
        path.write_bytes(b"\x0a\x0d\x08\x01\x12\x09/host:CPU")
        traces.append(path)
    found = diagnose(Recording(None, None, tuple(traces), None, (), ("a note",)), all_rules(), "t", ask_xprof=False)
    assert found.unrecorded[0] == "a note"
    assert (found.hosts is not None) is (hosts == 2)
