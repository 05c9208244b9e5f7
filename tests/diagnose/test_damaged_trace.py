"""A trace that a full disk has cut off costs its steps, not the account of the run."""

import shutil
from pathlib import Path

import pytest

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import Phase

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-outside-steps"


def cut(folder: Path, size: int) -> Path:
    """Return a copy of the sample, with so many bytes left of its trace."""
    copy = Path(shutil.copytree(SAMPLE, folder / "cut"))
    (trace,) = copy.rglob("*.xplane.pb")
    trace.write_bytes(trace.read_bytes()[:size])
    return copy


@pytest.mark.parametrize("size", [0, 5000], ids=["empty", "cut off"])
def test_the_run_is_judged_without_its_trace(tmp_path: Path, size: int) -> None:
    recording = Recording.open(cut(tmp_path, size))
    found = diagnose(recording, all_rules(), "cut", ask_xprof=False)

    assert found.run is not None
    assert found.run.of(Phase.PREDICTION) > 0
    assert not found.steps.rows
    assert any("is damaged, so the report has no traced steps" in text for text in found.trust.reasons)


@pytest.mark.parametrize("size", [0, 5000], ids=["empty", "cut off"])
def test_without_a_run_there_is_nothing_to_judge(tmp_path: Path, size: int) -> None:
    copy = cut(tmp_path, size)
    for log in copy.rglob("run*.json*"):
        log.unlink()
    with pytest.raises(InputError, match="xplane"):
        diagnose(Recording.open(copy), all_rules(), "cut", ask_xprof=False)
