"""Runs without a trace, or with one that a full disk cut off: it costs the steps, not the account of the run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import manifest, recording
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import Missing, StepsSeen
from tfdoctor.recording.manifest import CapturePlan, Ending, Manifest, MissingPart
from tfdoctor.recording.run_log import Bucket, CallPlace, ProcessEnd, RunLog, RunProcess
from tfdoctor.report.formats import FORMATS, render
from tfdoctor.rules import all_rules
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Errored, NotApplicable

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-outside-steps"

SCRIPT = RunLog(
    RunProcess(pid=1, started_unix_ns=1, started_monotonic_ns=1),
    {0: CallPlace(0, RunCall.SCRIPT)},
    {},
    (Bucket(0.0, 5.0, {"0": 5000.0}),),
    end=ProcessEnd(5.0, "exit"),
)

NO_TENSORFLOW = Missing(MissingPart.TRACE, "the script did not import TensorFlow")


@pytest.mark.parametrize(
    ("log", "of"),
    [
        (SCRIPT, replace(manifest(), plan=CapturePlan(trace=False))),
        (SCRIPT, replace(manifest(), plan=CapturePlan(trace=False), steps=StepsSeen(seen=500))),
        (SCRIPT, replace(manifest(), missing=(NO_TENSORFLOW,))),
        (SCRIPT, replace(manifest(), missing=(NO_TENSORFLOW,), outcome=Ending(3))),
        (replace(SCRIPT, end=None), replace(manifest(), outcome=Ending(137, 9))),
        (replace(SCRIPT, end=None, buckets=()), replace(manifest(), finished=False)),
    ],
    ids=["no-trace", "no-trace-trains", "no-tensorflow", "failed", "killed", "at-once"],
)
def test_every_rule_says_why_it_has_nothing_to_say(log: RunLog, of: Manifest) -> None:
    opened = replace(recording(), manifest=of, run=log)
    rules = all_rules()
    found = diagnose(opened, rules, "train.py", ask_xprof=False)
    outcomes = {result.rule.name: result.outcome for result in found.results}
    assert set(outcomes) == {rule.name for rule in rules}
    assert not {name: one for name, one in outcomes.items() if isinstance(one, Errored)}
    assert all(one.reason for one in outcomes.values() if isinstance(one, NotApplicable))
    for name in FORMATS:
        assert render(name, found)
    assert json.loads(render("json", found))["steps"]["count"] == 0


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
