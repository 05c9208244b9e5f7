"""driver-start: the time to open the GPUs counts where nothing keeps the driver loaded, and where it is much."""

from typing import Any

import pytest

from tests.builders import chart, recording, trace
from tests.rules.applied import applied
from tests.rules.cases.driver_start import example
from tests.rules.run_facts import divided_run
from tests.rules.verdicts import as_finding, as_healthy, as_not_applicable
from tfdoctor.facts.machine.samples import GpuBoards
from tfdoctor.rules import driver_start
from tfdoctor.terms.verdict import Finding, Healthy, Severity

RUN = divided_run(60_000.0, {})


@pytest.mark.parametrize(("opened", "kind"), [(1000.0, Finding), (999.0, Healthy)])
def test_a_gpu_that_is_initialized_anew_takes_a_second(opened: float, kind: type) -> None:
    assert isinstance(example(opened), kind)


@pytest.mark.parametrize(("total", "kind"), [(240_000.0, Finding), (240_100.0, Healthy)])
def test_a_long_run_does_not_notice_it(total: float, kind: type) -> None:
    assert isinstance(example(2400.0, total_ms=total), kind)


def test_it_is_a_note_without_a_saving_of_the_recorded_run() -> None:
    """Trap: the sampler opened the GPUs meanwhile, so the recorded run may not have waited."""
    found = as_finding(example())
    assert (found.severity, found.effects, found.run_effects) == (Severity.NOTE, (), ())
    assert "2.40 s" in found.summary


def test_a_slow_start_of_a_driver_that_stays_loaded_is_something_else() -> None:
    """Trap: a library on a slow disk takes as long."""
    assert "is on" in as_healthy(example(5000.0, persistence=True)).summary


def test_a_gpu_that_others_compute_on_was_open_before() -> None:
    """Trap: with another client the driver stays loaded, whatever its mode is."""
    assert "is off" in as_healthy(example(2400.0, others=1)).summary


def test_what_the_driver_does_not_tell_is_not_judged() -> None:
    assert "persistence mode" in as_not_applicable(example(persistence=None)).reason
    assert "persistence mode" in as_not_applicable(example(None)).reason


def boards(*rows: Any) -> GpuBoards:
    return chart(trace(), recording(samples=rows)).fact(GpuBoards)


def sample(unix_ns: int, *gpus: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"unix_ns": unix_ns, "gpu": list(gpus), **more}


def gpu(index: int = 0, *, persistence: bool = False, **more: Any) -> dict[str, Any]:
    return {"index": index, "name": "NVIDIA A100", "board": {"persistence": persistence}, **more}


def test_gpus_that_the_run_may_not_use_are_not_judged() -> None:
    driver = {"version": "580.95.05", "opened_ms": 2400.0}
    hidden = gpu(1, persistence=True, visible=False)
    known = boards(sample(1, gpu(visible=True), hidden, driver=driver))
    assert [board.index for board in known.boards] == [0]
    assert "2.40 s" in as_finding(applied(driver_start, known, RUN)).summary


def test_recordings_before_the_reading_of_settings_are_not_judged() -> None:
    known = boards(sample(1, {"index": 0, "name": "NVIDIA A100", "gpu_pct": 99}))
    assert "persistence mode" in as_not_applicable(applied(driver_start, known, RUN)).reason
