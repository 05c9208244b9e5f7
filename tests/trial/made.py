"""Runs made by hand: a program whose step and whose effect of each change are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.trial.test_times import loop
from tfdoctor.trial.running import Enough, TrialRun
from tfdoctor.trial.times import Loop, NoTimes, TrainedState, times_of
from tfdoctor.trial.variants import Variant

LOSSES = (2.0, 1.5, 1.2)


@dataclass
class Machine:
    """Runs a made-up program: each variant multiplies its step by a factor, two multiply each other's."""

    factors: dict[str, float]
    seconds: float = 15.0
    errors: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    tick: Callable[[float], object] = lambda _: None
    order: list[str] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def run(self, variant: Variant, _enough: Enough, _number: int) -> TrialRun:
        self.order.append(variant.name)
        self.tick(self.seconds)
        if variant.name in self.errors:
            why = self.errors[variant.name]
            return TrialRun(NoTimes(why), exit_code=1, error=why, seconds=self.seconds)
        factor = float(np.prod([self.factors.get(part, 1.0) for part in variant.name.split(" + ")]))
        step = 10 * factor * np.exp(self.random.normal(0, 0.005))
        spans = step * np.exp(self.random.normal(0, 0.02, 300))
        digest = self.digests.get(variant.name, "same")
        return TrialRun(
            times_of(Loop.read(loop(spans.tolist()))),
            TrainedState(
                20, digest, LOSSES if digest == "same" else tuple(loss + 0.1 for loss in LOSSES)
            ),
            finite=True,
            seconds=self.seconds,
        )


def join(parts: Sequence[Variant]) -> Variant:
    return Variant(" + ".join(part.name for part in parts), exact=all(part.exact for part in parts))
