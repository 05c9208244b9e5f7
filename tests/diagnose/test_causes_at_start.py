"""Causes of a slow start and of slow calls, from a recording to the report: each is named, and no other of them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.run_logs import FOLDER, Run
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import StepsSeen, TracedFunction
from tfdoctor.recording.program import GpuAccess, KernelCache, MissingLibrary, ProgramRecord, RunSettings
from tfdoctor.recording.samples import GpuSample, MachineSample
from tfdoctor.report.formats import FORMATS, render
from tfdoctor.rules import all_rules
from tfdoctor.terms.kinds import RunWork, StepSource
from tfdoctor.terms.verdict import Errored, Finding

FIT = "train.py:20"

RULES = frozenset({"kernel-compilation", "known-fault", "missing-gpu", "sample-weight-scan"})

T4 = MachineSample(1, gpu=(GpuSample(0, "Tesla T4"),))


def run(*, weights_s: float = 0.0, first_s: float = 1.0, steps: int = 500) -> Run:
    """Keras' fit: what precedes the first step, the first step, and many others."""
    made = Run()
    made.python(2.0, "train.py:1", work=RunWork.IMPORTING)
    with made.fit(FIT):
        if weights_s:
            made.python(weights_s, FIT, work=RunWork.WEIGHTS)
        with made.epoch(FIT):
            executes = "tensorflow.python.eager.execute.quick_execute"
            made.trace(first_s, FIT, "one_step_on_iterator", trains=True, runs=executes)
            made.steps(steps, ms=20.0, at=FIT)
    return made


def recorded(made: Run, gpus: GpuAccess | None = None, **settings: Any) -> Recording:
    devices = ("/device:CPU:0",)
    record = RunSettings(devices=devices, gpus=gpus or GpuAccess(), **settings)
    return replace(made.recording(), program=ProgramRecord(run=record))


def on_the_cpu() -> Recording:
    """A T4 that lacks cuDNN."""
    why = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    missing = (MissingLibrary("libcudnn.so.9", why),)
    return replace(recorded(run(), GpuAccess(cuda=True, missing=missing)), samples=(T4,))


def newer_gpu() -> Recording:
    """A GPU that is newer than the build, whose kernels were compiled for 90 s."""
    cache = KernelCache(nbytes=50 << 20, written=400, seconds=95.0)
    targets, of = ("sm_80", "sm_89", "compute_90"), ("12.0",)
    gpus = GpuAccess(registered=1, cuda=True, targets=targets, capabilities=of, cache=cache)
    made = recorded(run(first_s=90.0), gpus)
    program = made.program
    assert program is not None
    devices = ("/device:CPU:0", "/device:GPU:0")
    return replace(made, program=replace(program, run=replace(program.run, devices=devices)))


def traced_batches() -> Recording:
    """Keras 3.6, whose train_on_batch traces in each of 60 calls."""
    made = Run()
    for number in range(60):
        made.trace(0.1 if number else 1.0, FIT, "one_step_on_iterator", trains=True)
    at = (f"{FOLDER}/train.py", 20)
    function = TracedFunction(name="one_step_on_iterator", at=at, calls=60, tracings=60)
    seen = StepsSeen(source=StepSource.KERAS_TRAIN_ON_BATCH, seen=60, functions=(function,))
    versions = {"keras": "3.6.0", "tensorflow": "2.16.1"}
    opened = recorded(made)
    assert opened.manifest is not None
    return replace(opened, manifest=replace(opened.manifest, versions=versions, steps=seen))


CASES = {
    "missing-gpu": on_the_cpu,
    "kernel-compilation": newer_gpu,
    "sample-weight-scan": lambda: recorded(run(weights_s=40.0)),
    "known-fault": traced_batches,
}


def diagnosed(recording: Recording) -> Diagnosis:
    return diagnose(recording, all_rules(), "train.py", ask_xprof=False)


@pytest.mark.parametrize("name", CASES)
def test_each_cause_is_named_in_the_report_and_no_other(name: str) -> None:
    found = diagnosed(CASES[name]())
    outcomes = {result.rule.name: result.outcome for result in found.results}
    assert not [one for one in outcomes.values() if isinstance(one, Errored)]
    verdict = outcomes[name]
    assert isinstance(verdict, Finding), verdict
    others = RULES - {name}
    assert not [other for other in others if isinstance(outcomes[other], Finding)]
    for form in FORMATS:
        assert render(form, found)
    told = json.loads(render("json", found))
    assert verdict.summary in json.dumps(told, ensure_ascii=False)
    assert name in render("md", found)


def test_a_run_without_any_has_none() -> None:
    outcomes = {one.rule.name: one.outcome for one in diagnosed(recorded(run())).results}
    assert not [name for name in RULES if isinstance(outcomes[name], Finding)]


def test_xlas_first_step_is_named_by_its_time() -> None:
    found = diagnosed(recorded(run(first_s=40.0), jit_compile=True))
    outcomes = {one.rule.name: one.outcome for one in found.results}
    verdict = outcomes["kernel-compilation"]
    assert isinstance(verdict, Finding)
    assert "XLA compiles" in verdict.summary
