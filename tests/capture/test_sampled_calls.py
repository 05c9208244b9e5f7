"""Real TensorFlow: lines are found in calls after the window, and nothing else is."""

from collections import Counter
from pathlib import Path

import pytest

from tests.capture.running import profiled
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording.program import SeenPlace
from tfdoctor.trace import Trace
from tfdoctor.trace.names import SAMPLED

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import tensorflow as tf

weights = tf.Variable(tf.ones((64, 64)))
x = tf.ones((8, 64))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights) ** 2)
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))

def log():
    return sum(n * n % 7 for n in range(60_000))

for _ in range(400):
    step(x)
    log()
"""

LOG = 1 + next(n for n, line in enumerate(SCRIPT.splitlines()) if "range(60_000)" in line)


def seen(places: tuple[SeenPlace, ...]) -> list[int]:
    return sorted(when for place in places for when in place.when_us)


def test_lines_come_from_calls_after_the_window(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    run = profiled(script, tmp_path / "out")
    assert (run.code, run.manifest.agent_errors) == (0, ())
    window = run.manifest.window
    assert window is not None
    assert (window.steps, window.calls, window.stopped_by) == (20, 20, "steps")
    program = run.recording.program
    python = program.python if program else None
    assert python is not None
    assert python.began_unix_ns is not None
    assert window.stopped_unix_ns is not None
    measured_us = (window.stopped_unix_ns - python.began_unix_ns) / 1e3
    times = seen(python.places)
    within = sum(time < measured_us for time in times)
    assert within * 8000 < measured_us  # each is followed by a rest of 10 ms at least
    assert len(times) - within > 2 * within

    chart = chart_of(run.recording)
    assert chart.fact(Steps).count == 20
    trace = chart.fact(Trace)
    assert trace.sampled is not None
    assert list(trace.host_events(SAMPLED)) == []
    assert len(list(trace.sampled.host_events(SAMPLED))) > 3
    later: Counter[int] = Counter()
    for place in python.places:
        if place.at is not None and not place.inside:
            later[place.at[1]] += sum(time > measured_us for time in place.when_us)
    assert later.most_common(1)[0][0] == LOG
