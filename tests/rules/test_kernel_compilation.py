"""kernel-compilation: which GPU needs PTX, both sides of the limits, and what is kept anyway."""

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.cases.kernel_compilation import example
from tests.rules.verdicts import as_finding, as_healthy
from tests.run_logs import Run
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.recording.program import GpuAccess, KernelCache, ProgramRecord, RunSettings
from tfdoctor.rules.kernel_compilation import check
from tfdoctor.rules.kernel_compilation.start_compiling import PERSISTENT, PtxKernels, StartCompiling, needs_ptx
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Bound, Finding, Healthy

USED = KernelCache(written=9)
WHEEL = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
"""TensorFlow 2.21's."""


@pytest.mark.parametrize(
    ("capability", "needed"),
    [
        ("7.0", False),
        ("7.5", False),
        ("8.6", False),
        ("8.9", False),
        ("9.0", True),
        ("12.0", True),
        ("5.2", False),  # runs not at all
        ("", False),
    ],
)
def test_the_build_tells_which_gpus_compile_ptx(capability: str, *, needed: bool) -> None:
    assert needs_ptx(capability, WHEEL) is needed


def test_a_build_without_ptx_compiles_none() -> None:
    assert not needs_ptx("9.0", ("sm_80",))


@pytest.mark.parametrize(
    ("ms", "total_ms", "kind"),
    [
        (5_000.0, 100_000.0, Finding),
        (4_990.0, 99_000.0, Healthy),
        (10_000.0, 200_000.0, Finding),
        (9_990.0, 200_000.0, Healthy),
    ],
)
def test_both_limits(ms: float, total_ms: float, kind: type) -> None:
    for compiled in (StartCompiling(xla=True, xla_ms=ms), StartCompiling(PtxKernels("12.0", USED, ms))):
        assert isinstance(example(compiled, total_ms), kind)


def test_what_is_kept_is_healthy() -> None:
    for compiled in (
        StartCompiling(xla=True, xla_ms=50_000.0, kept=True),
        StartCompiling(PtxKernels("12.0", ms=0.0)),
    ):
        assert isinstance(example(compiled), Healthy)


def test_a_cache_that_is_off_leaves_no_time_behind() -> None:
    compiled = StartCompiling(PtxKernels("12.0", KernelCache(disabled=True)))
    assert "keeps none" in as_healthy(example(compiled)).summary


@pytest.mark.parametrize(("nbytes", "again"), [(100 << 20, False), (1 << 30, True)])
def test_a_cache_with_room_ends_it_by_itself(nbytes: int, *, again: bool) -> None:
    ptx = PtxKernels("12.0", replace(USED, nbytes=nbytes), 60_000.0)
    assert bool(as_finding(example(StartCompiling(ptx), tracing_ms=70_000.0)).run_effects) is again


def test_the_time_of_both_is_counted_once() -> None:
    ptx = PtxKernels("12.0", replace(USED, disabled=True), 40_000.0)
    finding = as_finding(example(StartCompiling(ptx, xla=True, xla_ms=35_000.0)))
    times = {effect.phase: effect.of.value for effect in finding.run_effects}
    assert times == {Phase.TRACING: 38_000.0, Phase.BUILDING: 2_000.0}
    assert all(effect.bound is Bound.AT_MOST for effect in finding.run_effects)


def recorded(flags: str = "", **settings: Any) -> tuple[StartCompiling, RunPhases]:
    """A run whose first step takes 40 s within TensorFlow's executor, through the facts."""
    run = Run()
    with run.fit("train.py:20"), run.epoch("train.py:20"):
        executes = "tensorflow.python.eager.execute.quick_execute"
        run.trace(40.0, "train.py:20", "one_step", trains=True, runs=executes)
        run.steps(100, ms=100.0, at="train.py:20")
    environment = {"TF_XLA_FLAGS": flags} if flags else {}
    program = ProgramRecord(run=RunSettings(**settings))
    made = replace(run.recording(environment=environment), program=program)
    phases = RunPhases.measure(made, None)
    return StartCompiling.measure(made, phases), phases


def test_a_recorded_run_that_xla_compiles_is_found() -> None:
    compiled, phases = recorded(jit_compile=True)
    assert compiled.xla_ms == pytest.approx(40_000.0, rel=0.05)
    assert "XLA compiles" in as_finding(check(compiled, phases)).summary


def test_a_folder_for_its_programs_is_seen_and_other_functions_are_not_xlas() -> None:
    kept = recorded(f"{PERSISTENT}/cache", jit_compile=True)
    assert isinstance(check(*kept), Healthy)
    plain = recorded(jit_compile=False)
    assert plain[0].xla_ms == 0.0
    assert isinstance(check(*plain), Healthy)


def test_a_recorded_gpu_newer_than_the_build_is_found() -> None:
    cache = KernelCache(nbytes=20 << 20, written=310, seconds=35.0)
    gpus = GpuAccess(registered=1, targets=WHEEL, capabilities=("12.0",), cache=cache)
    compiled, phases = recorded(gpus=gpus)
    assert compiled.ptx == PtxKernels("12.0", cache, 35_000.0)
    finding = as_finding(check(compiled, phases))
    assert "capability 12.0" in finding.summary
    assert "CUDA_CACHE_PATH" in finding.remedies[1].code
    older, phases = recorded(gpus=replace(gpus, capabilities=("8.6",)))
    assert isinstance(check(older, phases), Healthy)
