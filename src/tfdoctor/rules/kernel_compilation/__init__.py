"""Kernels are compiled when the run starts.

## What it checks

Two things that come before the first step. CUDA compiles kernels from PTX where the package of TensorFlow has none
for the GPU's compute capability: both are recorded, with the files that the run added to CUDA's cache and the time
until the last of them. XLA compiles the training function: the time in which TensorFlow's executor runs within the
calls that trace functions, which also contains the first execution.

## Why it matters

It comes again in each run whose cache is gone, as in a new container, in each trial of a search and after each
preemption. Users of GPUs newer than their build waited 1 to 30 minutes for PTX. XLA took 35 s for the training
step of a ResNet-50 on two cores, and 16 s with its programs in a folder.

## How to fix

- Install a build of TensorFlow with kernels for the GPU: a newer one, or NVIDIA's container.
- Keep CUDA's cache: `CUDA_CACHE_PATH` on a disk that outlives the container, `CUDA_CACHE_MAXSIZE=4294967296` (4 GB,
  the most that it takes), and no `CUDA_CACHE_DISABLE=1`.
- Keep XLA's programs: `TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=/cache/xla`. What XLA measures on a GPU to
  choose its kernels is kept by `XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=/cache/autotune`.

## Holds for

Recordings of the whole run by `tfdoctor profile`. Both savings are upper bounds: the time until the last kernel
was compiled also holds other work, and a program from a folder still has to be loaded. XLA's folder must be of
the same TensorFlow and the same kind of device. The persistent folder was measured with TensorFlow 2.21 on a CPU;
PTX is judged by NVIDIA's documents and was never seen on a GPU.

## Sources

- [CUDA C++ Programming Guide: binary and PTX compatibility](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility)
- [CUDA C++ Programming Guide: CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
- [XLA: persisted autotuning](https://openxla.org/xla/persisted_autotuning)
- [TensorFlow, flags.cc: tf_xla_persistent_cache_directory](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/jit/flags.cc)
- Users' threads: [tensorflow 22043](https://github.com/tensorflow/tensorflow/issues/22043),
  [serving 1663](https://github.com/tensorflow/serving/issues/1663)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.rules.kernel_compilation.start_compiling import PtxKernels, StartCompiling
from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import Bound, Concern, Finding, Healthy, Measure, Remedy, RunEffect, Verdict

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)
BY_HAND = "caches are set up outside of the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When compiling is reported: both limits must be reached."""

    share: float = share_limit(0.05, "Smallest share of the run in compiling that is reported, as of other savings")
    least_ms: float = limit(5000.0, "Shortest time in ms of compiling; below it a cache is hardly worth its folder")


def check(compiled: StartCompiling, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time of each kind of compiling with the run."""
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    evidence = tuple(_evidence(compiled, least_ms))
    ptx = compiled.ptx if compiled.ptx and _compiled_ms(compiled.ptx) >= least_ms else None
    xla_ms = compiled.xla_ms if compiled.xla_ms >= least_ms and not compiled.kept else 0.0
    if not ptx and not xla_ms:
        return Healthy(summary=_healthy(compiled), evidence=evidence, concern=Concern.RUN)
    said, remedies = [], []
    if ptx:
        said.append(
            f"CUDA compiles kernels for compute capability {ptx.capability} from PTX within {milliseconds(ptx.ms)}"
        )
        remedies += [BUILD, KEEP_CUDA]
    if xla_ms:
        said.append(f"XLA compiles and first runs the training within {milliseconds(xla_ms)}")
        remedies.append(KEEP_XLA)
    taken = min(phases.total_ms, xla_ms + (ptx.ms if ptx else 0.0))
    return Finding(
        summary=f"{'; '.join(said)} ({percent(taken / phases.total_ms)} of the run)",
        evidence=evidence,
        remedies=tuple(remedies),
        # the next run finds what a cache keeps
        run_effects=tuple(_effects(ptx if ptx and ptx.lost else None, xla_ms, phases)),
        concern=Concern.RUN,
    )


def _compiled_ms(ptx: PtxKernels) -> float:
    """Return the time of compiling; without a cache nothing tells it."""
    return ptx.ms if ptx.written else 0.0


def _effects(ptx: PtxKernels | None, xla_ms: float, phases: RunPhases) -> list[RunEffect]:
    """Return the time of tracing that both share, the longer one for both, and what PTX takes beyond it."""
    tracing = min(phases.of(Phase.TRACING), max(xla_ms, ptx.ms if ptx else 0.0))
    building = min(phases.of(Phase.BUILDING), max(0.0, (ptx.ms if ptx else 0.0) - tracing))
    parts = ((Phase.TRACING, tracing), (Phase.BUILDING, building))
    return [
        RunEffect(phase=phase, of=ms(time), subject=COMPILING, bound=Bound.AT_MOST) for phase, time in parts if time
    ]


COMPILING = "compiling kernels"


def _evidence(compiled: StartCompiling, least_ms: float) -> list[Measure]:
    measures = []
    if compiled.xla:
        label = "compiling and first execution by XLA"
        measures.append(Measure(label, ms(compiled.xla_ms), ms(least_ms)))
    if ptx := compiled.ptx:
        measures += [
            Measure("files that the run added to CUDA's cache", count(ptx.written)),
            Measure("time until the last of these files was written", ms(ptx.ms), ms(least_ms)),
            Measure("size of CUDA's cache", nbytes(ptx.nbytes), nbytes(ptx.limit)),
        ]
    return measures


def _healthy(compiled: StartCompiling) -> str:
    ptx = compiled.ptx
    if ptx and ptx.disabled:
        return "CUDA compiles kernels from PTX and keeps none, which nothing in the recording times"
    if ptx and not ptx.written:
        return "CUDA's cache held the kernels that it compiles from PTX for this GPU"
    if ptx:
        return f"CUDA compiled kernels from PTX within {milliseconds(ptx.ms)}"
    if compiled.xla and compiled.kept:
        return "XLA's programs are kept in a folder"
    if compiled.xla:
        return f"XLA compiled and first ran the training within {milliseconds(compiled.xla_ms)}"
    return "The run is not seen to compile kernels"


BUILD = Remedy(
    "Install a build of TensorFlow with kernels for this GPU",
    "# in the shell: pip install --upgrade 'tensorflow[and-cuda]'",
)

KEEP_CUDA = Remedy(
    "Keep CUDA's cache where the next run finds it",
    "# in the shell\nexport CUDA_CACHE_PATH=/cache/cuda CUDA_CACHE_MAXSIZE=4294967296\nunset CUDA_CACHE_DISABLE",
)

KEEP_XLA = Remedy(
    "Keep XLA's programs where the next run finds them",
    "# in the shell\nexport TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=/cache/xla\n"
    "export XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=/cache/autotune  # on a GPU",
)


def example(
    compiled: StartCompiling = StartCompiling(xla=True, xla_ms=35_000.0),
    total_ms: float = 120_000.0,
    tracing_ms: float = 38_000.0,
    building_ms: float = 3_000.0,
) -> Verdict:
    """XLA compiles a training step for 35 of 120 s."""
    times = {Phase.TRACING: tracing_ms, Phase.BUILDING: building_ms}
    return check(compiled, RunPhases.divided(total_ms, times))


sick = example


def healthy() -> Verdict:
    """XLA's programs are kept in a folder."""
    return example(StartCompiling(xla=True, xla_ms=16_000.0, kept=True))
