"""Which host is a straggler, and in which stage.

In synchronous training all hosts' steps are equally long: the slow hosts work while the others wait for them
in a collective. So each host's *own work* is compared, step by step: everything but collectives.

A host lags when its own work exceeds the median of the others' by more than chance and by more than the
steps differ among themselves:

- The median excess is tested with the sign test (Conover, Practical Nonparametric Statistics, 3rd ed., 3.4;
  the order statistics give the interval), which assumes no distribution, at the level ALPHA over all hosts
  together (Bonferroni). It assumes that steps are independent of each other.
- The excess must be larger than its own quartile deviation (half the interquartile range), and than MATTERS of
  the step.

It is a *straggler* when the others also spend that time in collectives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, comb, log2

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.scale.host_matching import Matching
from tfdoctor.facts.scale.host_steps import OWN, HostSteps
from tfdoctor.terms.verdict import Stage

ALPHA = 0.01  # The highest probability of a false straggler in a job of equal hosts
MATTERS = 0.05  # Share of the step below which a lag is not worth reporting; from there on a saving is a warning
# Share of the lag that the others must spend in collectives at least: they may spend the rest elsewhere, in a
# barrier or in Python.
WAITED = 0.5

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lag:
    """A host whose own work takes longer than that of the others; ms per training step."""

    host: str
    ms: float  # the median of its excess over the others' median
    at_least_ms: float  # the same, at the level of confidence
    stage: str  # which takes most of it
    stage_ms: float
    waited_ms: float  # how much longer the others are in collectives
    gain_ms: float  # the time saved per step if it were as fast as the slowest of the others

    @property
    def job_gain_ms(self) -> float:
        """The most that a step could save: not more than the others wait."""
        return min(self.gain_ms, self.waited_ms)

    @property
    def holds_up(self) -> bool:
        """Whether the others wait for it."""
        return self.waited_ms >= WAITED * self.ms


@dataclass(frozen=True, slots=True)
class Comparison:
    """The hosts that lag, the slowest first, and how the hosts' own work differs."""

    steps: int  # that all hosts have
    steps_needed: int
    step_ms: float  # the median step of all
    largest_ms: float  # excess of any host
    spread_ms: float  # its quartile deviation
    lags: tuple[Lag, ...]

    @property
    def too_few(self) -> bool:
        """Whether there are too few steps to tell a slow host from chance."""
        return self.steps < self.steps_needed


def compare(hosts: Mapping[str, HostSteps], matching: Matching) -> Comparison:
    """Compare the own work of two or more hosts over the steps that all have."""
    names, needed = sorted(hosts), ceil(log2(len(hosts) / ALPHA))
    if matching.count < needed:
        return Comparison(matching.count, needed, 0.0, 0.0, 0.0, ())
    own = matching.table({name: host.own_ms for name, host in hosts.items()})
    step_ms = _middle(matching.table({name: host.total_ms for name, host in hosts.items()}))
    parts = {
        str(stage): matching.table({name: host.parts[stage] for name, host in hosts.items()}) for stage in Stage
    }
    alpha, excesses, lags = ALPHA / len(names), [_excess(own, at) for at in range(len(names))], []
    for at, excess in enumerate(excesses):
        lower = lower_bound(excess, alpha)
        if lower <= MATTERS * step_ms or _middle(excess) <= _deviation(excess):
            continue
        stages = {str(stage): _middle(_excess(parts[stage], at)) for stage in OWN}
        stage = max(stages, key=lambda name: stages[name])
        waited = -_middle(_excess(parts[Stage.COLLECTIVE], at))
        gain = _middle(own[at] - np.delete(own, at, axis=0).max(axis=0))
        waits = max(0.0, waited), max(0.0, gain)
        lags.append(Lag(names[at], _middle(excess), lower, stage, stages[stage], *waits))
    lags.sort(key=lambda lag: (-lag.ms, lag.host))
    slowest = max(excesses, key=_middle)
    return Comparison(matching.count, needed, step_ms, _middle(slowest), _deviation(slowest), tuple(lags))


def _middle(values: Times) -> float:
    return float(np.median(values))


def _excess(table: Times, at: int) -> Times:
    """Return (steps,) by how much a host exceeds the median of all others."""
    return np.asarray(table[at] - np.median(np.delete(table, at, axis=0), axis=0), float)


def _deviation(excess: Times) -> float:
    low, high = np.percentile(excess, (25, 75))
    return float(high - low) / 2


def lower_bound(values: Times, alpha: float) -> float:
    """Return what the median exceeds with probability 1 - alpha, by the sign test; else -inf."""
    ordered = np.sort(values)
    reached, tail = float("-inf"), 0.0
    for below, value in enumerate(ordered):
        tail += comb(len(ordered), below) / 2 ** len(ordered)
        if tail > alpha:
            break
        reached = float(value)
    return reached
