"""A stored report in a fleet: its row, without the recording."""

from benchmarks.fleet_recordings import SAMPLES
from tests.kit import *
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.fleet.examine import examine
from tfdoctor.fleet.places import FleetPlan, RecordingJob, found
from tfdoctor.report.formats import json as report_json
from tfdoctor.rulebook.config import Config

MADE, OF_RUN = diagnoses.full(), diagnoses.run()
MOMENT = "2026-11-18T11:06:40Z"


@pytest.fixture
def job(tmp_path: Path) -> RecordingJob:
    path = tmp_path / "resnet" / "report.json"
    path.parent.mkdir()
    path.write_text(report_json.render(MADE), "utf-8")
    ((one,), _) = found([str(tmp_path)])
    return RecordingJob(found=one, plan=FleetPlan(config=Config(), settings="", timeout_s=60.0))


def test_its_row_has_what_it_says(job: RecordingJob, tmp_path: Path) -> None:
    done = examine(job, tmp_path)
    assert (done.run.failure, done.run.hours) == ("", None)
    assert done.run.step_ms == MADE.steps.shown_ms
    assert MADE.together is not None
    assert (done.run.saving_share, done.run.findings[0].rule) == (MADE.together.share, MADE.results[0].rule.name)
    assert "<html" in done.page
    # Known, it is no failure, or the fork server would take it for one that lacked memory:
    again = examine(replace(job, known=(done.run.digest,)), tmp_path)
    assert (again.known, again.run.digest, again.run.failure) == (True, done.run.digest, "")


def account(**changes: Any) -> Diagnosis:
    assert OF_RUN.run is not None
    return replace(OF_RUN, run=replace(OF_RUN.run, **changes))


FASTER = MADE.steps.shown_ms / 1.2 if MADE.steps.shown_ms else None


@cases(
    (replace(MADE, subject=replace(MADE.subject, recorded=MOMENT)), "recorded", MOMENT),
    # The step is the one that its page begins with:
    (replace(MADE, conditions=replace(MADE.conditions, untraced_ms=FASTER)), "step_ms", FASTER),
    # A run that was ended early counts by its steps, where these are known:
    (account(ended_early=False), "is_whole", True),
    (account(ended_early=True), "is_whole", False),
    (replace(account(ended_early=True), steps=diagnoses.no_steps().steps, together=None), "is_whole", True),
)
def test_a_field_of_its_row(report: Diagnosis, field: str, told: object, job: RecordingJob, tmp_path: Path) -> None:
    Path(job.found.place).write_text(report_json.render(report), "utf-8")
    shown = getattr(examine(job, tmp_path).run, field)
    assert shown == (pytest.approx(told, rel=1e-3) if field == "step_ms" else told)


def test_a_trace_of_another_profiler_has_the_time_of_its_run_folder(job: RecordingJob, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "plugins" / "profile" / "2026_11_01_10_20_30"
    folder.mkdir(parents=True)
    trace = next((SAMPLES / "synthetic-tpu-v5e-padded").rglob("*.xplane.pb"))
    shutil.copy(trace, folder)
    ((one,), _) = found([str(tmp_path / "logs")])
    done = examine(replace(job, found=one), tmp_path)
    assert (done.run.failure, done.run.recorded) == ("", "2026-11-01T10:20:30")


def test_its_names_cannot_be_removed_and_a_damaged_one_says_what_is(job: RecordingJob, tmp_path: Path) -> None:
    done = examine(replace(job, plan=replace(job.plan, scrubbed=True)), tmp_path)
    assert (done.run.failure, done.page) == ("unreadable", "")
    assert "--scrub needs its recording" in done.run.error
    Path(job.found.place).write_text('{"schema": 1, "tfdoctor": "", "steps": {}}')
    assert "is damaged (steps.source: it is missing)" in examine(job, tmp_path).run.error
