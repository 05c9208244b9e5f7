"""Two real mirrored workers, one of which waits for its input: the report names it, and why."""

import sys
from pathlib import Path

import pytest

from tests.capture.running import profiled
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules

pytestmark = [pytest.mark.tensorflow, pytest.mark.alone]

SCRIPT = Path(__file__).with_name("scripts") / "straggler.py"


def test_the_worker_with_a_planted_delay_is_named(tmp_path: Path) -> None:
    slow = 1
    for attempt in range(3):  # a port that was free may be taken before a worker binds it
        out = tmp_path / f"out{attempt}"
        run = profiled(Path(sys.executable), out, str(SCRIPT), "start", str(slow), kind="command")
        if run.code == 0:
            break
    assert run.code == 0
    found = diagnose(Recording.open(out), all_rules(), "job", ask_xprof=False)
    assert found.hosts is not None
    assert [row.name for row in found.hosts.rows] == ["worker-0", "worker-1"]
    assert (found.hosts.straggler, found.hosts.stage) == (f"worker-{slow}", "input")
    assert found.hosts.shown == f"worker-{slow}"
    assert found.hosts.matched == 20
    assert "share its clock" in found.hosts.skew
    slow_row, fast_row = found.hosts.rows[slow], found.hosts.rows[1 - slow]
    assert slow_row.breakdown_ms["input"] > slow_row.breakdown_ms["collective"]
    assert fast_row.breakdown_ms["collective"] > fast_row.breakdown_ms["input"]
