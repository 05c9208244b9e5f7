"""The last trial of a recording: it is in the reports that are made of the recording afterwards."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.report.diagnoses import full, tried
from tfdoctor import cli
from tfdoctor.diagnosis.savings import RunSaving
from tfdoctor.recording import Recording
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.verdict import Bound, Recurrence
from tfdoctor.trial import stored

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording.open(shutil.copytree(SAMPLES / "cpu-float32-convnet", tmp_path / "run"))


def test_a_report_of_the_recording_has_all_that_was_measured(recording: Recording) -> None:
    stored.keep(tried().trials, recording)
    assert stored.with_last(full(), recording) == tried()


EARLIER = {
    "ms_per_step": "per_step",
    "ms": "total",
    "rated_share": "rated",
    "each_ms": "each",
    "extrapolated_share": "extrapolated",
}
TIMES = ("per_step", "total", "each")


def test_a_trial_of_an_earlier_version_is_read(recording: Recording) -> None:
    """Its promises had other names, and their times a unit."""
    trials = tried().trials
    assert trials is not None
    assert recording.root is not None
    promised = RunSaving(
        ms=900.0, share=0.2, rated_share=0.3, recurs=Recurrence.ONCE, each_ms=900.0, times=1, bound=Bound.AT_MOST,
        extrapolated_share=0.1,
    )  # fmt: skip
    trials = replace(trials, rows=(replace(trials.rows[0], promised_run=promised), *trials.rows[1:]))
    stored.keep(trials, recording)
    path = recording.root / stored.FILE
    data = json.loads(path.read_text())
    for row in data["rows"]:
        for promise in ("promised", "promised_run"):
            told = {EARLIER.get(name, name): value for name, value in (row[promise] or {}).items()}
            timed = {name: {"value": told[name], "unit": "ms"} for name in TIMES if name in told}
            row[promise] = {**told, **timed} or None
    path.write_text(json.dumps(data))
    assert '"per_step": {"value"' in path.read_text()
    assert stored.with_last(full(), recording).trials == trials


def test_a_recording_that_was_never_tried_has_no_trials(recording: Recording) -> None:
    assert stored.with_last(full(), recording) == full()


def test_the_last_trial_counts(recording: Recording) -> None:
    trials = tried().trials
    assert trials is not None
    stored.keep(trials, recording)
    stored.keep(replace(trials, rows=trials.rows[1:]), recording)
    again = stored.with_last(full(), recording)
    assert again.trials is not None
    assert again.trials.rows == trials.rows[1:]
    assert again.results[0].measured is None
    assert again.results[1:] == tried().results[1:]


def test_a_trial_without_figures_leaves_an_earlier_one_with_them(recording: Recording) -> None:
    trials = tried().trials
    assert trials is not None
    none = replace(trials, rows=tuple(replace(row, measured=None) for row in trials.rows))
    assert stored.keep(none, recording)  # there is no earlier one
    assert stored.keep(trials, recording)
    assert not stored.keep(none, recording)
    assert stored.with_last(full(), recording) == tried()


def test_a_trial_without_figures_replaces_a_damaged_one(recording: Recording) -> None:
    trials = tried().trials
    assert trials is not None
    assert recording.root is not None
    (recording.root / stored.FILE).write_text("{")
    none = replace(trials, rows=())
    assert stored.keep(none, recording)
    assert stored.with_last(full(), recording).trials == none


def test_the_report_command_shows_the_measured_column(recording: Recording) -> None:
    assert recording.root is not None
    stored.keep(tried().trials, recording)
    result = CliRunner().invoke(cli.app, ["report", str(recording.root), "--format", "md"])
    assert result.exit_code == 0
    assert "saves 31 % (28 to 34 %)" in (recording.root / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "[]",
        "null",
        '{"rows": 3}',
        '{"rows": [{"name": 1}]}',
        '{"rows": [{"name": "a", "training": {"state": "odd"}}]}',
    ],
)
def test_a_damaged_file_is_one_sentence(recording: Recording, damaged: str) -> None:
    assert recording.root is not None
    (recording.root / stored.FILE).write_text(damaged)
    with pytest.raises(InputError, match="is damaged: remove it"):
        stored.with_last(full(), recording)
