"""What the first step of each pass over the data takes beyond other steps, outside of the traced window.

A shuffle buffer that is filled anew makes the input produce many batches at the first step of a pass. A window of a
few steps shows at most one of them, and often none.
"""

from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Program, batches_of, line_of
from tfdoctor.facts.steps.input_stalls import OCCASIONS
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import StepSource

# Loops whose call begins before it takes a batch: its wait for the batch is in its own step, and the end of an
# epoch (a validation, a new iterator) in the step before.
CALLS_THAT_FETCH = frozenset((StepSource.KERAS_FIT,))
MOST = 2 / 3  # Least share of the passes whose first step is long: other programs delay any step now and then


@dataclass(frozen=True, slots=True)
class PassStarts:
    """The long first steps of passes among the untraced steps.

    ``long_ms`` is the median of their times, ``usual_ms`` that of all untraced steps. ``share`` is what so many
    steps of that time take beyond usual ones, of the time of all untraced steps, 0 to 1; ``each_step_ms`` the same
    per training step.
    """

    number: int
    pass_steps: int
    long_ms: float
    usual_ms: float
    share: float
    each_step_ms: float

    @classmethod
    def measure(cls, recording: Recording, program: Program) -> Self:
        """Find the first steps of passes among the long untraced steps.

        Raises:
            Unavailable: the long untraced steps or the steps of a pass are unknown, or no such step recurs.
        """
        seen = recording.manifest.steps if recording.manifest else None
        untraced, passes = seen.untraced if seen else None, batches_of(line_of(program.feeding))
        if seen is None or untraced is None or passes is None or seen.source not in CALLS_THAT_FETCH:
            raise Unavailable(
                "how long the untraced steps took at which a pass begins was not recorded",
                "record training with `fit` and a dataset of known size with `tfdoctor profile`",
            )
        pass_steps = ceil(passes)
        firsts = [time for number, time in untraced.long if number and number % pass_steps == 0]
        usual, whole = untraced.median_ms, untraced.total_ms
        begun = (seen.seen - 1) // pass_steps
        if not usual or not whole or len(firsts) < max(OCCASIONS, MOST * begun):
            raise Unavailable("the first step of a pass does not take long again and again")
        beyond = len(firsts) * (median(firsts) - usual)
        long, share = median(firsts), min(1.0, beyond / whole)
        return cls(len(firsts), pass_steps, long, usual, share, beyond / untraced.count)
