from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (figures_per_step,)

FIT = Remedy("With Keras' fit, run several steps per call", CODE["steps"], edit_id="steps-per-execution")


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    steps: float = limit(3.0, least=2.0)
    syncs: float = limit(0.9)


def check(
    syncs: HostSyncs, steady: SteadySteps, breakdown: Breakdown, compiling: CompileTime | None,
    framework: Framework, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the GPU's idle time after copies to the host with the step."""
    if steady.rounds < limits.steps:
        few = f"only {counted(steady.rounds, 'steady step')} in the trace"
        return NotApplicable(reason=f"{few}, too few to see what recurs; trace 20 steps or more")
    # After the last step no other one follows that could be seen to wait.
    correction = steady.rounds / (steady.rounds - 1)
    compiled = (compiling.host_ms, compiling.between_ms) if compiling else (0.0, 0.0)
    idle = {
        Stage.HOST: max(0.0, syncs.host_ms * correction - compiled[0]),
        Stage.BETWEEN: max(0.0, syncs.between_ms * correction - compiled[1]),
    }
    idle_ms = sum(idle.values())
    share = breakdown.share(idle_ms)
    in_fit = not steady.several_per_call and (framework.keras or not framework.foreign)
    return judged(
        Measure.share("share of the step in which the GPU idles after a read", share, limits.share),
        Measure("reads per step that stall the GPU", count(syncs.syncs), count(limits.syncs)),
        Measure("copies to the host per step", count(syncs.reads)),
        healthy=f"The GPU idles {milliseconds(idle_ms)} of {breakdown.each_step} after the host reads values",
        wrong=share >= limits.share and syncs.syncs * correction >= limits.syncs,
        remedies=[Remedy("Read values every 100 steps", CODE["every"]), *([FIT] if in_fit else [])],
        effects=Effect.of_stages(idle, StepWork.READING_RESULTS),
    )
