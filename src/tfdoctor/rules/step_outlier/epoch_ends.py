"""The call of Keras' fit that trains for several epochs: what it does after each one is its own work."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Places, Program
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Location

NEXT_TO = 2  # Steps from the last of an epoch to the first of the next: numbers begin with 0 or 1


@dataclass(frozen=True, slots=True)
class EpochEnds:
    """The line of a fit over several epochs, which ends each one itself: iterator, validation, metrics."""

    fit_at: Location
    epochs: int
    steps: int | None = None  # of each, where that is known

    @classmethod
    def measure(cls, recording: Recording, program: Program) -> Self:
        """Read the settings of the run.

        Raises:
            Unavailable: the run does not train with fit, or fit is called for each epoch.
        """
        fit_at = Places.of(recording)(program.settings.fit_at)
        if fit_at is None:
            raise Unavailable("the run does not call Keras' fit, or its line was not recorded")
        epochs = program.settings.epochs
        if epochs is None or epochs <= 1:
            raise Unavailable("fit is not called for several epochs, or their number was not recorded")
        steps = program.settings.steps_per_epoch
        return cls(fit_at, int(epochs), int(steps) if steps else None)

    def explains(self, number: int) -> bool:
        """Return whether a step, by its number, may lie next to the end of an epoch."""
        return self.steps is None or (number + 1) % self.steps <= NEXT_TO
