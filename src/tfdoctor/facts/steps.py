"""Where the training steps begin and end.

A step lasts from its own start to the start of the next one, so that the time between two calls
(callbacks, metrics, an epoch's end) belongs to the step before it and nothing is lost.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.device import Device
from tfdoctor.recording import Recording
from tfdoctor.trace import Event, Line, Plane, Trace
from tfdoctor.trace.names import END_OF_WINDOW, TRAINING_CALLS

PS_PER_MS = 1_000_000_000

TRAINING = re.compile(r"train|TraceContext|step", re.IGNORECASE)
"""A marker's name, when it is a training step's: xprof knows the first two, users write the third."""

OUTLIER_IQRS = 3.0
"""Tukey's far-out fence: three interquartile ranges above the third quartile."""

OUTLIER_FLOOR = 1.3
"""An outlier is at least this many times the median: very even steps have no quartiles to speak of."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the training step, in ps since the profile's start.

    ``calls`` training steps ran inside it (``steps_per_execution``); ``call_end_ps`` is when the
    call returned, ``end_ps`` when the next one began.
    """

    number: int
    start_ps: int
    call_end_ps: int
    end_ps: int
    calls: int = 1

    @property
    def total_ms(self) -> float:
        """Milliseconds per training step."""
        return (self.end_ps - self.start_ps) / PS_PER_MS / self.calls


@dataclass(frozen=True, slots=True)
class Steps:
    """The training steps of one host's trace."""

    source: str
    steps: tuple[Step, ...]
    typical: tuple[bool, ...]
    closed: bool = True  # the last step's end is known

    @classmethod
    def measure(cls, trace: Trace, recording: Recording, device: Device) -> Self:
        """Find the steps: markers, else a device's step line, else calls of Keras' train function.

        Raises:
            Unavailable: nothing in the trace says where a step begins.
        """
        source, steps, closed = _find(trace, device)
        seen = recording.manifest.steps if recording.manifest else None
        steps = [step for step in steps if not seen or step.number not in seen.discarded]
        if not steps:
            raise Unavailable(_why_none(recording))
        recorded = seen.source if seen and source == "markers" else None
        return cls.of(steps, source=recorded or source, closed=closed)

    @classmethod
    def of(cls, steps: Iterable[Step], source: str = "markers", *, closed: bool = True) -> Self:
        """Put steps together and tell the outliers among them."""
        found = tuple(steps)
        return cls(source, found, _typical([step.total_ms for step in found]), closed)

    @classmethod
    def uniform(cls, count: int, each_ms: float) -> Self:
        """Return evenly long steps, for examples and tests."""
        each = round(each_ms * PS_PER_MS)
        return cls.of(Step(i, i * each, (i + 1) * each, (i + 1) * each) for i in range(count))

    @property
    def typical_steps(self) -> tuple[Step, ...]:
        """The steps that are no outliers."""
        return tuple(s for s, typical in zip(self.steps, self.typical, strict=True) if typical)

    @property
    def count(self) -> int:
        """How many training steps were traced."""
        return sum(step.calls for step in self.steps)

    @property
    def median_ms(self) -> float:
        """The median time of a step."""
        return float(np.median([step.total_ms for step in self.steps]))

    @property
    def median_call_ms(self) -> float:
        """The median time inside the training call, per step: without what happens between two calls."""
        return float(
            np.median([(s.call_end_ps - s.start_ps) / PS_PER_MS / s.calls for s in self.steps])
        )

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the steps' times."""
        return float(np.percentile([step.total_ms for step in self.steps], percent))

    @property
    def mean_ms(self) -> float:
        """The mean time of a step, outliers included."""
        return float(np.mean([step.total_ms for step in self.steps]))


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The typical steps: (n,) starts and ends, in ps."""

    starts_ps: NDArray[np.int64]
    ends_ps: NDArray[np.int64]

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """Take the steps that are no outliers."""
        spans = np.array([(s.start_ps, s.end_ps) for s in steps.typical_steps], np.int64)
        return cls(spans[:, 0], spans[:, 1])

    def holds(self, times_ps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these times lie in a step."""
        latest = np.searchsorted(self.starts_ps, times_ps, side="right") - 1
        return (latest >= 0) & (times_ps < self.ends_ps[latest])


def _why_none(recording: Recording) -> str:
    said = recording.manifest.missing if recording.manifest else ()
    for missing in said:
        if missing.what in ("steps", "trace"):
            return missing.why
    return (
        "the trace holds no training step; record the run with `tfdoctor profile`, "
        "which marks the steps by itself"
    )


