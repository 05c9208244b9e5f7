"""The steps of one run of a trial: when each began, and the time that one takes once it is steady."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tfdoctor.capture.agent.trial.settings import NO_XLA, POOL_THREADS
from tfdoctor.terms.record import Record, field

Floats = npt.NDArray[np.float64]
MS_PER_S = 1000.0

BLOCKS = 20  # Blocks that the steady steps of a run are cut into: their spread shows how steady it was
BLOCK_MS = 50.0  # Shortest block: a pause of the operating system is a small part of it
SLOW_START = 3.0  # A block at the start this many median deviations above the later ones belongs to the warm-up
# What it means that the agent could make a setting nowhere.
UNUSED = {POOL_THREADS: "no tf.data pipeline took the setting", NO_XLA: "no function was compiled with XLA"}
LARGEST_RATIO = 16  # Updates for a step, or steps for an update, above which the ratio is not taken for exact


class TrainedState(Record):
    """What training had done before a certain step."""

    step: int
    digest: str | None = None  # of the weights
    losses: Mapping[int, float] = field(default_factory=dict)  # by steps done


class Loop(Record):
    """One training loop as the agent saw it."""

    source: str  # how its steps were found
    starts_ms: Floats  # when each call began, shape (calls,)
    sizes: npt.NDArray[np.int64]  # steps of each call, shape (calls,)
    warmup: int  # steps left out at the start, as the agent's plan said
    fewest: int  # calls after them without which there is no figure, as it said
    epoch_steps: int | None = None
    updates: tuple[tuple[int, int], ...] = ()  # (steps begun, updates of the optimizers by then)
    epoch_ends: tuple[int, ...] = ()  # steps begun by the end of each epoch
    examples: int | None = None  # of a step, as far as they are seen to be the same for most
    state: TrainedState | None = None  # before the step at which weights are compared
    common_ms: tuple[float, float] = (-math.inf, math.inf)  # while all runs that take turns are steady

    @classmethod
    def read(cls, loop: dict[str, Any]) -> Self:
        """Read one loop of `timing.json`; a call of several steps returns the loss after the last of them."""
        state, seen = loop["state"], loop.get("examples", ())
        usual = max(seen, key=seen.count, default=0)
        by_steps = zip(accumulate(loop["sizes"]), state["losses"] if state else (), strict=False)
        losses = {steps: loss for steps, loss in by_steps if loss is not None}
        return cls(
            str(loop["source"]),
            np.asarray(loop["starts_ns"], dtype=np.float64) / 1e6,
            np.asarray(loop["sizes"], dtype=np.int64),
            int(loop["warmup"]),
            int(loop["fewest"]),
            loop["epoch_steps"] or next(iter(loop["epoch_ends"]), None),
            tuple((int(step), int(count)) for step, count in loop["updates"]),
            tuple(map(int, loop["epoch_ends"])),
            usual if usual > 0 and 2 * seen.count(usual) > len(seen) else None,
            TrainedState(int(state["step"]), state.get("digest"), losses) if state else None,
        )

    @property
    def covers_ms(self) -> float:
        """The time from its first step to its last."""
        return float(self.starts_ms[-1] - self.starts_ms[0]) if len(self.starts_ms) else 0.0

    @property
    def usual_s(self) -> tuple[float, float]:
        """The median time of a steady step and of a steady call, in s."""
        spans, sizes = self.steady()
        return float(np.median(spans / sizes)) / 1e3, float(np.median(spans)) / 1e3

    def updates_per_step(self) -> Fraction | None:
        """Return how many updates of the weights a step makes; None where that was not counted exactly.

        At the end of an epoch of unknown length, Keras begins a step for which there is no batch. TensorFlow may
        count its update or not: that operation does not wait for the batch.
        """
        if len(self.updates) < 2:  # noqa: PLR2004 - a difference needs two
            return None
        (first, before), (last, after) = self.updates[0], self.updates[-1]
        if last <= first or after <= before:
            return None
        steps = last - first
        ratio = Fraction(after - before, steps)
        whole, ends = round(ratio), sum(first < end <= last for end in self.epoch_ends)
        if whole and -whole <= after - before - whole * steps <= whole * (1 + ends):
            return Fraction(whole)
        # The end of a run cuts a step off. Of fractions with such denominators, one at most is so near:
        near = ratio.limit_denominator(max(1, min(LARGEST_RATIO, math.isqrt(steps // 2))))
        return near if near > 0 and abs(near - ratio) * steps <= max(Fraction(1), near) else None

    def steady_span_ms(self) -> tuple[float, float]:
        """Return when the first steady call began and the last one ended, in ms of the clock of `starts_ms`."""
        return float(self.starts_ms[self._warm]), float(self.starts_ms[-1])

    def steady(self) -> tuple[Floats, Floats]:
        """Return the time of each steady call in ms, and its steps."""
        begin, end = self.common_ms
        steady = (self.starts_ms[:-1] >= begin) & (self.starts_ms[1:] <= end)
        steady[: self._warm] = False
        return np.diff(self.starts_ms)[steady], self.sizes[:-1][steady].astype(np.float64)

    @property
    def _warm(self) -> int:
        sizes = self.sizes[:-1]
        begun = np.cumsum(sizes) - sizes
        warm = int(np.searchsorted(begun, self.warmup))
        after_first = int(np.searchsorted(begun, self.epoch_steps or 0))
        return max(warm, after_first) if len(sizes) - after_first >= self.fewest else warm

    @property
    def has_enough(self) -> bool:
        """Whether there are enough steady calls for a figure."""
        return len(self.steady()[0]) >= self.fewest

    def on(self, clock: Callable[[Floats], Floats]) -> Self:
        """Return the same with the times of another clock; it gets those of this one, in ms."""
        begin, end = map(float, clock(np.array(self.common_ms)))
        return replace(self, starts_ms=clock(self.starts_ms), common_ms=(begin, end))


class TrialTimes(Record):
    """The figures of one run, each in ms for one update of the weights, or for one step."""

    blocks_ms: Floats  # of steady blocks of steps, shape (blocks,)
    whole_ms: float  # of all steady time, with what happens between epochs
    steps: int
    loop: Loop
    per: Fraction  # updates for a step; 1 where they were not counted
    counted: bool  # whether updates were counted

    @property
    def step_ms(self) -> float:
        """The time of a step: the median over blocks of the block's mean."""
        return float(np.median(self.blocks_ms))

    @property
    def examples(self) -> Fraction | None:
        """The examples of what the figures are of: an update of the weights, or a step; None where not seen."""
        return None if self.loop.examples is None else self.loop.examples / self.per

    @classmethod
    def of_whole_run(cls, seconds: float) -> Self:
        """Return the time from the start of a program to its end, of which no step is known."""
        none = np.zeros(0)
        loop = Loop("", none, none.astype(np.int64), 0, 0)
        return cls(np.array([MS_PER_S * seconds]), MS_PER_S * seconds, 1, loop, Fraction(1), counted=False)


