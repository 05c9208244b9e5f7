"""Steps that somebody marked: tfdoctor, Keras 2, the script itself, or the device."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.cycle import GRAPH, MOSTLY
from tfdoctor.facts.steps.search import search
from tfdoctor.facts.steps.step import Step, chain
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.recording.manifest import Manifest
from tfdoctor.trace import Event, Plane, Trace
from tfdoctor.trace.names import TRAINING_CALLS

# Names of a training step's markers: xprof knows the first two, users write the third.
TRAINING = re.compile(r"train|TraceContext|step", re.IGNORECASE)
# Names that a training step's markers may have in JAX and PyTorch, which expect none in particular.
OTHER = re.compile(r"(?!.*(?:eval|test|valid|infer|predict|epoch)).+", re.IGNORECASE)


def marked(trace: Trace, manifest: Manifest | None, *, any_name: bool = False) -> list[Step]:
    """Read the markers; tfdoctor's own, which hold their number of steps, take precedence.

    With ``any_name``, markers of other names count too, where none is named after training.
    """
    events = list(_markers(trace, TRAINING)) or (list(_markers(trace, OTHER)) if any_name else [])
    markers = sorted(events, key=lambda event: event.start_ps)
    own = [event for event in markers if "steps" in event.stats]
    if own:
        return chain(marked_step(event, max(1, int(event.stats["steps"]))) for event in own)
    window = manifest.window if manifest else None
    if window is not None and window.calls:
        calls = max(1, round(window.steps / window.calls))
        return chain(_numbered([marked_step(event, calls) for event in markers], window.first_step))
    calls = _calls_each(trace, markers) if any("batch_size" in event.stats for event in markers) else 1
    steps = [marked_step(event, calls) for event in markers]
    if any(later.number <= step.number for step, later in pairwise(steps)):
        steps = _numbered(steps, steps[0].number)
    return chain(steps)


def _markers(trace: Trace, name: re.Pattern[str]) -> Iterator[Event]:
    for line in trace.host_lines:
        events = np.intersect1d(line.stats.having("_r"), line.stats.having("step_num"))
        yield from map(line.event, events[is_named(line, name.match)[events]].tolist())


def marked_step(event: Event, calls: int) -> Step:
    """Return the call of so many training steps that a marker stands for."""
    return Step(int(event.stats["step_num"]), event.start_ps, event.end_ps, event.end_ps, calls)


def _numbered(steps: list[Step], first: int) -> list[Step]:
    """Number steps consecutively: Keras 2 restarts its numbers in each epoch."""
    numbers = accumulate((step.calls for step in steps), initial=first)
    return [replace(step, number=number) for step, number in zip(steps, numbers, strict=False)]


def _calls_each(trace: Trace, markers: list[Event]) -> int:
    """Return how many training steps one of Keras 2's calls runs, which its markers do not hold."""
    try:
        source, steps = search(trace)
    except Unavailable:
        return 1
    starts = np.array([step.start_ps for step in steps], np.int64)
    inside = [int(np.count_nonzero((starts >= one.start_ps) & (starts < one.end_ps))) for one in markers]
    calls, times = Counter(inside).most_common(1)[0]
    return max(1, calls) if source == GRAPH and times >= MOSTLY * len(inside) else 1


def step_line(plane: Plane | None) -> list[Step]:
    """Read the line "Steps" of a device."""
    steps = []
    for line in plane.lines if plane else ():
        for place, event in enumerate(line.events() if line.name == "Steps" else ()):
            digits = re.search(r"\d{1,18}$", event.name)
            steps.append(Step(int(digits[0]) if digits else place, event.start_ps, event.end_ps, event.end_ps))
    return chain(steps)


def train_function_calls(trace: Trace) -> list[Step]:
    """Return the calls of Keras' train function: of several concrete ones, those of the one with the most time."""
    by_function: dict[str, list[Step]] = defaultdict(list)
    for line in trace.host_lines:
        for index in np.flatnonzero(is_named(line, TRAINING_CALLS.__contains__)).tolist():
            event = line.event(index)
            inner = map(line.event, range(index + 1, min(index + 8, len(line))))
            inside = (one for one in inner if one.start_ps < event.end_ps)
            named = (str(name) for one in inside if (name := one.stats.get("eager_op")))  # by EagerExecute
            calls = by_function[next(named, event.name)]
            calls.append(Step(len(calls), event.start_ps, event.end_ps, event.end_ps))
    return chain(max(by_function.values(), key=lambda calls: sum(step.total_ms for step in calls), default=[]))
