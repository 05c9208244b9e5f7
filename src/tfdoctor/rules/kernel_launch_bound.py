from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.run.framework import JAX
from tfdoctor.facts.steps.steady_steps import SteadySteps

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (figures_per_step,)
BY_HAND = "the threads that launch kernels are set in the environment, not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.1,
        "Smallest share of the step in which the GPU idles while the host launches; profiling alone "
        "costs a few percent",
    )


MOSTLY = 0.5
"""Share of the compute time in XLA's instructions from which the step counts as compiled."""


def check(
    gaps: IdleGaps,
    breakdown: Breakdown,
    operations: Operations | None,
    framework: Framework,
    steady: SteadySteps,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the idle time during launches with the step."""
    share = gaps.launching_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    label = "share of the step in which the GPU idles during launches"
    measures = (Measure.share(label, share, limits.share), Measure("kernels per step", count(gaps.kernels)))
    idle = milliseconds(gaps.launching_ms)
    summary = f"The GPU idles {idle} of {breakdown.each_step} while the host launches"
    if share < limits.share:
        return Healthy(summary=f"{summary} kernels", evidence=measures)
    compiled = framework.foreign or (operations.compiled if operations else 0.0) > MOSTLY
    remedies = _of_compiled(framework) if compiled else REMEDIES
    if steady.several_per_call:
        remedies = tuple(remedy for remedy in remedies if remedy not in IN_ONE_CALL)
    work = "the compiled step of " if compiled else ""
    return _finding(f"{summary} {work}{gaps.kernels:.0f} kernels", measures, gaps, remedies)


def _finding(summary: str, measures: tuple[Measure, ...], gaps: IdleGaps, remedies: tuple[Remedy, ...]) -> Finding:
    table = Table.of(
        gaps.sizes,
        ("gap length", str),
        ("gaps per step", lambda size: count(gaps.gaps[size])),
        ("idle time", lambda size: ms(gaps.sizes[size])),
        ("idle time during launches", lambda size: ms(gaps.dispatching[size])),
    )
    idle = ms(gaps.launching_ms)
    return Finding(
        summary=summary,
        evidence=(*measures, table),
        remedies=remedies,
        effects=(Effect(Stage.HOST, 0.0, StepWork.LAUNCHING, idle, bound=Bound.AT_MOST),),
    )


COMPILE = """\
model.compile(optimizer, loss, jit_compile=True)  # or @tf.function(jit_compile=True)"""

STEPS = "model.compile(optimizer, loss, steps_per_execution=16)"

SEVERAL = Remedy("Run several steps per call", STEPS, edit_id="steps-per-execution")
UNROLL = Remedy("Unroll some of the steps of one call, so that their loop waits less often", CODE["unrolled"])
REMEDIES = (
    Remedy("Compile the step with XLA", COMPILE, edit_id="jit-compile"),
    SEVERAL,
    UNROLL,
    Remedy("Launch kernels from dedicated threads", CODE["private"]),
)


def _of_compiled(framework: Framework) -> tuple[Remedy, ...]:
    """Return what helps where XLA has compiled the step already: fewer calls, or more work in each."""
    if framework.foreign and not framework.keras:
        return (SCANNED if framework.name == JAX else LOOPED), LARGER
    return SEVERAL, LARGER


LARGER = Remedy("Use a larger batch, adjust the learning rate and compare the accuracy")
LOOPED = Remedy("Run several steps in one compiled call")
SCANNED = replace(LOOPED, code=CODE["scan"])
IN_ONE_CALL = (SEVERAL, LOOPED, SCANNED)
