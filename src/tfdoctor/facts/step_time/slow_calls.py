"""Calls of TensorFlow and Keras that cost much per call, made in every step, by stack samples."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, SampleRow, SampleTable
from tfdoctor.facts.step_time.timed_line import LineWork, SlowCall, TimedLine, slow_call, work_of
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Location, Stage

# Share of the steps that samples would be seen in, if the call ran in every step, below which it runs more rarely.
# Samples of a call in every second step are seen in half as many steps or more.
SPREAD = 0.5
Group = list[SampleRow]  # The rows of a line
# Steps of a ``fit`` up to which its own cost is in every step: in longer ones, most steps are not the first.
SHORT_FIT = 2
SEVERAL_FITS = 5  # Calls of ``fit`` from which on they are a loop: scripts train in several phases, or warm up


@dataclass(frozen=True, slots=True)
class SlowCalls:
    """The lines whose samples are mostly in such calls, longest first; only calls spread over the steps.

    Their parts are the host's, between calls, the device's (operations that a call runs one by one), and waits for
    the pipeline that it has built. The time in which it runs a compiled function is its useful work, and left out;
    so is a call that is seen in few steps: it runs once per epoch or every 100 steps. Lines
    between a ``get_weights`` and a ``set_weights`` of the same function count as one work with them.
    """

    lines: tuple[TimedLine, ...] = ()
    step_count: int = 0  # steady steps that were sampled

    @classmethod
    def measure(
        cls,
        recording: Recording,
        table: SampleTable,
        sampled: SampledSteps,
        breakdown: Breakdown,
        eager: EagerWork | None,
    ) -> Self:
        """Count the samples of the steady steps; of a step that itself runs eagerly, no calls of models."""
        rows, locate = [row for row in table.steady_rows if len(row.step)], Places.of(recording)
        each_ms = breakdown.step_ms / max(1, sum(len(row.step) for row in rows))
        groups = _slow_groups(rows)
        wanted = _regular(groups, rows) - _own_calls(recording, eager)
        lines = (_line(kind, group, each_ms, locate) for kind, group in groups if kind in wanted)
        longest_first = sorted(filter(None, lines), key=lambda line: -line.ms)
        return cls(tuple(longest_first), len(sampled.steps.steady_steps))

    @property
    def ms(self) -> float:
        """The time of all lines, in ms per training step."""
        return sum(line.ms for line in self.lines)

    @property
    def places(self) -> frozenset[Location | None]:
        """The lines themselves."""
        return frozenset(line.at for line in self.lines)


def _own_calls(recording: Recording, eager: EagerWork | None) -> set[SlowCall]:
    """Return the calls that are the training: models of eager steps, and ``fit``, unless each has few steps."""
    own = {SlowCall.MODEL} if eager and eager.operations_ms > eager.functions_ms else set()
    seen = recording.manifest.steps if recording.manifest else None
    settings = recording.program.run if recording.program else None
    if seen is None or settings is None:
        return own | {SlowCall.FIT}
    steps, epochs = settings.steps_per_epoch, settings.epochs
    fits = seen.rounds or (seen.seen / (steps * epochs) if steps and epochs else 0)
    are_short = fits >= SEVERAL_FITS and seen.seen <= SHORT_FIT * fits
    return own if are_short else own | {SlowCall.FIT}


def _slow_groups(rows: Iterable[SampleRow]) -> list[tuple[SlowCall, Group]]:
    """Return the lines that are mostly in slow calls, and those that compute weights between two of them."""
    by_line: dict[tuple[str, int], Group] = defaultdict(list)
    for row in rows:
        if row.place.at is not None:
            by_line[row.place.at].append(row)
    kinds = {at: _kind(group) for at, group in by_line.items()}
    weights: dict[tuple[str, object], list[int]] = defaultdict(list)  # lines of a function, by its file and caller
    for (path, number), group in by_line.items():
        for row in group:
            if kinds[path, number] is SlowCall.WEIGHTS and row.place.caller:
                weights[path, row.place.caller].append(number)
    found = []
    for (path, number), group in by_line.items():
        around = [weights[path, row.place.caller] for row in group if (path, row.place.caller) in weights]
        between = SlowCall.WEIGHTS if any(min(each) < number < max(each) for each in around) else None
        if kind := kinds[path, number] or between:
            found.append((kind, group))
    return found


def _kind(group: Group) -> SlowCall | None:
    """Return the slow call that at least half of a line's samples are in."""
    counts: Counter[SlowCall | None] = Counter()
    for row in group:
        counts[slow_call(row.place.calls)] += len(row.step)
    kind, seen = max(counts.items(), key=lambda item: item[1] if item[0] else 0)
    return kind if 2 * seen >= counts.total() else None


def _regular(groups: Iterable[tuple[SlowCall, Group]], rows: Iterable[SampleRow]) -> set[SlowCall]:
    """Return the calls whose samples are spread over the steps as those of work in every step are.

    Their steps are compared with those that as many of all samples would hit by chance: some steps are sampled more
    often than others.
    """
    every = np.concatenate([np.zeros(0, np.int64), *(row.step for row in rows)])
    per_step = np.unique(every, return_counts=True)[1]
    steps: dict[SlowCall, list[int]] = defaultdict(list)
    for kind, group in groups:
        steps[kind] += [int(step) for row in group for step in row.step]
    regular = set()
    for kind, seen in steps.items():
        missed = (1.0 - len(seen) / per_step.sum()) ** per_step
        if len(set(seen)) >= SPREAD * float((1.0 - missed).sum()):
            regular.add(kind)
    return regular


def _line(kind: SlowCall, group: Group, each_ms: float, locate: Places) -> TimedLine | None:
    at = locate(group[0].place.at)
    if at is None:
        return None
    counts: Counter[Stage] = Counter()
    for row in group:
        trains = slow_call(row.place.calls) is SlowCall.FIT and row.place.inside
        if not trains and work_of(row.place) is not LineWork.ENTERING:  # else it is what the call is made for
            counts.update(Stage(part) for part in row.part if part != UNKNOWN)
    steps = {int(step) for row in group for step in row.step}
    return TimedLine.slow(at, kind, counts.total(), steps, {part: seen * each_ms for part, seen in counts.items()})
