"""The lines of the user's that work in the training steps of a run beside the call that trains."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_pieces import lines_that_train
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.run_work.line_groups import IN_STEPS, LineGroup, line_groups, package_and_name
from tfdoctor.facts.step_time.sampled_steps import HostLines
from tfdoctor.facts.step_time.timed_line import LIBRARIES, WITHIN, SlowCall, slow_call

SELDOM = 0.9  # Share of a line's time that is in long steps from which on it does not come in each step
SAMPLES = 50  # Samples of the steps of a run from which on they divide its time; in short runs the window's do


class LoopLines(Record, dict=True):
    """Lines of a loop of the user's, or all of a Keras callback, the one with most time first.

    ``aside`` says that they make no argument of the call that trains, as far as its loop could be read.
    """

    group: LineGroup
    callback: str = ""
    aside: bool = False

    @cached_property
    def ms(self) -> float:
        """Their time in the steps of the run, without waits for operations of TensorFlow that others started."""
        return sum(line.ms if line.exact else line.own_ms for line in self.group.lines)

    @property
    def rare(self) -> bool:
        """Whether most of it is in steps of more than 1.5 times the usual one."""
        return _is_rare(sum(line.long_ms for line in self.group.lines), self.group.ms)


class LoopPlaces(Record):
    """What works in the steps of a run beside the call that trains, the longest first.

    Left out are the lines that train, wait for input, or make arguments of the call in each step; costly calls
    (`SlowCall`); work on rows, files and texts (`IN_STEPS`), and the operations of a step that Python itself runs
    one by one. ``shown_ms`` is the time of all lines but those that train.
    """

    places: tuple[LoopLines, ...]
    shown_ms: float = 0.0

    @classmethod
    def measure(
        cls, recording: Recording, phases: RunPhases, steps: RunSteps | None, window: HostLines | None
    ) -> Self:
        """Sort the lines of all steps; they are not known one by one where a graph holds their loop.

        Raises:
            Unavailable: no step was seen, or the step itself runs operation by operation in the loop, so that its
                lines are not told.
        """
        place = Places.of(recording)
        every = _sampled(phases, steps, window)
        if steps is None and not every:
            raise Unavailable("no training step was seen in the run")
        trains = {None, *map(place, lines_that_train(recording))}
        other = trains | {line.at for line in every if line.work is RunWork.INPUT}
        costly = {line for line, _ in costly_lines(every)}
        own = (line for line in every if line.at not in other and line not in costly)
        # A compiled function in each step may be a part of the training; in few of them it evaluates.
        lines = [
            line for line in own
            if line.work is RunWork.OTHER and (not line.exact or line.long_ms >= SELDOM * line.ms)
        ]  # fmt: skip
        if steps and steps.source == StepSource.EAGER_GRADIENT:
            if not any(line.in_step or line.callback for line in lines):
                raise Unavailable("the step itself runs operation by operation, so the loop has no separate work")
            lines = [
                line for line in lines if not line.in_step and package_and_name(line.calls)[0] not in LIBRARIES
            ]
        named = by_key((line.callback, line) for line in lines)
        groups = [(LineGroup(tuple(own)), name) for name, own in named.items() if name]
        own_loop = by_key((_is_rare(line.long_ms, line.ms), line) for line in named.get("", ()))
        groups += [(group, "") for lines in own_loop.values() for group in line_groups(lines)]
        makers = recording.run.makers if recording.run else ()
        spans = [(at.path, first, last) for one in makers if (at := place(one.at)) for first, last in one.lines]
        stacks = recording.run.stacks.values() if recording.run else ()
        steps_at = {place(one.step_call) for one in stacks} - {None}
        # The samples of the traced steps do not have all lines that lead to one. What the line that calls the step
        # calls makes its arguments, too: `learn(memory.sample())`.
        making = {
            line.at for line in (*phases.at(Phase.STEPS), *every)
            if _makes([line], spans) or (line.caller in steps_at and not line.in_step)
        }  # fmt: skip
        found = []
        for group, name in groups:
            makes = not name and (_makes(group.lines, spans) or any(line.at in making for line in group.lines))
            one = LoopLines(group, name, aside=bool(makers) and not makes)
            # What comes in few steps alone makes no batch: a method that may change one, as where it is saved.
            seldom = sum(line.long_ms for line in group.lines) >= SELDOM * group.ms
            if group.work not in IN_STEPS and (seldom or not makes):
                found.append(one)
        shown_ms = sum(line.ms for line in every if line.at not in trains)
        return cls(tuple(sorted(found, key=lambda one: -one.ms)), shown_ms)


def _sampled(phases: RunPhases, steps: RunSteps | None, window: HostLines | None) -> Sequence[RunLine]:
    """Return the lines of all steps: by the samples of the run, or in a short one by those of the traced steps."""
    lines = phases.at(Phase.STEPS)
    if window is None or steps is None or sum(line.samples for line in lines) >= SAMPLES:
        return lines
    return [
        RunLine(
            phase=Phase.STEPS, at=line.at, ms=line.ms * steps.count, samples=line.seen, calls=line.main_call,
            caller=line.caller, callback=line.callback,
        )
        for own in window.parts.values()
        for line in own
        if line.work not in WITHIN
    ]  # fmt: skip


def _is_rare(long_ms: float, all_ms: float) -> bool:
    return 2 * long_ms > all_ms


def costly_lines(lines: Sequence[RunLine]) -> Iterator[tuple[RunLine, SlowCall]]:
    """Yield the lines with calls that are made for a whole run; what computes with weights in between is theirs.

    What a callback writes, or reads of weights that it does not set, is a part of what the callback does.
    """
    of_weights = defaultdict[tuple[str, str], list[RunLine]](list)
    for line in lines:
        if line.at and line.function and slow_call(line.calls) is SlowCall.WEIGHTS:
            of_weights[line.at.path, line.function].append(line)
    for line in lines:
        kind, own = slow_call(line.calls), of_weights.get((line.at.path, line.function), []) if line.at else []
        numbers = [one.at.line for one in own if one.at]
        if kind is None and line.at and numbers and min(numbers) < line.at.line < max(numbers):
            kind = SlowCall.WEIGHTS
        sets = any(one.calls.endswith("set_weights") for one in own)
        of_callback = kind is SlowCall.WRITE or (kind is SlowCall.WEIGHTS and not sets)
        if kind and not (line.callback and of_callback):
            yield line, kind


def _makes(lines: Iterable[RunLine], spans: Sequence[tuple[str, int, int]]) -> bool:
    """Return whether lines, or those that lead to them, are in spans of a file that make the arguments."""
    leading = {at for line in lines for at in (line.at, line.caller, *line.around) if at}
    return any(at.path == path and first <= at.line <= last for at in leading for path, first, last in spans)
