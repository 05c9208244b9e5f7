"""Where the training steps begin and end.

A step lasts from its own start to the start of the next one, so that the time between two calls
(callbacks, metrics, an epoch's end) belongs to the step before it and nothing is lost.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.compilations import compilations, exceptions
from tfdoctor.facts.steps.cycle import CALL
from tfdoctor.facts.steps.graph_calls import graph_calls
from tfdoctor.facts.steps.markers import marked, step_line, train_function_calls
from tfdoctor.facts.steps.queued_steps import MODULE_RUNS, module_steps, queued_steps
from tfdoctor.facts.steps.search import FEWEST, search
from tfdoctor.facts.steps.step import PS_PER_MS, Step, chain
from tfdoctor.kinds import DeviceKind, StepSource
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import StepsSeen
from tfdoctor.trace import Event, Intervals, Line, Trace
from tfdoctor.trace.names import END_OF_WINDOW, FUNCTION_RUNS

__all__ = ["PS_PER_MS", "Step", "StepSpans", "Steps"]

GRAPH_LOOP = StepSource.GRAPH_LOOP
"""What the recorder calls a loop inside a tf.function: a marker around its call is no step."""

HIDDEN = (
    "the loop that trains is inside a graph, and its rounds cannot be told apart in the trace (XLA runs a "
    "whole loop as one program); call the function once a step, to have its steps measured"
)

OUTLIER_IQRS = 3.0
"""Tukey's far-out fence: three interquartile ranges above the third quartile."""

