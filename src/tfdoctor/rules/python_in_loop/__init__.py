from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.facts.step_time.loop_body import SingleOperations
from tfdoctor.rules.python_in_loop.loop_lines import LoopLines

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (timed_steps,)

KEPT = 0.01  # Share of the time that is left when the work is done every 100 steps
MOST = 0.5  # Share of the lines' time that no later step depends on, from which the saving is what to expect


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.05, "Smallest share of the step in the loop's own Python; xprof reports waits from 5 % on"
    )
    least_ms: float = limit(
        0.5, "Shortest time in ms per step; asking for a batch and calling a function take 0.1 to 0.3 ms"
    )
    stack_samples: float = limit(5.0, "Stack samples needed in the loop's lines before they count")


def check(
    lines: LoopLines,
    breakdown: Breakdown,
    syncs: HostSyncs | None,
    single: SingleOperations | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the time of the loop's own lines, without what follows a read of a GPU's value, with the step."""
    syncs_ms = syncs.host_ms if syncs else 0.0  # reported by host-sync
    least_ms = max(limits.least_ms, limits.share * breakdown.step_ms)
    body_ms, time_ms = max(0.0, lines.body_ms - syncs_ms), max(0.0, lines.total_ms - syncs_ms)
    if body_ms >= least_ms and lines.sample_count < limits.stack_samples:
        taken = f"{milliseconds(body_ms)} of Python in the body of the loop"
        few = counted(lines.sample_count, "stack sample")
        return NotApplicable(reason=f"{few} cannot tell which lines take {taken}")
    share = time_ms / breakdown.step_ms
    measures = (
        Measure.share("share of the step in the loop's own Python", share, limits.share),
        Measure("time of the loop's own Python per step", ms(time_ms), ms(limits.least_ms)),
    )
    summary = f"Python code in the body of the loop takes {milliseconds(time_ms)} of {breakdown.each_step}"
    if time_ms < least_ms or lines.seen < limits.stack_samples:
        return Healthy(summary=summary, evidence=measures)
    first, scale = lines.lines[0], time_ms / lines.total_ms
    table = Table.of(
        lines.lines,
        ("your line", lambda line: line.at),
        ("time per step (estimate)", lambda line: ms(line.ms * scale)),
        most=SHOWN_ROWS,
    )
    mostly = f", mostly at {location(first.at)}" if 2 * first.ms >= lines.total_ms else ""
    return Finding(
        summary=summary + mostly,
        evidence=(*measures, table),
        remedies=(Remedy(RARELY if first.makes is False else IF_NOT_NEEDED, CODE["loop"], first.at, "loop-work"),),
        effects=_effects(lines, time_ms, single),
    )


def _effects(lines: LoopLines, time_ms: float, single: SingleOperations | None) -> tuple[Effect, ...]:
    """Return what doing it every 100 steps saves: a ceiling where the next step may depend on most of it.

    The operations that these lines run one by one are computing: they are spared in the same proportion.
    """
    part = sum(line.ms for line in lines.lines if line.makes is False) / lines.total_ms
    left, bound = 1.0 - (1.0 - KEPT) * part, Bound.EXPECTED
    if part < MOST:
        left, bound = 0.0, Bound.AT_MOST
    theirs = lines.total_ms / lines.body_ms if lines.body_ms else 1.0
    computing_ms = single.inside_ms * min(1.0, theirs) if single else 0.0
    times = {Stage.HOST: time_ms, Stage.DEVICE: computing_ms}
    return Effect.of_stages(times, StepWork.LOOP_BODY, left, bound)


RARELY = "Do this work every 100 steps"

IF_NOT_NEEDED = (
    "Do this work every 100 steps if the next step does not need it, once before the loop if its result stays the "
    "same, otherwise in a tf.function"
)
