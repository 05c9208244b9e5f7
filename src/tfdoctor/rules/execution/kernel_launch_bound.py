from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (figures_per_step,)

MOSTLY = 0.5  # Share of the compute time in XLA's instructions from which the step counts as compiled

SEVERAL = Remedy("Run several steps per call", CODE["steps"], edit_id="steps-per-execution")
LOOPED = Remedy("Run several steps in one compiled call")
SCANNED = replace(LOOPED, code=CODE["scan"])
LARGER = Remedy("Use a larger batch, adjust the learning rate and compare the accuracy")
REMEDIES = (
    Remedy("Compile the step with XLA", CODE["compile"], edit_id="jit-compile"),
    SEVERAL,
    Remedy("Unroll some of the steps of one call, so that their loop waits less often", CODE["unrolled"]),
    Remedy("Launch kernels from dedicated threads", CODE["private"]),
)


class Limits(RuleLimits):
    share: float = share_limit(0.1)


def check(
    gaps: IdleGaps, breakdown: Breakdown, operations: Operations | None, framework: Framework, steady: SteadySteps,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the idle time during launches with the step."""
    summary = f"The GPU idles {milliseconds(gaps.launching_ms)} of {breakdown.each_step} while the host launches"
    compiled = framework.foreign or (operations.compiled if operations else 0.0) > MOSTLY
    table = Table.of(
        gaps.sizes,
        ("gap length", str),
        ("gaps per step", lambda size: count(gaps.gaps[size])),
        ("idle time", lambda size: ms(gaps.sizes[size])),
        ("idle time during launches", lambda size: ms(gaps.dispatching[size])),
    )
    remedies: Sequence[Remedy] = REMEDIES
    if compiled:  # by XLA already: fewer calls, or more work in each
        own_loop = framework.foreign and not framework.keras
        remedies = ((SCANNED if framework.name == JAX else LOOPED) if own_loop else SEVERAL), LARGER
    share, idle = breakdown.share(gaps.launching_ms), ms(gaps.launching_ms)
    return judged(
        Measure.share("share of the step in which the GPU idles during launches", share, limits.share),
        Measure("kernels per step", count(gaps.kernels)),
        healthy=f"{summary} kernels",
        finding=f"{summary} {'the compiled step of ' if compiled else ''}{gaps.kernels:.0f} kernels",
        details=[table],
        remedies=[one for one in remedies if not steady.several_per_call or one not in (SEVERAL, LOOPED, SCANNED)],
        effects=[Effect(Stage.HOST, 0.0, StepWork.LAUNCHING, idle, bound=Bound.AT_MOST)],
    )
