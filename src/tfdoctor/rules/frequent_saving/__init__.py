from math import sqrt

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.terms.humanize import duration

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)
BY_HAND = "how often the script has to save is for its author to decide"

SHOWN = 3
"""Lines with remedies of their own: those that take most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When frequent saves are reported."""

    share: float = share_limit(
        0.05,
        "Smallest share of what recurs in the run that saving less often saves, as of other savings: a longer run "
        "has as much of it",
    )
    failure_hours: float = limit(
        1.0,
        "Time between two failures of the job, in hours: preemptible machines last longer, so that saves at this "
        "distance are often enough for them",
    )


@dataclass(frozen=True, slots=True)
class Saves:
    """The calls of a line that saves, and the distance at which saving costs least; times in ms."""

    call: MadeCall
    apart_ms: float  # from one to the next
    best_ms: float

    @classmethod
    def of(cls, call: MadeCall, training_ms: float, failure_hours: float) -> "Saves":
        """Compare the calls of a line, made in so much time of training, with Young's interval."""
        best_ms = sqrt(2.0 * call.each_ms * failure_hours * 3.6e6)
        return cls(call, training_ms / call.count, best_ms)

    @property
    def left(self) -> float:
        """The share of their time that remains at the best distance, 0 to 1."""
        return min(1.0, self.apart_ms / self.best_ms) if self.best_ms else 1.0

    @property
    def times(self) -> int:
        """How many times as far apart saves may be; the run still has one."""
        return max(1, min(int(1.0 / self.left), self.call.count))

    @property
    def lost_ms(self) -> float:
        """What saving at the best distance saves of the run."""
        return self.call.ms * (1.0 - self.left)


BY_TIME = """\
manager = tf.train.CheckpointManager(
    checkpoint, folder, max_to_keep=3, step_counter=step, checkpoint_interval=1000)
# or, with Keras: tf.keras.callbacks.ModelCheckpoint(path, save_freq="epoch")"""


def check(phases: RunPhases, calls: RunCalls, limits: Limits = Limits()) -> Verdict:
    """Find lines that save so often that a failure could not lose as much."""
    made = calls.of(RunCall.SAVE)
    if not made:
        if phases.until or not calls.fits:  # of a loop in Python, only some ways to do it are seen
            return NotApplicable(reason=f"the run saves nothing{phases.until}")
        return Healthy(summary="The run saves nothing", concern=Concern.RUN)
    training = (call for call in made if not (call.before_training or call.after_training))
    often = [call for call in training if call.at and calls.within_epochs(call)]
    all_ms = sum(call.ms for call in made)
    saves = [Saves.of(call, phases.recurring_ms, limits.failure_hours) for call in often]
    saves = sorted((one for one in saves if one.lost_ms > 0), key=lambda one: -one.lost_ms)
    lost_ms = sum(one.lost_ms for one in saves)
    share = lost_ms / phases.recurring_ms if lost_ms else 0.0
    measure = Measure.share("share of what recurs that fewer saves spare", share, limits.share)
    if share < limits.share:
        text = f"Saving takes {duration(all_ms)} ({percent(all_ms / phases.total_ms)} of the run)"
        return Healthy(summary=text, evidence=(measure,), concern=Concern.RUN)
    return Finding(
        summary=_summary(saves[0], phases),
        evidence=(measure, _table(saves)),
        remedies=tuple(
            Remedy(
                f"Save about every {duration(one.best_ms)}",
                f"# {one.times} times as far apart\n{BY_TIME}",
                one.call.at,
                "longer-interval",
                changes="a failure loses more of the training",
            )
            for one in saves[:SHOWN]
        ),
        run_effects=tuple(_effects(saves)),
        concern=Concern.RUN,
        about=RunCall.SAVE,
        alike=len(saves) - 1,
    )


def _summary(first: Saves, phases: RunPhases) -> str:
    call = first.call
    share = percent(call.ms / phases.total_ms)
    return (
        f"{call.name} at {location(call.at)} saves {counted(call.count, 'time')}, {milliseconds(call.each_ms)} "
        f"each: {duration(call.ms)} ({share} of the run), once every {duration(first.apart_ms)} of training"
    )


def _table(saves: Sequence[Saves]) -> Table:
    return Table.of(
        saves,
        ("your line", lambda one: one.call.at or ""),
        ("call", lambda one: one.call.name),
        ("calls", lambda one: count(one.call.count)),
        ("mean time", lambda one: ms(one.call.each_ms)),
        ("time from one to the next", lambda one: ms(one.apart_ms)),
        ("enough for a failure each hour", lambda one: ms(one.best_ms)),
    )


def _effects(saves: Sequence[Saves]) -> Iterator[RunEffect]:
    for one in saves:
        yield RunEffect(
            phase=Phase.SAVING,
            of=ms(one.call.ms),
            subject=location(one.call.at),
            scales=one.left,
            recurs=Recurrence.PER_CALL,
            times=one.call.count,
            bound=Bound.AT_MOST,
        )
