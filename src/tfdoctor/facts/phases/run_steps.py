"""The training steps of the whole run: how long each took, and which of them the traced window is like."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.long_steps import LongSteps, long_steps
from tfdoctor.facts.phases.run_clock import whole_run
from tfdoctor.facts.phases.run_long_lines import RunLongLines
from tfdoctor.facts.phases.step_times import MIDDLE, StepDurations, main_loop, main_steps, of_loop
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import DISTORTED, FASTEST
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.run_log import RunLog
from tfdoctor.terms.kinds import StepSource
from tfdoctor.terms.verdict import Location, Stage

__all__ = ["LongSteps", "RunSteps"]

# Times the usual traced step within which a step is like it; from 1.5 on the recorder tells it as a long one.
LIKE = (0.67, 1.5)
# Buckets on either side of the traced ones whose untraced steps say what a step takes without the profiler.
AROUND = 2
MOST = 0.5  # Share of the samples in long steps from which they are like the traced ones where these wait
ENOUGH_STEPS = 5  # Steps from which a median is one (see Steps.too_few)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """All training steps, traced or not, of the loop with the most time; times in ms per step.

    Calls that trace a function are none of them (see RunTraces). Where input comes in bursts, every second or third
    step takes long, and ``long`` has only those that took much longer than the traced ones.
    ``window_share`` is the share of the time of all steps that is in steps like the traced ones (between 0.67 and
    1.5 times their median), None without a window. ``wait_longer`` says that the traced steps wait for input more
    than they do anything else, and that the stack in long ones is where they wait: then these are like them, too.
    """

    at: Location | None
    source: str
    count: int
    total_ms: float  # from a call to the next one, without epochs' boundaries
    mean_ms: float
    median_ms: float
    p10_ms: float
    p90_ms: float
    long: LongSteps | None = None
    traced_ms: float | None = None  # median of the traced steps
    window_share: float | None = None
    loops: int = 1  # that train, of which this one takes longest
    wait_longer: bool = False

    @classmethod
    def of(cls, at: Location, count: int, each_ms: float, long: LongSteps | None = None) -> Self:
        """Build steps of the same time, for examples and tests."""
        whole_ms = count * each_ms
        each: dict[str, Any] = dict.fromkeys(("mean_ms", "median_ms", "p10_ms", "p90_ms"), each_ms)
        return cls(at=at, source="keras-fit", count=count, total_ms=whole_ms, long=long, **each)

    @classmethod
    def measure(
        cls, recording: Recording, in_trace: Steps | None, breakdown: Breakdown | None, seen: RunLongLines | None
    ) -> Self:
        """Add up the steps of the log.

        Raises:
            Unavailable: the run as a whole was not recorded, it trains nothing, or a graph holds the loop: what the
                log counts then are calls of many steps.
        """
        log = whole_run(recording)
        source, at = main_loop(log)
        if source == StepSource.GRAPH_LOOP:
            raise Unavailable("a loop inside a tf.function runs the steps, so they are not seen")
        steps = list(main_steps(log))
        times = StepDurations.of(log)
        count, total = sum(one.steps for one in steps), sum(one.ms for one in steps)
        if not count or not times.count:
            raise Unavailable("no training step was seen in the run")
        bursts = in_trace.steps if in_trace and in_trace.in_bursts else ()
        traced, share = _window(log, times, recording.manifest, in_bursts=bool(bursts))
        slowest = max((step.total_ms for step in bursts), default=0.0)
        long = long_steps([step for step in log.long_steps if step.ms > LIKE[1] * slowest])
        parts = breakdown.median if breakdown and breakdown.waits_for_input else {}
        waits = bool(parts) and parts[Stage.INPUT] == max(parts.values())  # more than anything else
        waiting = seen.waiting if seen and long and waits else 0.0
        if long and share is not None:
            share = min(1.0, share + waiting * long.ms / total)
        return cls(
            at=Places.of(recording)(at), source=source, count=count, total_ms=total, mean_ms=total / count,
            median_ms=times.quantile(MIDDLE), p10_ms=times.quantile(0.1), p90_ms=times.quantile(0.9), long=long,
            traced_ms=traced, window_share=share, wait_longer=waiting >= MOST,
            loops=len({(one.source, one.at) for bucket in log.buckets for one in bucket.steps}),
        )  # fmt: skip

    @property
    def rest_ms(self) -> float:
        """What steps add to the median for each of them."""
        return max(0.0, self.total_ms - self.count * self.median_ms)

    def lack(self, share: float) -> bool:
        """Return whether they lack what long ones add to the traced time, a share of it from 0 to 1.

        As `UntracedSteps.contradict`, which knows fewer steps: they lack it where they have less than half of it.
        """
        beyond_ms = self.long.beyond_ms if self.long else 0.0
        return beyond_ms < share / 2 * self.total_ms


def _window(
    log: RunLog, times: StepDurations, manifest: Manifest | None, *, in_bursts: bool
) -> tuple[float | None, float | None]:
    """Return the median traced step, and the share of all time that is in steps like it; None without a window.

    The profiler only makes steps slower. Where traced ones are slower than the untraced ones around them, those say
    what they take; but where the fastest quarter of the traced ones is not, slow and fast steps are mixed, and a
    step is like them that is like any of them.
    """
    loop = main_loop(log)
    traced = [
        number for number, bucket in enumerate(log.buckets) if any(steps.traced for steps in of_loop(bucket, loop))
    ]
    inside = times.where(np.isin(times.bucket, traced))
    if not traced or not inside.count:
        return None, None
    near = (times.bucket >= traced[0] - AROUND) & (times.bucket <= traced[-1] + AROUND)
    around = times.where(near & ~np.isin(times.bucket, traced))
    others = around if around.count >= ENOUGH_STEPS else times
    known = manifest.steps.untraced if manifest else None
    told = known.traced_ms if known is not None and known.of == "steps" else None
    median = told or inside.quantile(MIDDLE)
    untraced, own = others.quantile(MIDDLE), StepDurations.of(log, traced=True)
    mixed = DISTORTED * untraced < median and own.quantile(FASTEST) <= untraced
    if in_bursts or mixed:
        return median, _share_like(times, np.unique(own.ms))
    usual = min(median, untraced)
    return median, _share_like(times, np.array([usual])) if usual else None


def _share_like(times: StepDurations, usual: npt.NDArray[np.float64]) -> float:
    """Return which share of the time of all steps is in those like one of the usual ones."""
    low, high = LIKE
    each = times.ms[:, np.newaxis]
    like = ((each >= low * usual) & (each <= high * usual)).any(axis=1)
    weights = times.ms * times.calls
    return float(weights[like].sum() / weights.sum())
