"""The last trial of a recording: it is in the reports that are made of the recording afterwards."""

from tests.trial.kit import *

SAMPLES = Path(__file__).parents[2] / "sample_traces"
TRIED = sure(tried().trials)
UNMEASURED = replace(TRIED, rows=tuple(replace(row, measured=None) for row in TRIED.rows))


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording.open(shutil.copytree(SAMPLES / "cpu-float32-convnet", tmp_path / "run"))


def kept(recording: Recording) -> Path:
    return sure(recording.root) / stored.FILE


def test_a_report_of_the_recording_has_all_that_was_measured(recording: Recording) -> None:
    assert stored.with_last(untried(), recording) == untried()  # it was never tried
    stored.keep(TRIED, recording)
    assert stored.with_last(untried(), recording) == tried()


EARLIER = {
    "ms_per_step": "per_step", "ms": "total", "rated_share": "rated", "each_ms": "each",
    "extrapolated_share": "extrapolated",
}  # fmt: skip
TIMES = ("per_step", "total", "each")


def test_a_trial_of_an_earlier_version_is_read(recording: Recording) -> None:
    """Its promises had other names, and their times a unit."""
    promised = RunSaving(
        ms=900.0, share=0.2, rated_share=0.3, recurs=Recurrence.ONCE, each_ms=900.0, times=1, bound=Bound.AT_MOST,
        extrapolated_share=0.1,
    )  # fmt: skip
    trials = replace(TRIED, rows=(replace(TRIED.rows[0], promised_run=promised), *TRIED.rows[1:]))
    stored.keep(trials, recording)
    path = kept(recording)
    data = json.loads(path.read_text())
    for row in data["rows"]:
        for promise in ("promised", "promised_run"):
            told = {EARLIER.get(name, name): value for name, value in (row[promise] or {}).items()}
            timed = {name: {"value": told[name], "unit": "ms"} for name in TIMES if name in told}
            row[promise] = {**told, **timed} or None
    path.write_text(json.dumps(data))
    assert '"per_step": {"value"' in path.read_text()
    assert stored.with_last(untried(), recording).trials == trials


def test_the_last_trial_counts(recording: Recording) -> None:
    stored.keep(TRIED, recording)
    stored.keep(replace(TRIED, rows=TRIED.rows[1:]), recording)
    again = stored.with_last(untried(), recording)
    assert sure(again.trials).rows == TRIED.rows[1:]
    assert again.results == (untried().results[0], *tried().results[1:])


def test_a_trial_without_figures_leaves_an_earlier_one_with_them(recording: Recording) -> None:
    kept(recording).write_text("{")
    assert stored.keep(UNMEASURED, recording)  # in place of a damaged one
    assert stored.with_last(untried(), recording).trials == UNMEASURED
    assert [stored.keep(TRIED, recording), stored.keep(UNMEASURED, recording)] == [True, False]
    assert stored.with_last(untried(), recording) == tried()


def test_the_report_command_shows_the_measured_column(recording: Recording) -> None:
    stored.keep(TRIED, recording)
    result = CliRunner().invoke(cli.app, ["report", str(recording.root), "--format", "md"])
    assert result.exit_code == 0
    assert "saves 31 % (28 to 34 %)" in kept(recording).with_name("report.md").read_text("utf-8")


ODD_STATE = '{"rows": [{"name": "a", "training": {"state": "odd"}}]}'


@each("{", "[]", "null", '{"rows": 3}', '{"rows": [{"name": 1}]}', ODD_STATE)
def test_a_damaged_file_is_one_sentence(damaged: str, recording: Recording) -> None:
    kept(recording).write_text(damaged)
    with pytest.raises(InputError, match="is damaged: remove it"):
        stored.with_last(untried(), recording)
