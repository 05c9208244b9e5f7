"""Every finding of a diagnosis has a place, and every format of code review holds it."""

import json
from pathlib import Path

import pytest

from tests.builders import manifest
from tfdoctor.diagnose.diagnose import diagnose, placed
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.recording import Manifest, Recording
from tfdoctor.recording.agent import StepsSeen, TracedWindow
from tfdoctor.report.formats import render
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Finding, Place, PlaceKind

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SYNTHETIC = SAMPLES / "synthetic-gpu-a100-fp32"

TRACE = Path("/logs/plugins/profile/run/vm.xplane.pb")
STEPS = StepsSeen(at=("/home/me/job/train.py", 52))


def rule() -> Rule:
    return next(iter(all_rules()))


def places(described: Manifest | None) -> tuple[Place, ...]:
    recording = Recording(None, described, (TRACE,), None, (), ())
    finding = Finding(summary="Slow.", evidence=(), remedies=())
    (result,) = placed(recording, [Result(rule=rule(), outcome=finding)])
    return result.places


def test_the_training_call_precedes_the_script_and_the_trace() -> None:
    described = manifest(command=("python", "job/train.py"), steps=STEPS)
    assert places(described) == (
        Place("job/train.py", 52, PlaceKind.TRAINING_CALL),
        Place("job/train.py", 1, PlaceKind.SCRIPT),
        Place("vm.xplane.pb", 1, PlaceKind.TRACE),
    )


def test_the_traced_loop_precedes_another_that_trains_too() -> None:
    window = TracedWindow(at=("/home/me/job/loop.py", 7))
    first, *_ = places(manifest(window=window, steps=STEPS))
    assert first == Place("job/loop.py", 7, PlaceKind.TRAINING_CALL)


KERNEL = "/usr/lib/python3/dist-packages/ipykernel_launcher.py"


@pytest.mark.parametrize(
    "described", [None, manifest(command=("train-model", "--fast")), manifest(command=("python", KERNEL))]
)
def test_where_no_program_is_known_the_trace_is_the_place(described: Manifest | None) -> None:
    assert [place.kind for place in places(described)] == [PlaceKind.TRACE]


def test_a_trace_without_a_program_loses_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES.parent)
    found = diagnose(Recording.open(SYNTHETIC), all_rules(), "t", ask_xprof=False)
    names = [entry.result.rule.name for entry in found.entries]
    (run,) = json.loads(render("sarif", found))["runs"]
    gitlab = json.loads(render("gitlab", found))
    assert names
    assert [one["ruleId"] for one in run["results"]] == names
    assert [one["check_name"] for one in gitlab] == names
    assert render("github", found).count(f"file=sample_traces/{SYNTHETIC.name}/plugins/") == len(names)
    assert {one["location"]["path"].partition("/plugins")[0] for one in gitlab} == {
        f"sample_traces/{SYNTHETIC.name}"
    }
