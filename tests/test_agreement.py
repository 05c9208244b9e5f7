"""One report contradicts itself nowhere and leaves no large part of a step unmentioned, on every sample."""

from functools import cache
from pathlib import Path

import pytest

from tests import agreement
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnose.engine import examine
from tfdoctor.diagnosis import Result
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.trace import xplane

SAMPLES = Path(__file__).parent.parent / "sample_traces"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


@cache
def examined(name: str) -> tuple[Chart, tuple[Result, ...]]:
    recording = Recording.open(SAMPLES / name)
    chart = Chart([xplane.read(recording.traces[0]), recording])
    return chart, examine(chart, all_rules())


def test_there_are_samples() -> None:
    assert len(NAMES) > 1


@pytest.mark.parametrize("name", NAMES)
def test_facts_that_measure_one_thing_agree(name: str) -> None:
    assert not list(agreement.disagreements(examined(name)[0]))


@pytest.mark.parametrize("name", NAMES)
def test_every_large_part_has_one_account(name: str) -> None:
    assert not list(agreement.unaccounted(*examined(name)))


@pytest.mark.parametrize("name", NAMES)
def test_no_report_calls_a_run_healthy_with_an_unexplained_part(name: str) -> None:
    recording = Recording.open(SAMPLES / name)
    assert not agreement.calls_healthy(diagnose(recording, all_rules(), name, ask_xprof=False))
