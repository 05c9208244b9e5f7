"""Where the training steps begin and end.

A step lasts from its own start to the start of the next one, so that the time between two calls
(callbacks, metrics, an epoch's end) belongs to the step before it and nothing is lost.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import quantiles
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Program, batches_of, line_of
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.compilations import compilations, exceptions
from tfdoctor.facts.steps.graph_calls import graph_calls
from tfdoctor.facts.steps.input_stalls import input_bursts, input_stalls
from tfdoctor.facts.steps.known_steps import recorded_steps, searched_steps
from tfdoctor.facts.steps.search import FEWEST
from tfdoctor.facts.steps.step import PS_PER_MS, Step
from tfdoctor.facts.timeline.trainer import trainer_waits
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.terms.kinds import StepSource
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import FUNCTION_RUNS

__all__ = ["PS_PER_MS", "Step", "StepSpans", "Steps"]

FEW_STEPS = 2  # Traced steps up to which nothing is known of a typical one: two have no middle
FEWEST_STEPS = 5  # With fewer steps a median says little: one late callback moves it
OUTLIER_IQRS = 3.0  # Tukey's far-out fence: three interquartile ranges above the third quartile
# An outlier takes at least this many times the median: very even steps have a tiny interquartile range.
OUTLIER_FLOOR = 1.3


@dataclass(frozen=True, slots=True)
class Steps:
    """The training steps of one host's trace."""

    source: StepSource
    steps: tuple[Step, ...]
    steady: tuple[bool, ...]  # no outliers; those that the input stalls again and again are none
    program: str = ""  # whose runs are the steps, where they were found by XLA's programs
    stalled: tuple[bool, ...] = ()  # of the steady ones: long, because input stalls; () where none is
    in_bursts: bool = False  # short and long in turn: no outliers, and the median is of either kind

    @classmethod
    def measure(
        cls,
        trace: Trace,
        recording: Recording,
        device: Device,
        xla_programs: XlaPrograms,
        framework: Framework,
        program: Program | None,
    ) -> Self:
        """Find the steps: markers, else a device's step line, else cycles that train.

        Raises:
            Unavailable: the trace does not show, or not with certainty, where a step begins.
        """
        name, known_steps = recorded_steps(trace, recording, device, xla_programs, framework)
        source, steps = known_steps or searched_steps(trace, in_graph=False)
        seen = recording.manifest.steps if recording.manifest else None
        steps = [step for step in steps if not seen or step.number not in seen.discarded]
        if not steps:
            raise _none(trace, recording, framework)
        if seen and source is StepSource.MARKERS and seen.source in set(StepSource):  # else another version's name
            source = StepSource(seen.source)
        chosen = cls.of(steps, source, compilations(trace))
        if not chosen.median_ms > 0.0:
            raise Unavailable("the traced steps take no time: the trace is damaged", "record again")
        fed_by = line_of(program.feeding) if program else ()
        waits, untraced = trainer_waits(trace.host_lines), seen.untraced if seen else None
        apart_ms = recording.run.tracing_ms if recording.run else 0.0
        chosen = chosen.paying(waits, batches_of(fed_by), untraced, apart_ms)
        return replace(chosen, program=name)

    def paying(
        self,
        waits: Intervals,
        pass_steps: float | None,
        untraced: UntracedSteps | None = None,
        apart_ms: float = 0.0,
    ) -> Self:
        """Return these steps with those that input stalls again and again, which count as steady."""
        long = tuple(not steady for steady in self.steady)
        stalled = input_stalls(self.steps, long, waits, self.median_ms, pass_steps, untraced, apart_ms)
        if not any(stalled):
            bursts = input_bursts(self.steps, self.steady, waits, untraced)
            return replace(self, stalled=bursts, in_bursts=True) if any(bursts) else self
        steady = tuple(a or b for a, b in zip(self.steady, stalled, strict=True))
        return replace(self, steady=steady, stalled=stalled)

    @classmethod
    def of(
        cls,
        steps: Iterable[Step],
        source: StepSource = StepSource.MARKERS,
        compiling: Intervals = Intervals(),  # noqa: B008 - frozen
    ) -> Self:
        """Collect steps and find the outliers, and the steps in which XLA mostly compiled."""
        all_steps = tuple(steps)
        apart = exceptions(all_steps, compiling)
        times = [step.total_ms for step, compiled in zip(all_steps, apart, strict=True) if not compiled]
        fence = inf
        if len(times) >= 4:  # enough for quartiles  # noqa: PLR2004
            low, middle, high = quantiles(times, method="inclusive")
            fence = max(high + OUTLIER_IQRS * (high - low), OUTLIER_FLOOR * middle)
        within = (step.total_ms <= fence and not compiled for step, compiled in zip(all_steps, apart, strict=True))
        return cls(source, all_steps, tuple(within))

    @classmethod
    def uniform(cls, count: int, each_ms: float) -> Self:
        """Return evenly long steps, for examples and tests."""
        edges = [number * round(each_ms * PS_PER_MS) for number in range(count + 1)]
        return cls.of(Step(number, start, end, end) for number, (start, end) in enumerate(pairwise(edges)))

    @property
    def steady_steps(self) -> tuple[Step, ...]:
        """The steps that are no outliers."""
        return tuple(step for step, steady in zip(self.steps, self.steady, strict=True) if steady)

    @property
    def count(self) -> int:
        """How many training steps were traced."""
        return sum(step.calls for step in self.steps)

    @property
    def several_per_call(self) -> bool:
        """Whether one call holds several training steps already, as with ``steps_per_execution``."""
        return self.count > len(self.steps)

    @property
    def too_few(self) -> bool:
        """Whether they show no saving: too few steps, or too few calls of several steps, which have no middle."""
        return self.count < FEWEST_STEPS or len(self.steps) <= FEW_STEPS

    @property
    def median_ms(self) -> float:
        """The median time of a step, in ms."""
        return float(np.median([step.total_ms for step in self.steps]))

    @property
    def usual_ms(self) -> float:
        """The time of the step that figures are about, in ms.

        The median; where the input stalls some steps again and again, the mean of all but the outliers.
        """
        if not self.stalled:
            return self.median_ms
        calls = sum(step.calls for step in self.steady_steps)
        return sum(step.total_ms * step.calls for step in self.steady_steps) / calls

    @property
    def median_call_ms(self) -> float:
        """The median time inside the training call, per step: without what happens between two calls.

        Recordings made before 2026-11-21 say only this of the steps outside their window.
        """
        times = [(step.call_end_ps - step.start_ps) / PS_PER_MS / step.calls for step in self.steps]
        return float(np.median(times))

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the steps' times."""
        return float(np.percentile([step.total_ms for step in self.steps], percent))

    @property
    def mean_ms(self) -> float:
        """The mean time of a step, outliers included."""
        return float(np.mean([step.total_ms for step in self.steps]))


class StepSpans(Intervals):
    """The steady steps."""

    __slots__ = ()

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """Take the steps that are no outliers."""
        return cls((step.start_ps, step.end_ps) for step in steps.steady_steps)


def _none(trace: Trace, recording: Recording, framework: Framework) -> Unavailable:
    manifest = recording.manifest
    if manifest is not None and manifest.trace_gap is not None:
        return Unavailable(manifest.trace_gap.why)
    if manifest is not None and manifest.plan is not None and not manifest.plan.trace:
        return Unavailable("the run was recorded without a trace, as was asked for")
    if framework.foreign:
        return Unavailable("the trace marks no training step", framework.how_to_record)
    why = "no training step was found in the trace"
    often = Counter(call.name for call in graph_calls(trace) if not call.in_pipeline)
    name, times = often.most_common(1)[0] if often else ("", 0)
    if times >= FEWEST:
        what = "a graph" if name in FUNCTION_RUNS else f"`{name}`"
        why += f": {what} is called {times} times, but shows no gradient or update, as in prediction and evaluation"
    return Unavailable(why, "record with `tfdoctor profile`, which marks the steps")
