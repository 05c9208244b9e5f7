from tfdoctor.facts.kit import summed
from tfdoctor.facts.step_time.timed_line import by_caller
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

GENERAL = True  # Speaks only of time that no specific rule explains
# Kinds of work that a specific finding may be about.
NAMED = {LineWork.READING: StepWork.READING_RESULTS, LineWork.ENTERING: StepWork.STEP_ENTRY}


RARELY = "Let {} run every 100 batches or once per epoch"
DRAWN = "Draw the random numbers of many steps at once"  # A random draw is another one in each step
# What to do about a line, by the kind of its work.
CHANGES = {
    LineWork.READING: "Read the value every 100 steps, or once per epoch",
    LineWork.CONVERTING: "Make tensors of the arrays once, before the loop",
    LineWork.ENTERING: "Let one call do the work of several: for a whole batch, or inside the training function",
    LineWork.OPERATIONS: "Run this inside a tf.function, or once before the loop",
    LineWork.PYTHON: "Run this every 100 steps, once before the loop, or for the whole batch at once",
}


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    samples: float = limit(10.0)


Hot = tuple[Stage, TimedLine]  # A line in a part of the step that no specific finding explains


def check(
    unexplained: Unexplained, breakdown: Breakdown, lines: HostLines, samples: StackSamples | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Name the lines that take most of the host's time, where no other finding does."""
    parts = [part for part in (Stage.HOST, Stage.BETWEEN) if part in unexplained.parts_ms]
    least_ms = limits.share * breakdown.step_ms
    models = samples.models_at if samples else frozenset()
    made = frozenset[Location | None]()
    if samples and StepWork.MAKING_BATCHES in unexplained.subjects:
        # What python-input is about: the lines that make batches, or the first where a model decides.
        seen_at = list(summed((line.at, line.seen) for line in samples.makers))
        made = frozenset(seen_at[:1] if samples.models_at else seen_at)
    hot, named = list[Hot](), unexplained.subjects
    for part in parts:
        # Lines that no finding is about; between-steps is about all but what starts compiled functions.
        chosen = (one for one in lines.own(part) if one.callback or one.at)  # by a line of the user's
        left = [one for one in chosen if one.work is not LineWork.LOOPING]
        if part is Stage.HOST:  # without the training call itself
            left = [one for one in left if one.work is not LineWork.ENTERING]
        elif _is_besides(part, named):
            left = [one for one in left if one.work is LineWork.ENTERING]
        left = [one for one in left if NAMED.get(one.work) not in named]
        left = [one for one in left if one.call is None] if StepWork.SLOW_CALLS in named else left
        long = [one for one in left if one.ms >= least_ms and one.seen >= limits.samples]
        callers = by_caller(one for one in left if one not in long)  # whose other lines together take long
        long += [c for c in callers if c.at not in lines.around and c.ms >= least_ms and c.seen >= limits.samples]
        hot += [(part, one) for one in long if one.at not in (models if one.work is LineWork.ENTERING else made)]
    if hot:
        return _finding(sorted(hot, key=lambda one: -one[1].ms), unexplained, breakdown, limits)
    own = [line for part in parts if not _is_besides(part, unexplained.subjects) for line in lines.own(part)]
    if all(_is_besides(part, unexplained.subjects) for part in parts):
        return Healthy(summary="Findings and necessary work leave no large part of the host's time")
    seen = sum(line.seen for line in own)
    if seen < limits.samples:
        return NotApplicable(
            reason=f"only {seen} stack samples lie in the host's time; trace more steps (--steps 100)"
        )
    looping = [line.ms for line in own if line.work is LineWork.LOOPING]  # which no line chooses
    framework = Measure("time of the framework's own work for each call", ms(sum(looping)))
    summary = f"No line of Python takes {percent(limits.share)} of the step in the host's time"
    measures = (Measure("stack samples in the host's time", count(seen)), framework)
    return Healthy(summary=summary, evidence=measures if looping else measures[:1])


def _is_besides(part: Stage, named: frozenset[str]) -> bool:
    """Whether a finding is about all of a part but calls of compiled functions."""
    return part is Stage.BETWEEN and StepWork.BETWEEN_CALLS in named


def _finding(hot: Sequence[Hot], unexplained: Unexplained, breakdown: Breakdown, limits: Limits) -> Finding:
    names = [line.callback or (location(line.at) if line.at else "A line outside your files") for _, line in hot]
    (_, first), left, effects, remedies = hot[0], dict(unexplained.parts_ms), [], []
    for (stage, line), name in zip(hot, names, strict=True):
        of = min(line.ms, left[stage])  # a ceiling; all of a part together at most what is unexplained in it
        left[stage] -= of
        if of > 0:
            effects.append(Effect(stage, 0.0, name, ms(of), bound=Bound.AT_MOST))
        change = DRAWN if "random" in line.main_call.split(".") else CHANGES.get(line.work, "")
        remedies.append(Remedy(RARELY.format(line.callback) if line.callback else change, at=line.at))
    mostly = f", mostly in {first.main_call}" if first.main_call else ""
    table = Table.of(
        hot,
        ("your line", lambda one: one[1].at),
        ("called from", lambda one: one[1].callback or one[1].caller or "-"),
        ("calls", lambda one: ", ".join(name or "its own code" for name in [*one[1].calls][:2]) or "-"),
        ("part of the step", lambda one: str(one[0])),
        ("samples", lambda one: count(one[1].seen)),
        ("time per step", lambda one: ms(one[1].ms)),
        most=SHOWN_ROWS,
    )
    return Finding(
        summary=f"{names[0]} takes about {milliseconds(first.ms)} of {breakdown.each_step}{mostly}",
        evidence=(
            Measure.share("share of the step in the line", first.ms / breakdown.step_ms, limits.share),
            Measure("stack samples in the line", count(first.seen), count(limits.samples)),
            table,
        ),
        remedies=tuple(remedies[:SHOWN_ROWS]),
        effects=tuple(effects),
        alike=len(hot) - 1,
    )
