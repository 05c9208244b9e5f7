"""The parts of the run that a trial can take out without an edit, and the time of each."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_course import sampled, whole_run
from tfdoctor.facts.phases.run_phases import ENOUGH, RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import SeenStack
from tfdoctor.terms.kinds import Part, Phase, RunCall
from tfdoctor.terms.verdict import Location, Stage

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackTime:
    """The time in callbacks of a class, in ms of the run, with all that they call.

    ``in_step`` says that most of it is in functions that are called at each batch; ``long``, that most of it lies
    in steps of more than 1.5 times the usual one, after that time.
    """

    name: str
    ms: float
    samples: int
    at: SourceLine | None  # the user's line with most of it, which may be the one that calls fit
    in_step: bool
    long: bool


@dataclass(frozen=True, slots=True)
class CallbackTimes:
    """All classes of callbacks that samples show, those that take most first."""

    callbacks: tuple[CallbackTime, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the samples of each class.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        seen = defaultdict[str, list[tuple[SeenStack, str, float, float]]](list)
        for stack, ms, samples in sampled(whole_run(recording)):
            found = METHOD.search(stack.callback or stack.function)
            if found and found[1] not in KERAS_OWN:
                seen[found[1]].append((stack, found[2], ms, samples))
        if not seen:
            raise Unavailable("no Keras callback was seen at work")
        times = []
        for name, stacks in seen.items():
            total_ms = sum(ms for _, _, ms, _ in stacks)
            lines: dict[SourceLine | None, float] = defaultdict(float)
            for stack, _, ms, _ in stacks:
                lines[stack.at] += ms
            times.append(
                CallbackTime(
                    name=name, ms=total_ms, samples=round(sum(samples for _, _, _, samples in stacks)),
                    at=max(lines.items(), key=itemgetter(1))[0],
                    in_step=sum(ms for _, of, ms, _ in stacks if OF_BATCHES.match(of)) > HALF * total_ms,
                    long=sum(ms for stack, _, ms, _ in stacks if stack.long) > HALF * total_ms,
                )
            )  # fmt: skip
        return cls(tuple(sorted(times, key=lambda one: -one.ms)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
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


@dataclass(frozen=True, slots=True)
class TracedParts:
    """Shares of the traced steps: the exposed wait for input, and operations that only metrics use."""

    input: float
    metrics: float
    metrics_at: Location | None

    @classmethod
    def measure(cls, breakdown: Breakdown, groups: OperationGroups | None) -> Self:
        """Take the shares from the breakdown and from the operations.

        Raises:
            Unavailable: the traced steps take no time.
        """
        step_ms = breakdown.step_ms
        if not step_ms:
            raise Unavailable("the traced steps take no time")
        every = groups.groups if groups else ()
        own = [group for group in every if group.metrics or group.only_metrics]
        return cls(
            input=breakdown[Stage.INPUT] / step_ms,
            metrics=min(1.0, sum(group.ms for group in own) / step_ms),
            metrics_at=next((group.at for group in own if group.at), None),
        )


@dataclass(frozen=True, slots=True)
class RunParts:
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
        callbacks: CallbackTimes | None,
        traced: TracedParts | None,
    ) -> Self:
        """Take the parts from the phases, the calls, the stack samples and the traced steps.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log, place = whole_run(recording), Places.of(recording)
        own = {one.at for one in log.calls.values() if one.at} | {one.at for one in log.stacks.values() if one.at}
        own |= {steps.at for bucket in log.buckets for steps in bucket.steps if steps.at}
        lines = {place(line): line for line in own}
        fits = {one.at for one in log.calls.values() if one.call is RunCall.FIT and one.at}
        shown = [one for one in (callbacks.callbacks if callbacks else ()) if one.samples >= ENOUGH]
        called = [
            RunPart(
                part=Part.CALLBACK, name=one.name, ms=one.ms, at=place(one.at), line=one.at,
                in_step=None if one.in_step and one.long else one.in_step,
            )
            for one in shown
        ]  # fmt: skip
        # What a callback saves at fit's line is the callback's.
        of_callbacks = fits if callbacks is not None else set()
        found = [
            *(_traced(traced, phases.of(Phase.STEPS), calls, steps, lines) if traced else ()),
            *called,
            *_calls(calls, steps, lines, of_callbacks),
            *_sampled_saves(phases, calls, {at: line for at, line in lines.items() if line not in fits}),
        ]
        if writing := [line for line in phases.lines if _writes(line)]:
            time_ms, at = sum(line.ms for line in writing), writing[0].at
            found.append(RunPart(part=Part.SUMMARIES, name="tf.summary", ms=time_ms, at=at, in_step=None))
        return cls(tuple(sorted(found, key=lambda one: -one.ms)), phases.recurring_ms)

    def share(self, part: RunPart) -> float:
        """Return the share of a part in what recurs, 0 to 1."""
        return min(1.0, part.ms / self.recurring_ms) if self.recurring_ms > 0 else 0.0


Lines = Mapping[Location | None, SourceLine]  # The recorded lines, by what is shown of them


def _traced(
    traced: TracedParts, stepping_ms: float, calls: RunCalls, steps: RunSteps, lines: Lines
) -> Iterator[RunPart]:
    """Yield the wait for input and the metrics of compile, by their shares of the traced steps."""
    length = -(-steps.count // calls.epochs) if calls.epochs else None
    input_ms, line = traced.input * stepping_ms, lines.get(steps.at)
    yield RunPart(part=Part.INPUT, name="input", ms=input_ms, at=steps.at, line=line, length=length)
    yield RunPart(part=Part.METRICS, name="metrics", ms=traced.metrics * stepping_ms, at=traced.metrics_at)


def _calls(
    calls: RunCalls, steps: RunSteps, lines: Lines, of_callbacks: Collection[SourceLine]
) -> Iterator[RunPart]:
    """Yield the calls that are made between training steps or epochs, more than once."""
    for call in calls.of(*CALLED):
        line, recurs = lines.get(call.at), call.count > 1 and not call.before_training and not call.after_training
        if line is not None and recurs and not (call.call is RunCall.SAVE and line in of_callbacks):
            yield RunPart(
                part=CALLED[call.call], name=call.name, ms=call.ms + call.nested_ms, at=call.at, line=line,
                in_step=call.count >= OFTEN * steps.count,
            )  # fmt: skip


def _sampled_saves(phases: RunPhases, calls: RunCalls, lines: Lines) -> Iterator[RunPart]:
    """Yield what saves at lines whose calls were not timed, such as those of a CheckpointManager."""
    timed = {call.at for call in calls.of(RunCall.SAVE)}
    for line in phases.at(Phase.SAVING):
        known = lines.get(line.at)
        if known is not None and line.at not in timed and line.sure and not _writes(line):
            name = ".".join(line.calls.split(".")[-2:]) or "saving"
            yield RunPart(part=Part.SAVING, name=name, ms=line.ms, at=line.at, line=known, in_step=None)


def _writes(line: RunLine) -> bool:
    own = line.calls.startswith(TENSORFLOW) and SUMMARY in line.calls
    return own or any(name in line.runs for name in FLUSHES)