OUTLIER_FLOOR = 1.3
"""An outlier is at least this many times the median: very even steps have no quartiles to speak of."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The training steps of one host's trace."""

    source: StepSource
    steps: tuple[Step, ...]
    steady: tuple[bool, ...]
    closed: bool = True  # the last step's end is known
    program: str = ""  # whose runs the steps are, where XLA's programs tell them

    @classmethod
    def measure(
        cls,
        trace: Trace,
        recording: Recording,
        device: Device,
        xla_programs: XlaPrograms,
        framework: Framework,
    ) -> Self:
        """Find the steps: markers, else a device's step line, else what recurs and trains.

        Raises:
            Unavailable: nothing in the trace says where a step begins, or not with certainty.
        """
        program, found = _told(trace, recording, device, xla_programs, framework)
        source, steps, closed = found or _searched(trace, in_graph=False)
        seen = recording.manifest.steps if recording.manifest else None
        steps = [step for step in steps if not seen or step.number not in seen.discarded]
        if not steps:
            raise Unavailable(_why_none(trace, recording, framework))
        recorded = _recorded(seen) if seen and source is StepSource.MARKERS else None
        compiling = compilations(trace)
        chosen = cls.of(steps, recorded or source, closed=closed, compiling=compiling)
        return replace(chosen, program=program)

    @classmethod
    def of(
        cls,
        steps: Iterable[Step],
        source: StepSource = StepSource.MARKERS,
        *,
        closed: bool = True,
        compiling: Intervals = Intervals(),  # noqa: B008 - frozen
    ) -> Self:
        """Put steps together and tell the outliers among them, and those in which XLA mostly compiled."""
        found = tuple(steps)
        return cls(source, found, _apart(found, exceptions(found, compiling)), closed)

    @classmethod
    def uniform(cls, count: int, each_ms: float) -> Self:
        """Return evenly long steps, for examples and tests."""
        each = round(each_ms * PS_PER_MS)
        return cls.of(Step(i, i * each, (i + 1) * each, (i + 1) * each) for i in range(count))

    @property
    def steady_steps(self) -> tuple[Step, ...]:
        """The steps that are no outliers."""
        return tuple(s for s, steady in zip(self.steps, self.steady, strict=True) if steady)

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
        """The median time inside the training call, per step: without what happens between two calls.

        Recordings made before 2026-11-21 say only this of the steps outside their window.
        """
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
class StepSpans:
    """The typical steps: (n,) starts and ends, in ps."""

    starts_ps: NDArray[np.int64]
    ends_ps: NDArray[np.int64]

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """Take the steps that are no outliers."""
        spans = np.array([(s.start_ps, s.end_ps) for s in steps.steady_steps], np.int64)
        return cls(spans[:, 0], spans[:, 1])

    def holds(self, times_ps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these times lie in a step."""
        latest = np.searchsorted(self.starts_ps, times_ps, side="right") - 1
        return (latest >= 0) & (times_ps < self.ends_ps[latest])


def _recorded(seen: StepsSeen) -> StepSource | None:
    """Return how the recorder found the steps; None where it does not say, or in words of another version."""
    return StepSource(seen.source) if seen.source in set(StepSource) else None


def _why_none(trace: Trace, recording: Recording, framework: Framework) -> str:
    said = recording.manifest.missing if recording.manifest else ()
    for missing in said:
        if missing.what in ("steps", "trace"):
            return missing.why
    if framework.foreign:
        return f"the trace marks no training step; {framework.how_to_record}"
    return (
        f"the trace holds no training step{_calls_seen(trace)}; record the run with `tfdoctor profile`, "
        "which marks the steps by itself"
    )


def _calls_seen(trace: Trace) -> str:
    """Return what recurs in a trace and may be training or a test: nothing in it tells."""
    often = Counter(call.name for call in graph_calls(trace) if not call.in_pipeline)
    name, times = often.most_common(1)[0] if often else ("", 0)
    if times < FEWEST:
        return ""
    what = "a graph" if name in FUNCTION_RUNS else f"`{name}`"
    return (
        f" that can be told: {what} is called {times} times, but no gradient or update is seen in it, as "
        "in prediction and tests"
    )


def _apart(steps: tuple[Step, ...], compiling: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return which steps are typical: of those that do not compile, the ones within the fence."""
    rest = iter(_steady([s.total_ms for s, one in zip(steps, compiling, strict=True) if not one]))
    return tuple(not one and next(rest) for one in compiling)


def _steady(times: list[float]) -> tuple[bool, ...]:
    if len(times) < 4:  # too few to tell what is typical  # noqa: PLR2004
        return (True,) * len(times)
    low, middle, high = quantiles(times, method="inclusive")
    fence = max(high + OUTLIER_IQRS * (high - low), OUTLIER_FLOOR * middle)
    return tuple(time <= fence for time in times)


Found = tuple[StepSource, list[Step], bool]
"""How the steps were found, the steps, and whether the last one's end is known."""


def _told(
    trace: Trace,
    recording: Recording,
    device: Device,
    xla_programs: XlaPrograms,
    framework: Framework,
) -> tuple[str, Found | None]:
    """Return the steps that need no search, and the program whose runs they are where XLA's tell them."""
    found = _marked(trace, recording, device, framework)
    if framework.foreign:
        marked_steps = found[1] if found else []
        program, source, steps = queued_steps(trace, device, xla_programs, framework, marked_steps)
        return program, found if found and source is StepSource.NONE else _closed(
            source, steps, trace
        )
    if found is None and device.kind == DeviceKind.TPU:
        program, steps = module_steps(device, xla_programs)
        return program, _closed(MODULE_RUNS, steps, trace) if steps else None
    return "", found


def _marked(
    trace: Trace, recording: Recording, device: Device, framework: Framework
) -> Found | None:
    """Return the steps that the recorder, a marker or the device tells of; None where none does."""
    manifest = recording.manifest
    if manifest and GRAPH_LOOP in (
        manifest.steps.source,
        manifest.window and manifest.window.source,
    ):
        return _searched(trace, in_graph=True)
    if steps := marked(trace, manifest, any_name=framework.foreign):
        return _closed(StepSource.MARKERS, steps, trace)
    if steps := step_line(device.busiest):
        return _closed(
            StepSource.TPU_STEPS if device.kind == DeviceKind.TPU else StepSource.MARKERS,
            steps,
            trace,
        )
    return None


def _searched(trace: Trace, *, in_graph: bool) -> Found:
    """Look for steps that nobody marked; Keras' train function is known by its name."""
    source, steps = search(trace, in_graph=in_graph)
    if not steps and not in_graph:
        source, steps = CALL, train_function_calls(trace)
    if not steps:
        if in_graph:
            raise Unavailable(HIDDEN)
        return StepSource.NONE, [], False
    if source == CALL:
        return _closed(source, chain(steps), trace)
    return source, chain(steps), True


def _closed(source: StepSource, steps: list[Step], trace: Trace) -> Found:
    """Let the last step end with the window, when the trace says when that was."""
    end = _window_end(trace, steps[-1])
    if end is None:
        return source, steps, False
    return source, [*steps[:-1], replace(steps[-1], end_ps=end)], True


def _window_end(trace: Trace, last: Step) -> int | None:
    ends = [
        event.start_ps
        for line in trace.host_lines
        for event in _named(line, END_OF_WINDOW)
        if event.start_ps >= last.call_end_ps
    ]
    return min(ends, default=None)


def _named(line: Line, name: str) -> Iterator[Event]:
    kinds = [i for i, kind in enumerate(line.types) if kind.name == name]
    return (line.event(int(i)) for i in np.flatnonzero(np.isin(line.kind, kinds)))
