"""Three of the benchmark's loops from end to end: same output, the right source, every step counted."""

import re
from pathlib import Path

import pytest

from tests.capture.running import own_lines, plain, profiled

pytestmark = pytest.mark.tensorflow

LOOPS = Path(__file__).parents[2] / "benchmarks" / "loops"

STAMP = re.compile(r"(?<=^[IWEF])\d{4} [\d:.]+ +\d+(?= )", re.MULTILINE)
"""The time and process of a line of TensorFlow's log."""

STYLES = {
    "numpy_slices": (("--epochs", "1"), "repeated-call", 60),
    "eager_tape": (("40",), "eager-gradient", 40),
    "session_feed": (("60",), "session-run", 60),
}


@pytest.mark.parametrize("name", STYLES)
def test_a_style_is_seen_and_not_disturbed(name: str, tmp_path: Path) -> None:
    args, source, steps = STYLES[name]
    script = LOOPS / f"{name}.py"
    alone = plain(script, *args)
    run = profiled(script, tmp_path / "out", *args)

    assert run.stdout == alone.stdout != ""
    assert STAMP.sub("", own_lines(run.stderr)) == STAMP.sub("", alone.stderr)
    assert run.code == alone.returncode == 0

    assert run.manifest.agent_errors == ()
    assert run.missing() == {}
    assert (run.manifest.steps.source, run.manifest.steps.seen) == (source, steps)
    window = run.manifest.window
    assert window is not None
    assert (window.source, window.first_step, window.steps) == (source, 10, 20)
    assert (window.stopped_by, window.contains_warmup) == ("steps", False)
    assert run.recording.traces != ()
