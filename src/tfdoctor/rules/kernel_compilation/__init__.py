from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.kernel_compilation.start_compiling import PtxKernels, StartCompiling

__doc__, CODE = page(__file__)

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
