from collections import Counter

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.host_lines import HostLine, HostLines, LineWork, by_caller
from tfdoctor.facts.step_time.slow_calls import slow_call
from tfdoctor.facts.step_time.stack_samples import StackSamples

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "it shows where the time goes, but no change that saves it"
GENERAL = True
"""Speaks only of time that no specific rule explains."""

SHOWN_ROWS = 8
"""Rows of the table: the lines that take most of the time."""

NAMED = {LineWork.READING: StepWork.READING_RESULTS, LineWork.ENTERING: StepWork.STEP_ENTRY}
"""Kinds of work that a specific finding may be about."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a line is named: both limits must be reached."""

    share: float = share_limit(
        0.05, "Smallest share of the step in a line that is named; findings of less are notes at best"
    )
    samples: float = limit(
        10.0, "Stack samples in a line before it is named; with 10 its time is uncertain by a third"
    )


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line in a part of the step that no specific finding explains."""

    stage: Stage
    line: HostLine

    @property
    def place(self) -> str:
        """Where it is: its callback, or its file and line."""
        line = self.line
        return line.callback or (location(line.at) if line.at else "A line outside your files")

    @property
    def calls(self) -> str:
        """What it calls most."""
        named = [name or "its own code" for name in list(self.line.calls)[:2]]
        return ", ".join(named) or "-"

    @property
    def change(self) -> str:
        """What to do about it."""
        if self.line.callback:
            return f"Let {self.line.callback} run every 100 batches or once per epoch"
        if "random" in self.line.main_call.split("."):
            return "Draw the random numbers of many steps at once"
        return CHANGES[self.line.work]


def check(
    unexplained: Unexplained,
    breakdown: Breakdown,
    lines: HostLines,
    samples: StackSamples | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Name the lines that take most of the host's time, where no other finding does."""
    parts = [part for part in (Stage.HOST, Stage.BETWEEN) if part in unexplained.parts_ms]
    least_ms = limits.share * breakdown.step_ms
    models = samples.models_at if samples else frozenset()
    made = _made(samples) if samples and StepWork.MAKING_BATCHES in unexplained.subjects else frozenset()
    found = (one for part in parts for one in _hot(part, lines, unexplained, least_ms, limits))
    hot = [one for one in found if one.line.at not in (models if one.line.work is LineWork.ENTERING else made)]
    if hot:
        return _finding(sorted(hot, key=lambda one: -one.line.ms), unexplained, breakdown, limits)
    parts = [part for part in parts if not _is_besides(part, unexplained.subjects)]
    if not parts:
        return Healthy(summary="Findings and necessary work leave no large part of the host's time")
    own = [line for part in parts for line in lines.own(part)]
    seen = sum(line.seen for line in own)
    if seen < limits.samples:
        return NotApplicable(
            reason=f"only {seen} stack samples lie in the host's time; trace more steps (--steps 100)"
        )
    evidence = [Measure("stack samples in the host's time", count(seen))]
    looping = [line.ms for line in own if line.work is LineWork.LOOPING]  # which no line chooses
    if looping:
        label = "time of the framework's own work for each call"
        evidence.append(Measure(label, ms(sum(looping))))
    summary = f"No line of Python takes {percent(limits.share)} of the step in the host's time"
    return Healthy(summary=summary, evidence=tuple(evidence))


def _made(samples: StackSamples) -> frozenset[Location | None]:
    """Return the lines that python-input is about: those that make batches, or the first where a model decides."""
    seen = Counter[Location | None]()
    for line in samples.makers:
        seen[line.at] += line.seen
    return frozenset(at for at, _ in seen.most_common(1 if samples.models_at else None))


def _is_besides(part: Stage, named: frozenset[str]) -> bool:
    """Whether a finding is about all of a part but calls of compiled functions."""
    return part is Stage.BETWEEN and StepWork.BETWEEN_CALLS in named


def _hot(
    part: Stage, lines: HostLines, unexplained: Unexplained, least_ms: float, limits: Limits
) -> Iterator[HotLine]:
    """Yield the lines of a part that take long, and the calls of functions whose other lines do together.

    Lines that a finding is about are left out; between-steps is about all but what starts compiled functions.
    """
    named = unexplained.subjects
    left = []
    for line in lines.own(part):
        slow = StepWork.SLOW_CALLS in named and slow_call(line.main_call) is not None
        besides = _is_besides(part, named) and line.work is not LineWork.ENTERING
        is_named = slow or besides or NAMED.get(line.work) in named
        starts = part is Stage.HOST and line.work is LineWork.ENTERING  # the training call itself
        is_own = (line.callback or line.at) and not starts  # else no line of the user's chooses it
        if line.work is not LineWork.LOOPING and is_own and not is_named:
            left.append(line)
    long = [line for line in left if _is_long(line, least_ms, limits)]
    callers = by_caller(line for line in left if line not in long)
    callers = tuple(line for line in callers if line.at not in lines.around)
    yield from (HotLine(part, line) for line in long)
    yield from (HotLine(part, line) for line in callers if _is_long(line, least_ms, limits))


def _is_long(line: HostLine, least_ms: float, limits: Limits) -> bool:
    return line.ms >= least_ms and line.seen >= limits.samples


def _finding(hot: list[HotLine], unexplained: Unexplained, breakdown: Breakdown, limits: Limits) -> Finding:
    first = hot[0].line
    share = first.ms / breakdown.step_ms
    mostly = f", mostly in {first.main_call}" if first.main_call else ""
    table = Table.of(
        hot,
        ("your line", lambda one: one.line.at),
        ("called from", lambda one: one.line.callback or one.line.caller or "-"),
        ("calls", lambda one: one.calls),
        ("part of the step", lambda one: str(one.stage)),
        ("samples", lambda one: count(one.line.seen)),
        ("time per step", lambda one: ms(one.line.ms)),
        most=SHOWN_ROWS,
    )
    return Finding(
        summary=f"{hot[0].place} takes about {milliseconds(first.ms)} of {breakdown.each_step}{mostly}",
        evidence=(
            Measure.share("share of the step in the line", share, limits.share),
            Measure("stack samples in the line", count(first.seen), count(limits.samples)),
            table,
        ),
        remedies=tuple(Remedy(one.change, at=one.line.at) for one in hot[:SHOWN_ROWS]),
        effects=tuple(_effects(hot, unexplained)),
        alike=len(hot) - 1,
    )


def _effects(hot: Iterable[HotLine], unexplained: Unexplained) -> Iterator[Effect]:
    """Yield each line's time as a ceiling; all of a part together at most what is unexplained in it."""
    left = dict(unexplained.parts_ms)
    for one in hot:
        of = min(one.line.ms, left[one.stage])
        left[one.stage] -= of
        if of > 0:
            yield Effect(one.stage, 0.0, one.place, ms(of), bound=Bound.AT_MOST)


CHANGES = {
    LineWork.READING: "Read the value every 100 steps, or once per epoch",
    LineWork.CONVERTING: "Make tensors of the arrays once, before the loop",
    LineWork.ENTERING: "Let one call do the work of several: for a whole batch, or inside the training function",
    LineWork.OPERATIONS: "Run this inside a tf.function, or once before the loop",
    LineWork.PYTHON: "Run this every 100 steps, once before the loop, or for the whole batch at once",
}
"""What to do about a line, by the kind of its work."""
