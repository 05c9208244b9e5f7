from tfdoctor.families.kit import *
from tfdoctor.rules.run.kernel_compilation.start_compiling import FULL, StartCompiling

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)

UNTIMED = "CUDA compiles kernels from PTX and keeps none, and the recording does not show how long this takes"
KEPT = "CUDA's cache held the kernels that it compiles from PTX for this GPU"
BUILD = Remedy("Install a build of TensorFlow with kernels for this GPU", CODE["build"])
KEEP_CUDA = Remedy("Keep CUDA's cache where the next run finds it", CODE["keep-cuda"])
KEEP_XLA = Remedy("Keep XLA's programs where the next run finds them", CODE["keep-xla"])


class Limits(RuleLimits):  # both must be reached
    share: float = share_limit(0.05)
    least_ms: float = limit(5000.0)


def check(compiled: StartCompiling, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time of each kind of compiling with the run."""
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    # Without a cache nothing tells the time of PTX.
    ptx = compiled.ptx if compiled.ptx and compiled.ptx.cache.written and compiled.ptx.ms >= least_ms else None
    xla_ms = compiled.xla_ms if compiled.xla_ms >= least_ms and not compiled.kept else 0.0
    said, remedies, ptx_ms, lost_ms = [], [], 0.0, 0.0
    if ptx:
        from_ptx = f"CUDA compiles kernels for compute capability {ptx.capability} from PTX"
        said.append(f"{from_ptx} within {milliseconds(ptx.ms)}")
        remedies += [BUILD, KEEP_CUDA]
        kept = not ptx.cache.disabled and ptx.cache.nbytes < FULL * ptx.limit
        ptx_ms, lost_ms = ptx.ms, 0.0 if kept else ptx.ms  # the next run finds what a cache keeps
    if xla_ms:
        said.append(f"XLA compiles and first runs the training within {milliseconds(xla_ms)}")
        remedies.append(KEEP_XLA)
    taken = min(phases.total_ms, xla_ms + ptx_ms)
    # The time of tracing that both share, the longer one for both, and what PTX takes beyond it.
    tracing = min(phases.of(Phase.TRACING), max(xla_ms, lost_ms))
    building = min(phases.of(Phase.BUILDING), max(0.0, lost_ms - tracing))
    evidence, healthy = [], "The run is not seen to compile kernels"
    if compiled.xla:
        evidence.append(Measure("compiling and first execution by XLA", ms(compiled.xla_ms), ms(least_ms)))
        compiling = f"XLA compiled and first ran the training within {milliseconds(compiled.xla_ms)}"
        healthy = "XLA's programs are kept in a folder" if compiled.kept else compiling
    if kernels := compiled.ptx:
        evidence += [
            Measure("files that the run added to CUDA's cache", count(kernels.cache.written)),
            Measure("time until the last of these files was written", ms(kernels.ms), ms(least_ms)),
            Measure("size of CUDA's cache", nbytes(kernels.cache.nbytes), nbytes(kernels.limit)),
        ]
        compiling = f"CUDA compiled kernels from PTX within {milliseconds(kernels.ms)}"
        if kernels.cache.disabled and not said:
            return NotApplicable(reason=UNTIMED)
        healthy = compiling if kernels.cache.written else KEPT
    return judged(
        *evidence,
        healthy=healthy,
        finding=f"{'; '.join(said)} ({percent(taken / phases.total_ms)} of the run)",
        wrong=bool(said),
        remedies=remedies,
        run_effects=[
            RunEffect(phase=phase, of=ms(time), subject="compiling kernels", bound=Bound.AT_MOST)
            for phase, time in ((Phase.TRACING, tracing), (Phase.BUILDING, building))
            if time
        ],
        concern=Concern.RUN,
    )
