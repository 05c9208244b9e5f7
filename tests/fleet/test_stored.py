"""A stored report in a fleet: its row, without the recording."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet_recordings import SAMPLES
from tests.report import diagnoses
from tfdoctor.fleet.examine import examine
from tfdoctor.fleet.places import FleetPlan, RecordingJob, found
from tfdoctor.report.formats import json as report_json
from tfdoctor.rulebook.config import Config


@pytest.fixture
def job(tmp_path: Path) -> RecordingJob:
    path = tmp_path / "resnet" / "report.json"
    path.parent.mkdir()
    path.write_text(report_json.render(diagnoses.full()), "utf-8")
    ((one,), _) = found([str(tmp_path)])
    return RecordingJob(found=one, plan=FleetPlan(config=Config(), settings="", timeout_s=60.0))


def test_its_row_has_what_it_says(job: RecordingJob, tmp_path: Path) -> None:
    made = diagnoses.full()
    done = examine(job, tmp_path)
    assert (done.run.failure, done.run.hours) == ("", None)
    assert done.run.step_ms == made.steps.shown_ms
    assert made.together is not None
    assert done.run.saving_share == made.together.share
    assert done.run.findings[0].rule == made.results[0].rule.name
    assert "<html" in done.page


def test_its_row_has_the_time_that_it_says(job: RecordingJob, tmp_path: Path) -> None:
    made, moment = diagnoses.full(), "2026-11-18T11:06:40Z"
    timed = replace(made, subject=replace(made.subject, recorded=moment))
    Path(job.found.place).write_text(report_json.render(timed), "utf-8")
    assert examine(job, tmp_path).run.recorded == moment


def test_a_trace_of_another_profiler_has_the_time_of_its_run_folder(job: RecordingJob, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "plugins" / "profile" / "2026_11_01_10_20_30"
    folder.mkdir(parents=True)
    trace = next((SAMPLES / "synthetic-tpu-v5e-padded").rglob("*.xplane.pb"))
    shutil.copy(trace, folder)
    ((one,), _) = found([str(tmp_path / "logs")])
    done = examine(replace(job, found=one), tmp_path)
    assert (done.run.failure, done.run.recorded) == ("", "2026-11-01T10:20:30")


def test_one_that_is_known_is_no_failure(job: RecordingJob, tmp_path: Path) -> None:
    """Or the fork server would take it for one that lacked memory."""
    digest = examine(job, tmp_path).run.digest
    again = examine(replace(job, known=(digest,)), tmp_path)
    assert (again.known, again.run.digest, again.run.failure) == (True, digest, "")


def test_its_step_is_the_one_that_its_page_begins_with(job: RecordingJob, tmp_path: Path) -> None:
    made = diagnoses.full()
    assert made.steps.shown_ms
    faster = replace(made.conditions, untraced_ms=made.steps.shown_ms / 1.2)
    Path(job.found.place).write_text(report_json.render(replace(made, conditions=faster)), "utf-8")
    step_ms = examine(job, tmp_path).run.step_ms
    assert step_ms == pytest.approx(made.steps.shown_ms / 1.2, rel=1e-3)


def test_a_run_that_was_ended_early_counts_by_its_steps(job: RecordingJob, tmp_path: Path) -> None:
    made = diagnoses.run()
    assert made.run is not None
    for early, whole in ((False, True), (True, False)):
        one = replace(made, run=replace(made.run, ended_early=early))
        Path(job.found.place).write_text(report_json.render(one), "utf-8")
        assert examine(job, tmp_path).run.is_whole is whole
    nothing = diagnoses.no_steps().steps
    one = replace(made, run=replace(made.run, ended_early=True), steps=nothing, together=None)
    Path(job.found.place).write_text(report_json.render(one), "utf-8")
    assert examine(job, tmp_path).run.is_whole  # nothing else is known


def test_its_names_cannot_be_removed(job: RecordingJob, tmp_path: Path) -> None:
    done = examine(replace(job, plan=replace(job.plan, scrubbed=True)), tmp_path)
    assert (done.run.failure, done.page) == ("unreadable", "")
    assert "--scrub needs its recording" in done.run.error


def test_a_damaged_one_says_what_is_damaged(job: RecordingJob, tmp_path: Path) -> None:
    Path(job.found.place).write_text('{"schema": 1, "tfdoctor": "", "steps": {}}')
    assert "is damaged (results: it is missing)" in examine(job, tmp_path).run.error
