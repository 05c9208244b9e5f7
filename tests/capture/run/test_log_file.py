"""The files of the account: what was written stays readable, whatever the disk does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture import agent

log_file = agent.load("run.log_file")


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return log_file.LogFile(str(tmp_path))


def written(file: Any) -> list[Any]:
    return [json.loads(line) for line in Path(file.path).read_text().splitlines()]


def test_lines_are_added(file: Any) -> None:
    file.append([{"kind": "call", "name": "größe\n\u2028"}])
    file.append([])
    file.append([{"kind": "end"}])
    assert written(file) == [{"kind": "call", "name": "größe\n\u2028"}, {"kind": "end"}]
    assert file.size == Path(file.path).stat().st_size


def test_what_is_not_over_is_replaced(file: Any) -> None:
    file.replace([{"kind": "bucket", "end": 1}])
    file.replace([{"kind": "bucket", "end": 2}])
    assert json.loads(Path(file.now).read_text())["end"] == 2
    file.settle()
    file.settle()
    assert not Path(file.now).exists()


def test_a_full_file_gets_buckets_and_the_end_only(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MOST_BYTES", 100)
    file.append([{"kind": "stack", "id": 1, "at": "a" * 100}])
    file.append([{"kind": kind} for kind in ("span", "stack", "bucket", "end")])
    assert [line["kind"] for line in written(file)] == ["stack", "bucket", "end"]


def test_what_a_broken_disk_refuses_waits(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append([{"kind": "call"}])
    path, file.path = file.path, "/nowhere/run.jsonl"
    with pytest.raises(OSError, match="nowhere"):
        file.append([{"kind": "bucket", "end": 1}])
    monkeypatch.setattr(log_file, "MOST_WAITING", 60)
    with pytest.raises(OSError, match="nowhere"):
        file.append([{"kind": "bucket", "end": 2, "stacks": "a" * 100}])
    file.path = path
    file.append([{"kind": "bucket", "end": 3}])
    assert [line.get("end") for line in written(file)] == [None, 1, 3]


def test_a_disk_that_is_full_within_a_line_leaves_whole_lines(tmp_path: Path) -> None:
    source = f"""
import json, resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.capture import agent
file = agent.load("run.log_file").LogFile({str(tmp_path)!r})
file.append([{{"kind": "call", "name": "first"}}])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (file.size + 10, hard))
try:
    file.append([{{"kind": "bucket", "end": 1}}])
except OSError as error:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
file.append([{{"kind": "end"}}])
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["call", "bucket", "end"]