def examples_ratio(times: TrialTimes, original: TrialTimes) -> Fraction | None:
    """Return the examples of a step for each one of the program as it is; None where they were not seen."""
    return times.examples / original.examples if times.examples and original.examples else None


def other_examples(times: TrialTimes | None, original: TrialTimes | None) -> str:
    """Return how the examples of a step differ from those of the program as it is, as a clause; "" if not."""
    if not times or not original or examples_ratio(times, original) in (None, 1):
        return ""
    own, its = (f"{float(one.examples or 0):.6g}" for one in (times, original))
    return f"a step has {own} example{'' if own == '1' else 's'} instead of {its}"


class Timing(Record):
    """All that the agent wrote of a process."""

    loops: tuple[Loop, ...] = ()
    finite: bool | None = None
    enough: bool = False  # whether the agent ended the process, because it had enough
    ineffective: str = ""  # why the variant's settings did not reach the program

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read `timing.json`.

        Raises:
            OSError: there is none.
            ValueError: it is not what the agent writes.
        """
        data = json.loads(path.read_text("utf-8"))
        return cls(
            tuple(Loop.read(loop) for loop in data["loops"]),
            data["finite"],
            bool(data["enough"]),
            _ineffective(data.get("settings", {}), data.get("without")),
        )

    def chosen(self) -> Loop | None:
        """Return the loop to time: the one that covers the run; of several, the one of the fewest calls."""
        usable = [loop for loop in self.loops if len(loop.starts_ms) > loop.fewest]
        longest = max((loop.covers_ms for loop in usable), default=0.0)
        outer = [loop for loop in usable if loop.covers_ms >= 0.9 * longest]
        return min(outer, key=lambda loop: len(loop.starts_ms), default=None)


def _ineffective(settings: dict[str, Any], without: dict[str, Any] | None) -> str:
    """Return why a variant's settings did not reach the program, or its part was not taken out; else ""."""
    if replaced := settings.get("replaced"):
        return f"the program sets {' and '.join(replaced)} itself"
    unused = [name for name, times in settings.get("reached", {}).items() if not times]
    if unused:
        return UNUSED[unused[0]]
    if without is None or without["reached"]:
        return ""
    return str(without["refused"]) or "nothing of it ran in the steps that were timed"


def aligned(loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops of runs that take turns with the steps while all are steady, or all where these are few.

    Before and after, what else the host computes meets only some. A loop without enough steps stays as it is.
    """
    spans = [loop.steady_span_ms() for loop in loops if loop.has_enough]
    begin, end = (max((one[0] for one in spans), default=0.0), min((one[1] for one in spans), default=0.0))
    cut = [replace(one, common_ms=(begin, end)) if one.has_enough else one for one in loops]
    same = [one.has_enough for one in loops] == [one.has_enough for one in cut]
    return cut if same else list(loops)


def times_of(loop: Loop) -> tuple[TrialTimes | None, str]:
    """Return the figures of a loop; without enough steps, why there are none."""
    spans, sizes = loop.steady()
    if len(spans) < loop.fewest:
        return None, f"only {len(spans)} steps came after the warm-up, and a figure needs {loop.fewest}"
    counted = loop.updates_per_step()
    per = counted or Fraction(1)
    blocks = _without_slow_start(_blocks(spans, sizes)) / float(per)
    whole = float(spans.sum() / sizes.sum()) / float(per)
    return TrialTimes(blocks, whole, int(sizes.sum()), loop, per, counted is not None), ""


def _blocks(spans: Floats, sizes: Floats) -> Floats:
    """Return the mean time of a step in each of some twenty blocks of equal numbers of calls."""
    fewest = max(1, int(np.ceil(BLOCK_MS / max(1e-9, float(np.median(spans))))))
    length = max(len(spans) // BLOCKS, min(fewest, len(spans) // 3), 1)
    edges = range(0, len(spans) - length + 1, length)
    return np.array([spans[e : e + length].sum() / sizes[e : e + length].sum() for e in edges], dtype=np.float64)


def _without_slow_start(blocks: Floats) -> Floats:
    """Leave out blocks at the start that are slower than the second half is, at most a third of all."""
    later = blocks[len(blocks) // 2 :]
    middle = float(np.median(later))
    deviation = float(np.median(np.abs(later - middle))) or 0.01 * middle
    slow = blocks > middle + SLOW_START * deviation
    first = next((n for n, is_slow in enumerate(slow) if not is_slow), 0)
    return blocks[min(first, len(blocks) // 3) :]
