"""kernel-compilation: which GPU needs PTX, both sides of the limits, and what is kept anyway."""

from tests.rules.kit import *
from tests.run_logs import Run
from tfdoctor.rules.run.kernel_compilation import check
from tfdoctor.rules.run.kernel_compilation.start_compiling import PERSISTENT, PtxKernels, StartCompiling, needs_ptx

USED = KernelCache(written=9)
WHEEL = ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90")
"""TensorFlow 2.21's."""


def example(
    compiled: StartCompiling = StartCompiling(xla=True, xla_ms=35_000.0), total_ms: float = 120_000.0,
    tracing_ms: float = 38_000.0, building_ms: float = 3_000.0,
) -> Verdict:  # fmt: skip
    """XLA compiles a training step for 35 of 120 s."""
    times = {Phase.TRACING: tracing_ms, Phase.BUILDING: building_ms}
    return check(compiled, divided_run(total_ms, times))


def ptx(ms: float = 0.0, **cache: Any) -> PtxKernels:
    return PtxKernels("12.0", replace(USED, **cache), ms)


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


sick = example
healthy = described(
    "XLA's programs are kept in a folder.", example, StartCompiling(xla=True, xla_ms=16_000.0, kept=True)
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for name, sides in (
        ("5 s of 100 s, and less", ((5_000, 100e3), (4_990, 99e3))),
        ("a twentieth of the run, and less", ((10_000, 200e3), (9_990, 200e3))),
    ):
        told[f"XLA compiles {name}"] = [example(StartCompiling(xla=True, xla_ms=ms), run) for ms, run in sides]
        told[f"PTX takes {name}"] = [example(StartCompiling(ptx(ms)), run) for ms, run in sides]
    capabilities = "7.0", "7.5", "8.6", "8.9", "9.0", "12.0", "5.2", ""
    told["GPUs that compile PTX; 5.2 does not run at all"] = [one for one in capabilities if needs_ptx(one, WHEEL)]
    told["a build without PTX"] = needs_ptx("9.0", ("sm_80",))
    told["programs or kernels that were kept"] = example(StartCompiling(xla=True, xla_ms=50_000.0, kept=True))
    told[...] = example(StartCompiling(PtxKernels("12.0", ms=0.0)))
    told["a cache that is off: no time"] = example(StartCompiling(PtxKernels("12.0", KernelCache(disabled=True))))
    told["a cache with room ends it by itself, and a full one does not"] = [
        example(StartCompiling(ptx(60_000.0, nbytes=nbytes)), tracing_ms=70_000.0)
        for nbytes in (100 << 20, 1 << 30)
    ]
    told["XLA and PTX count once"] = example(
        StartCompiling(ptx(40_000.0, disabled=True), xla=True, xla_ms=35_000.0)
    )

    def measured(flags: str = "", **settings: Any) -> tuple[object, ...]:
        compiled, phases = recorded(flags, **settings)
        return compiled.ptx, f"XLA: {compiled.xla_ms / 1e3:.0f} s", check(compiled, phases)

    told["a run that XLA compiles"] = measured(jit_compile=True)
    told["a folder for its programs is seen"] = measured(f"{PERSISTENT}/cache", jit_compile=True)
    told["other functions are not XLA's"] = measured(jit_compile=False)
    cache = KernelCache(nbytes=20 << 20, written=310, seconds=35.0)
    gpus = GpuAccess(registered=1, targets=WHEEL, capabilities=("12.0",), cache=cache)
    told["a GPU newer than the build"] = measured(gpus=gpus)
    told["a GPU of the build"] = measured(gpus=replace(gpus, capabilities=("8.6",)))