def _typical(times: list[float]) -> tuple[bool, ...]:
    if len(times) < 4:  # too few to tell what is typical  # noqa: PLR2004
        return (True,) * len(times)
    low, middle, high = quantiles(times, method="inclusive")
    fence = max(high + OUTLIER_IQRS * (high - low), OUTLIER_FLOOR * middle)
    return tuple(time <= fence for time in times)


def _find(trace: Trace, device: Device) -> tuple[str, list[Step], bool]:
    finders: tuple[tuple[str, Callable[[Trace], list[Step]]], ...] = (
        ("markers", _marked),
        ("tpu-steps" if device.kind == "TPU" else "markers", lambda _: _step_line(device.busiest)),
        ("repeated-call", _train_function_calls),
    )
    for source, find in finders:
        if steps := find(trace):
            end = _window_end(trace, steps[-1])
            if end is not None:
                steps[-1] = replace(steps[-1], end_ps=end)
            return source, steps, end is not None
    return "none", [], False


def _marked(trace: Trace) -> list[Step]:
    raw = [
        Step(
            int(event.stats["step_num"]),
            event.start_ps,
            event.end_ps,
            event.end_ps,
            max(1, int(event.stats.get("steps", 1))),
        )
        for line in _host_lines(trace)
        for event in map(line.event, _with_stats(line))
        if {"_r", "step_num"} <= event.stats.keys() and TRAINING.match(event.name)
    ]
    return _chain(raw)


def _step_line(plane: Plane | None) -> list[Step]:
    """Read the line "Steps" of the device that the report is about."""
    return _chain(
        [
            _device_step(number, event.name, event.start_ps, event.end_ps)
            for line in (plane.lines if plane else ())
            if line.name == "Steps"
            for number, event in enumerate(line.events())
        ]
    )


def _device_step(number: int, name: str, start: int, end: int) -> Step:
    digits = re.search(r"\d+$", name)
    return Step(int(digits[0]) if digits else number, start, end, end)


def _train_function_calls(trace: Trace) -> list[Step]:
    """Take the calls of Keras' train function: of several, the one with the most time in it."""
    found: dict[str, list[Step]] = defaultdict(list)
    for line in _host_lines(trace):
        kinds = [i for i, kind in enumerate(line.types) if kind.name in TRAINING_CALLS]
        for index in np.flatnonzero(np.isin(line.kind, kinds)):
            event = line.event(int(index))
            name = _called_function(line, int(index)) or event.name
            number = len(found[name])
            found[name].append(Step(number, event.start_ps, event.end_ps, event.end_ps))
    return _chain(max(found.values(), key=lambda s: sum(x.total_ms for x in s), default=[]))


def _called_function(line: Line, index: int) -> str:
    """Return the concrete function that a call runs: the nested EagerExecute names it."""
    end = line.start_ps[index] + line.duration_ps[index]
    for inner in range(index + 1, min(index + 8, len(line))):
        if line.start_ps[inner] >= end:
            break
        if name := line.stats.get(inner, {}).get("eager_op"):
            return str(name)
    return ""


def _chain(steps: list[Step]) -> list[Step]:
    """Let each step end where the next one begins, its call at the latest there too."""
    steps = sorted(steps, key=lambda step: step.start_ps)
    following = [step.start_ps for step in steps[1:]]
    chained = [
        replace(s, call_end_ps=min(s.call_end_ps, nxt), end_ps=nxt)
        for s, nxt in zip(steps, following, strict=False)
    ]
    return chained + steps[len(chained) :]


def _window_end(trace: Trace, last: Step) -> int | None:
    ends = [
        event.start_ps
        for line in _host_lines(trace)
        for event in _named(line, END_OF_WINDOW)
        if event.start_ps >= last.call_end_ps
    ]
    return min(ends, default=None)


def _named(line: Line, name: str) -> Iterator[Event]:
    kinds = [i for i, kind in enumerate(line.types) if kind.name == name]
    return (line.event(int(i)) for i in np.flatnonzero(np.isin(line.kind, kinds)))


def _with_stats(line: Line) -> Iterator[int]:
    return (index for index, stats in line.stats.items() if "step_num" in stats)


def _host_lines(trace: Trace) -> tuple[Line, ...]:
    return trace.host.lines if trace.host else ()
