"""Runs made by hand: a program whose step and whose effect of each change are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.trial.test_times import loop
from tfdoctor.diagnosis.trials import Trial, Trials
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.times import Loop, TrainedState, times_of
from tfdoctor.trial.trial_run import TrialRun

LOSSES = (2.0, 1.5, 1.2)
OTHER_LOSSES = (2.1, 1.6, 1.3)


@dataclass
class Machine:
    """Runs a made-up program: a variant multiplies its step by a factor, a set by those of its parts or its own."""

    factors: dict[str, float]
    seconds: float = 15.0
    errors: dict[str, str] = field(default_factory=dict)
    late: dict[str, TrialRun] = field(default_factory=dict)  # what its second run gives
    between: float = 0.005  # runs differ by this share
    digests: dict[str, str] = field(default_factory=dict)  # "*" in one: other weights in each run
    examples: dict[str, int] = field(default_factory=dict)  # of a step, else 32
    finite: bool = True
    updates: int = 1  # of the weights, a step
    at_once: int = 1  # runs
    tick: Callable[[float], object] = lambda _: None
    order: list[str] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def run(self, variant: Variant, _enough: Enough) -> TrialRun:
        self.order.append(variant.name)
        self.tick(self.seconds)
        if variant.name in self.errors:
            why = self.errors[variant.name]
            return TrialRun(why=why, error=why, seconds=self.seconds)
        if variant.name in self.late and self.order.count(variant.name) == 2:
            return self.late[variant.name]
        parts = np.prod([self.factors.get(part, 1.0) for part in variant.name.split(" + ")])
        factor = self.factors.get(variant.name, float(parts))
        step = 10 * factor * np.exp(self.random.normal(0, self.between))
        spans = step * np.exp(self.random.normal(0, 0.02, 300))
        examples = self.examples.get(variant.name, 32)
        digest = self.digests.get(variant.name, "same").replace("*", str(len(self.order)))
        updates = [[step, step * self.updates] for step in (20, 296)]
        made = loop(spans.tolist(), examples=[examples] * 4, updates=updates)
        return TrialRun(
            *times_of(Loop.read(made)),
            TrainedState(20, digest, dict(enumerate(_losses(digest), 1))),
            finite=self.finite,
            seconds=self.seconds,
        )


RunOne = Callable[[Variant, Enough], TrialRun]


def stage_of(run: RunOne, at_once: int = 1) -> Runner:
    """Return where such runs happen, so many at once."""

    def runs(variants: Sequence[Variant], enough: Enough) -> Sequence[TrialRun]:
        return [run(one, enough) for one in variants]

    made: Any = SimpleNamespace(runs=runs, at_once=lambda: at_once, layer=True)
    stage: Runner = made
    return stage


def _losses(digest: str) -> Sequence[float]:
    """Return the losses of a run: nearly the same for weights that are others in each run."""
    if digest.isdecimal():
        return [loss * (1 + int(digest) % 3 / 200) for loss in LOSSES]
    return LOSSES if digest == "same" else OTHER_LOSSES


def row(trials: Trials, name: str) -> Trial:
    return next(one for one in trials.rows if one.name == name)


def join(parts: Sequence[Variant]) -> Variant:
    return Variant(
        " + ".join(part.name for part in parts),
        exact=all(part.exact for part in parts),
        reorders=any(part.reorders for part in parts),
    )
