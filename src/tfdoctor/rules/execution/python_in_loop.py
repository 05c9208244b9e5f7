from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.facts.kit import summed
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (timed_steps,)

KEPT = 0.01  # Share of the time that is left when the work is done every 100 steps
MOST = 0.5  # Share of the lines' time that no later step depends on, from which the saving is what to expect
RARELY = "Do this work every 100 steps"
IF_NOT_NEEDED = (
    f"{RARELY} if the next step does not need it, once before the loop if its result stays the same, otherwise in "
    "a tf.function"
)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    least_ms: float = limit(0.5)
    stack_samples: float = limit(5.0)


class LoopLines(Record):
    """The lines of the loop's body that make no batch, the longest first; ``seen`` samples are in these.

    A line's time is its share of ``sample_count`` stack samples outside of training calls. Left out are lines that
    make the arguments of the training call, the line of the loop and of the call itself, calls of SlowCalls, and
    installed packages. ``body_ms`` is the time of them all, within the marked step.
    """

    lines: tuple[TimedLine, ...]
    seen: int
    sample_count: int
    body_ms: float

    @classmethod
    def measure(cls, samples: StackSamples, body: LoopBody, eager: EagerWork, slow: SlowCalls | None) -> Self:
        """Divide the body's time by the samples.

        Raises:
            Unavailable: the step itself runs operation by operation in the loop.
        """
        if eager.operations_ms > eager.functions_ms:
            raise Unavailable("the step itself runs operation by operation, so the loop has no separate work")
        each_ms = body.host_ms / max(1, samples.sample_count)
        calls = {None, samples.called_at, eager.at, *(slow.places if slow else ())}
        own = (place for place in samples.places if not place.makes and place.at not in calls)
        seen = summed(((place.at, place.makes), place.seen) for place in own)
        lines = [TimedLine(at, number, number * each_ms, makes=makes) for (at, makes), number in seen.items()]
        ordered = tuple(sorted(lines, key=lambda line: -line.ms))
        return cls(ordered, sum(seen.values()), samples.sample_count, body.host_ms)


def check(
    lines: LoopLines, breakdown: Breakdown, syncs: HostSyncs | None, single: SingleOperations | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the time of the loop's own lines, without what follows a read of a GPU's value, with the step."""
    syncs_ms = syncs.host_ms if syncs else 0.0  # reported by host-sync
    least_ms = max(limits.least_ms, limits.share * breakdown.step_ms)
    total_ms = sum(line.ms for line in lines.lines)
    body_ms, time_ms = max(0.0, lines.body_ms - syncs_ms), max(0.0, total_ms - syncs_ms)
    if body_ms >= least_ms and lines.sample_count < limits.stack_samples:
        taken = f"Python in the body of the loop takes {milliseconds(body_ms)}"
        few = f"{counted(lines.sample_count, 'stack sample')} of it, too few to tell its lines"
        return NotApplicable(reason=f"{taken}, and the trace has {few}")
    share = time_ms / breakdown.step_ms
    measures = (
        Measure.share("share of the step in the loop's own Python", share, limits.share),
        Measure("time of the loop's own Python per step", ms(time_ms), ms(limits.least_ms)),
    )
    summary = f"Python code in the body of the loop takes {milliseconds(time_ms)} of {breakdown.each_step}"
    if time_ms < least_ms or lines.seen < limits.stack_samples:
        return Healthy(summary=summary, evidence=measures)
    first, scale = lines.lines[0], time_ms / total_ms
    table = Table.of(
        lines.lines,
        ("your line", lambda line: line.at),
        ("time per step (estimate)", lambda line: ms(line.ms * scale)),
        most=SHOWN_ROWS,
    )
    mostly = f", mostly at {location(first.at)}" if 2 * first.ms >= total_ms else ""
    # What doing it every 100 steps saves is a ceiling where the next step may depend on most of it. The operations
    # that these lines run one by one are computing: they are spared in the same proportion.
    part = sum(line.ms for line in lines.lines if line.makes is False) / total_ms
    saved = (1.0 - (1.0 - KEPT) * part, Bound.EXPECTED) if part >= MOST else (0.0, Bound.AT_MOST)
    theirs = total_ms / lines.body_ms if lines.body_ms else 1.0
    computing_ms = single.inside_ms * min(1.0, theirs) if single else 0.0
    return Finding(
        summary=summary + mostly,
        evidence=(*measures, table),
        remedies=(Remedy(RARELY if first.makes is False else IF_NOT_NEEDED, CODE["loop"], first.at),),
        effects=Effect.of_stages({Stage.HOST: time_ms, Stage.DEVICE: computing_ms}, StepWork.LOOP_BODY, *saved),
    )
