"""What `tfdoctor try` measured."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from tfdoctor.diagnosis.savings import RunSaving, Saving
from tfdoctor.terms.json_form import Count, Ms, Number, Sometimes, pairs
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Location


class Difference(StrEnum):
    """What a trial shows of a variant."""

    SAVES = "saves"
    COSTS = "costs"
    NONE = "none"  # no difference that the trial could show
    UNKNOWN = "unknown"  # the machine was too noisy to tell


class Measured(Record, kw_only=True):
    """What a variant saves of the step, measured by running it: shares of the step, positive where it is faster.

    ``low`` to ``high`` is the 95 % interval.
    """

    share: Number
    low: Number
    high: Number
    difference: Difference
    rounds: tuple[Number, ...] = ()  # the share in each round
    why: str = ""  # why it is not the saving of the typical step, as a clause
    dropped: bool = False  # it got no more rounds, because all cost much more than the step as it is
    of_run: Sometimes[bool] = False  # the shares are those of the whole run instead of the step


class TrainingState(StrEnum):
    """How the training of a variant compares with that of the program as it is."""

    EQUAL = "equal"  # the same weights, bit by bit
    DIFFERENT = "different"  # other weights, where the change should not affect them
    REORDERED = "reordered"  # other weights, by another order of random numbers
    LOSSES = "losses"  # compared by the losses of the first steps
    NOT_FINITE = "not-finite"  # infinite weights, or NaN
    CHANGED = "changed"  # not compared: the change is one of the model or of the batch
    UNKNOWN = "unknown"


# Results after which a variant is never called a saving.
BROKEN = (TrainingState.DIFFERENT, TrainingState.NOT_FINITE)


class TrainingMatch(Record, kw_only=True):
    """Whether a variant still trains the same, seen by a certain step."""

    state: TrainingState
    step: Count = 0
    losses: tuple[tuple[Count, Number, Number], ...] = ()  # step, its loss as it is, and the variant's
    apart: Number | None = None  # largest relative difference of a step's loss
    usual: Number | None = None  # the same between two runs of the program as it is
    own: Number | None = None  # of REORDERED: the same between two runs of the variant
    why: str = ""  # of UNKNOWN; of CHANGED how


def is_broken(training: TrainingMatch | None) -> bool:
    """Return whether a variant trains something else than it should."""
    return training is not None and training.state in BROKEN


class Beside(Record, kw_only=True):
    """What a change that helps alone saves beside others that help, or in place of those that exclude it."""

    others: tuple[str, ...]  # names of variants
    instead: bool  # it excludes them: the faster one was kept
    measured: Measured  # share of the step with the others alone that the change saves


class Trial(Record, kw_only=True):
    """One variant of the program, and what running it showed."""

    name: str
    parts: tuple[str, ...] = ()  # the names of the variants that it makes at once
    action: str = ""  # what it changes; "" where the name says it
    rules: tuple[str, ...] = ()  # whose findings it fixes
    promised: Saving | None = None
    measured: Measured | None = None
    examples: Number = 1.0  # of a step, for each one of the program as it is; the saving is per example
    step_ms: Ms | None = None
    whole_ms: Ms | None = None  # with what happens between epochs
    training: TrainingMatch | None = None
    runs: Count = 0
    missing: str = ""  # why it has no figure
    kept: bool = False  # among the changes that proved to help together
    beside: Beside | None = None  # of a change that was tried together with others
    promised_run: Sometimes[RunSaving | None] = None  # of a change that was tried by whole runs
    run_ms: Sometimes[Ms | None] = None  # wall time of the whole run with it
    energy_j: Sometimes[Mapping[str, Number]] = field(default_factory=dict)  # of a step by EnergySource, in joules

    @property
    def prediction(self) -> Saving | RunSaving | None:
        """What is promised: of the run where whole runs were compared, else of the step."""
        return self.promised_run or self.promised


class PartTrial(Record, kw_only=True):
    """The program without one of its parts: an experiment, which shows the most that a change of the part can save.

    It trains otherwise, so it is never a saving, nor is it added to any.
    """

    part: Part
    name: str  # "ModelCheckpoint", "Model.evaluate"
    at: Location | None = None
    share: Number | None = None  # of what recurs in the run, as the recording shows it
    measured: Measured | None = None
    as_is_ms: Ms | None = None  # step, or whole run, of the program as it is in the same rounds
    without_ms: Ms | None = None
    runs: Count = 0
    missing: str = ""  # why it has no figure
    rule: str = ""  # the rule that has a bound for the same
    promised: Saving | None = None  # that bound


if TYPE_CHECKING:
    NotTried = tuple[tuple[str, str], ...]
else:
    NotTried = pairs("name", "why")


class Trials(Record, kw_only=True):
    """What `tfdoctor try` measured: the program with changes against the program as it is."""

    rows: tuple[Trial, ...] = field(name="variants")
    as_is_ms: Ms | None = None  # median step of the program as it is
    as_is_whole_ms: Ms | None = None  # with what happens between its epochs
    as_is: Measured | None = field(default=None, name="as_is_against_itself")  # the program as it is against itself
    rounds: Count = 0
    rounds_by_turns: Sometimes[Count] = 0  # whose runs took turns, all at once
    runs: Count = 0
    minutes: Number = 0.0
    foreign: Number = field(default=0.0, name="other_programs_share")  # share of the cores that other programs used
    layer: bool = field(default=True, name="writes_thrown_away")  # what the runs wrote was thrown away
    ended_early: bool = field(default=False, name="interrupted")  # by Ctrl-C
    not_tried: NotTried = ()  # changes, and why they were not tried
    together: str = ""  # the name of the row of all changes that help together
    needed_minutes: Number | None = None  # for a figure, where the time was too short for any round
    as_is_run_ms: Sometimes[Ms | None] = None  # wall time of the whole run as it is, where whole runs were compared
    parts: Sometimes[tuple[PartTrial, ...]] = field(default=(), name="without")
    as_is_energy_j: Sometimes[Mapping[str, Number]] = field(default_factory=dict)  # of a step as it is, likewise
