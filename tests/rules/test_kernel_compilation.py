"""kernel-compilation: which GPU needs PTX, both sides of the limits, and what is kept anyway."""

from tests.rules.kit import *
from tests.run_logs import Run
from tfdoctor.recording.program import KernelCache, ProgramRecord
from tfdoctor.rules.run.kernel_compilation import PERSISTENT, PtxKernels, StartCompiling, check, needs_ptx


def example(
    compiled: StartCompiling = StartCompiling(xla=True, xla_ms=35_000.0),
    total_ms: float = 120_000.0,
    tracing_ms: float = 38_000.0,
    building_ms: float = 3_000.0,
) -> Verdict:
    """XLA compiles a training step for 35 of 120 s."""
    times = {Phase.TRACING: tracing_ms, Phase.BUILDING: building_ms}
    return check(compiled, divided_run(total_ms, times))


sick = example


def healthy() -> Verdict:
    """XLA's programs are kept in a folder."""
    return example(StartCompiling(xla=True, xla_ms=16_000.0, kept=True))


USED = KernelCache(written=9)
WHEEL = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
"""TensorFlow 2.21's."""


def test_the_build_tells_which_gpus_compile_ptx() -> None:
    """One of 5.2 runs not at all."""
    capabilities = "7.0", "7.5", "8.6", "8.9", "9.0", "12.0", "5.2", ""
    assert [one for one in capabilities if needs_ptx(one, WHEEL)] == ["9.0", "12.0"]
    assert not needs_ptx("9.0", ("sm_80",))  # a build without PTX


def test_both_limits() -> None:
    for ms, total_s, kind in (
        (5_000, 100, Finding),
        (4_990, 99, Healthy),
        (10_000, 200, Finding),
        (9_990, 200, Healthy),
    ):
        for compiled in (StartCompiling(xla=True, xla_ms=ms), StartCompiling(PtxKernels("12.0", USED, ms))):
            assert isinstance(example(compiled, 1000.0 * total_s), kind)


def test_what_is_kept_is_healthy() -> None:
    kept = StartCompiling(xla=True, xla_ms=50_000.0, kept=True), StartCompiling(PtxKernels("12.0", ms=0.0))
    assert kinds(*map(example, kept)) == [Healthy, Healthy]


def test_a_cache_that_is_off_leaves_no_time_behind() -> None:
    compiled = StartCompiling(PtxKernels("12.0", KernelCache(disabled=True)))
    assert "keeps none" in as_healthy(example(compiled)).summary


def test_a_cache_with_room_ends_it_by_itself() -> None:
    for nbytes, again in ((100 << 20, False), (1 << 30, True)):
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
    assert compiled.xla_ms == near(40_000.0, rel=0.05)
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
    assert isinstance(check(*recorded(gpus=replace(gpus, capabilities=("8.6",)))), Healthy)
