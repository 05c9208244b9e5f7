"""A recording that goes to a bucket when the script has ended."""

from pathlib import Path

import fsspec
import pytest

from tests.remote import servers


def test_a_recording_is_uploaded_and_can_be_reported_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('done')\n")
    with servers.s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
        filesystem.mkdir("runs")
        words = ("profile", "--out", "s3://runs/train", "--format", "json", str(script))
        done = servers.tfdoctor(*words, **environment)
        assert done.returncode == 0, done.stderr
        assert "uploading s3://runs/train/report.json" in done.stderr
        assert "recorded the run in s3://runs/train\n" in done.stderr
        assert "tfdoctor-" not in done.stderr  # a folder that is gone when the user reads it
        uploaded = {path.removeprefix("runs/train/") for path in filesystem.find("runs/train")}
        assert {"tfdoctor.json", "run.jsonl", "report.json"} <= uploaded
        again = servers.tfdoctor("report", "s3://runs/train", "--out", str(tmp_path / "out"), **environment)
        assert again.returncode == 0, again.stderr
        assert (tmp_path / "out" / "report.html").exists()
