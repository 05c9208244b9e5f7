"""Runs without a trace: every rule says why it has nothing to say, and none fails."""

import json
from dataclasses import replace

import pytest

from tests.builders import manifest, recording
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording.agent import Missing, StepsSeen
from tfdoctor.recording.manifest import CapturePlan, Ending, Manifest, MissingPart
from tfdoctor.recording.run_log import Bucket, CallPlace, ProcessEnd, RunLog, RunProcess
from tfdoctor.report.formats import FORMATS, render
from tfdoctor.rules import all_rules
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Errored, NotApplicable

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
def test_every_rule_copes(log: RunLog, of: Manifest) -> None:
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
