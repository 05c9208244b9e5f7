"""The parts of the run that a trial can take out without an edit, and the time of each."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_course import sampled, whole_run
from tfdoctor.facts.phases.run_phases import ENOUGH, RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import RunLog
from tfdoctor.terms.kinds import Part

# Calls per training step from which on fifty timed steps hold some; whole runs time what comes less often.
OFTEN = 0.1
# Calls of the user's lines that can be answered at once.
CALLED = {RunCall.SAVE: Part.SAVING, RunCall.EVALUATE: Part.EVALUATION, RunCall.PREDICT: Part.PREDICTION}
# Beginning and part of the names of what writes summaries; `keras.Model.summary` prints the layers of a model.
TENSORFLOW, SUMMARY = "tensorflow.", "summary"
FLUSHES = ("flush_summary_writer", "SummaryWriter")
# A method that Keras calls, by its qualified name. Earlier recordings name the user's function only.
METHOD = re.compile(r"\b(\w+)\.(on_(?:epoch|batch|train|test|predict)\w*)$")
OF_BATCHES = re.compile(r"on_(?:train_)?batch_")
# Callbacks that Keras itself adds, and reads from.
KERAS_OWN = frozenset({"History", "ProgbarLogger", "BaseLogger"})
HALF = 0.5


class RunPart(Record, kw_only=True):
    """A part of the run: its time in ms of the run, and whether each training step, or every few, has some of it.

    ``line`` is the recorded line, ``at`` the same as it is shown; ``length`` of an input that does not know it
    is the number of batches of a pass over the data.
    """

    part: Part
    name: str  # "ModelCheckpoint", "Model.evaluate"
    ms: float
    at: Location | None = None
    line: SourceLine | None = None
    in_step: bool | None = True  # None: how often it comes is not known
    length: int | None = None


class RunParts(Record):
    """The parts that take time, the largest first; ``recurring_ms`` is what a longer run has more of."""

    parts: tuple[RunPart, ...]
    recurring_ms: float

    @classmethod
    def measure(
        cls,
        recording: Recording,
        phases: RunPhases,
        calls: RunCalls,
        steps: RunSteps,
        breakdown: Breakdown | None,
        groups: OperationGroups | None,
    ) -> Self:
        """Take the parts from the phases, the calls, the stack samples and the traced steps.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log, place = whole_run(recording), Places.of(recording)
        own = {one.at for one in log.calls.values() if one.at} | {one.at for one in log.stacks.values() if one.at}
        own |= {steps.at for _, steps in log.steps if steps.at}
        lines: Mapping[Location | None, SourceLine] = {place(line): line for line in own}
        fits = {one.at for one in log.calls.values() if one.call is RunCall.FIT and one.at}
        callbacks = [*_callbacks(log, place)]
        found = [part for part, samples in callbacks if samples >= ENOUGH]
        if breakdown and breakdown.step_ms:  # by shares of the traced steps
            length = -(-steps.count // calls.epochs) if calls.epochs else None
            metrics = [one for one in (groups.groups if groups else ()) if one.metrics or one.only_metrics]
            shares = breakdown[Stage.INPUT] / breakdown.step_ms, sum(one.ms for one in metrics) / breakdown.step_ms
            input_ms, metrics_ms = (min(1.0, share) * phases.of(Phase.STEPS) for share in shares)
            line, at = lines.get(steps.at), next((one.at for one in metrics if one.at), None)
            found[:0] = [
                RunPart(part=Part.INPUT, name="input", ms=input_ms, at=steps.at, line=line, length=length),
                RunPart(part=Part.METRICS, name="metrics", ms=metrics_ms, at=at),
            ]
        for call in calls.of(*CALLED):  # those between training steps or epochs, more than once
            line, recurs = lines.get(call.at), call.count > 1 and not (call.before_training or call.after_training)
            # What a callback saves at fit's line is the callback's.
            of_callback = callbacks and call.call is RunCall.SAVE and line in fits
            if line is not None and recurs and not of_callback:
                part, ms, often = CALLED[call.call], call.ms + call.nested_ms, call.count >= OFTEN * steps.count
                found.append(RunPart(part=part, name=call.name, ms=ms, at=call.at, line=line, in_step=often))
        timed = {call.at for call in calls.of(RunCall.SAVE)}
        for saving in phases.at(Phase.SAVING):  # at lines whose calls were not timed: those of a CheckpointManager
            line = lines.get(saving.at)
            if line and line not in fits and saving.at not in timed and saving.sure and not _writes(saving):
                name = ".".join(saving.calls.split(".")[-2:]) or "saving"
                found.append(
                    RunPart(part=Part.SAVING, name=name, ms=saving.ms, at=saving.at, line=line, in_step=None)
                )
        if writing := [line for line in phases.lines if _writes(line)]:
            time_ms, at = sum(line.ms for line in writing), writing[0].at
            found.append(RunPart(part=Part.SUMMARIES, name="tf.summary", ms=time_ms, at=at, in_step=None))
        return cls(tuple(sorted(found, key=lambda one: -one.ms)), phases.recurring_ms)

    def share(self, part: RunPart) -> float:
        """Return the share of a part in what recurs, 0 to 1."""
        return min(1.0, part.ms / self.recurring_ms) if self.recurring_ms > 0 else 0.0


def _callbacks(log: RunLog, place: Places) -> Iterator[tuple[RunPart, float]]:
    """Yield the classes of Keras callbacks, with all that they call, and the number of samples of each."""
    seen = ((METHOD.search(one[0].callback or one[0].function), one) for one in sampled(log))
    methods = by_key((of[1], (stack, of[2], ms, samples)) for of, (stack, ms, samples) in seen if of)
    for name, stacks in methods.items():
        if name in KERAS_OWN:
            continue
        total_ms = sum(ms for _, _, ms, _ in stacks)
        line = next(iter(summed((stack.at, ms) for stack, _, ms, _ in stacks)))  # it may be the one that calls fit
        at_batches = sum(ms for _, of, ms, _ in stacks if OF_BATCHES.match(of)) > HALF * total_ms
        # In steps of more than 1.5 times the usual one, after that time: not in each.
        long = sum(ms for stack, _, ms, _ in stacks if stack.long) > HALF * total_ms
        in_step = None if at_batches and long else at_batches
        part = RunPart(part=Part.CALLBACK, name=name, ms=total_ms, at=place(line), line=line, in_step=in_step)
        yield part, round(sum(samples for *_, samples in stacks))


def _writes(line: RunLine) -> bool:
    own = line.calls.startswith(TENSORFLOW) and SUMMARY in line.calls
    return own or any(name in line.runs for name in FLUSHES)
