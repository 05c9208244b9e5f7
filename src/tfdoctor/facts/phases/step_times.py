"""The durations of the training steps of a run, one by one or by bins, with quantiles."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from tfdoctor.recording.run_log import BucketSteps, Line, RunLog

Floats = npt.NDArray[np.float64]

BIN = 1.02  # Ratio of the ends of a bin, as the recorder chose it: a quantile is exact to 2 %
MIDDLE = 0.5
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StepDurations:
    """Durations in ms per step, in order, each of ``calls`` calls that ended in bucket number ``bucket``."""

    ms: Floats
    calls: Floats
    bucket: npt.NDArray[np.int64]

    @classmethod
    def of(cls, *steps: tuple[int, BucketSteps]) -> Self:
        """Take the steps of buckets, each with its bucket's number."""
        rows = []
        for number, some in steps:
            each = max(1.0, some.steps / some.calls) if some.calls else 1.0
            if some.each:
                rows += [(ms / each, 1.0, number) for ms in some.each]
            elif some.bins:
                bins = {int(key): count for key, count in some.bins.items() if key.lstrip("-").isdecimal()}
                rows += [(BIN ** (at + MIDDLE) / 1000 / each, float(n), number) for at, n in sorted(bins.items())]
            elif some.calls:
                rows.append((some.ms / some.calls / each, float(some.calls), number))
        columns = np.array(rows, np.float64).reshape(-1, 3).T
        return cls(columns[0], columns[1], columns[2].astype(np.int64))

    @property
    def count(self) -> float:
        """The number of calls."""
        return float(self.calls.sum())

    def quantile(self, share: float) -> float:
        """Return the duration that this share of the calls does not exceed; 0 where there is none."""
        if not len(self.ms):
            return 0.0
        position = share * (self.count - 1)
        order = np.argsort(self.ms, kind="stable")
        last = np.cumsum(self.calls[order]) - 1.0
        at = np.searchsorted(last, np.array([np.floor(position), np.ceil(position)]) - ROUNDING)
        low, high = self.ms[order][np.minimum(at, len(order) - 1)]
        return float(low + (high - low) * (position % 1.0))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return some of the steps."""
        return type(self)(self.ms[chosen], self.calls[chosen], self.bucket[chosen])


def main_loop(log: RunLog) -> tuple[str, Line | None]:
    """Return the source and the line of the loop whose steps took most time; "" and None where none is known."""
    times: dict[tuple[str, Line | None], float] = defaultdict(float)
    for bucket in log.buckets:
        for steps in bucket.steps:
            times[steps.source, steps.at] += steps.ms
    return max(times, key=lambda loop: times[loop], default=("", None))


def main_steps(log: RunLog) -> list[tuple[int, BucketSteps]]:
    """Return the steps of the loop with the most time, bucket by bucket, each with the bucket's number."""
    loop = main_loop(log)
    own = ((number, steps) for number, bucket in enumerate(log.buckets) for steps in bucket.steps)
    return [(number, steps) for number, steps in own if (steps.source, steps.at) == loop and steps.calls]


def usual_step(log: RunLog) -> float:
    """Return the median step in ms, of those that trace no function; 0 is unknown."""
    return StepDurations.of(*main_steps(log)).quantile(MIDDLE)
