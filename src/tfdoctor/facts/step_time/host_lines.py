"""The user's lines that the host's time goes to, by stack samples: in each step, in long steps, in slow calls."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.facts.step_time.sampled_steps import SampleRow, SampleTable
from tfdoctor.facts.step_time.timed_line import (
    WITHIN,
    LineWork,
    Samples,
    SlowCall,
    TimedLine,
    lines_of,
    shown,
    slow_call,
    work_of,
)
from tfdoctor.facts.steps.steps import Steps

PARTS = (Stage.HOST, Stage.BETWEEN)  # in which Python works
# Share of the steps that samples would be seen in, if the call ran in every step, below which it runs more rarely.
# Samples of a call in every second step are seen in half as many steps or more.
SPREAD = 0.5
# Steps of a ``fit`` up to which its own cost is in every step: in longer ones, most steps are not the first.
SHORT_FIT = 2
SEVERAL_FITS = 5  # Calls of ``fit`` from which on they are a loop: scripts train in several phases, or warm up


class HostLines(Record):
    """The lines of each part of the step in which Python works, the most frequent first.

    Samples count while neither the device nor a copy works and no batch is awaited, as Breakdown divides the
    step: a line that waits for the device is not the host's.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]]

    @classmethod
    def measure(cls, recording: Recording, table: SampleTable, breakdown: Breakdown) -> Self:
        """Sort each sample into the part of the step that it fell into.

        What a line does itself and its waits within a compiled function are two entries.
        """
        locate, parts = Places.of(recording), dict[Stage, tuple[TimedLine, ...]]()
        for stage in PARTS:
            divided = list[Samples]()
            for row in table.steady_rows:
                here, work = row.part == stage, work_of(row.place)
                waits = here & row.amid & (work is LineWork.ENTERING)
                divided.append((row.place, LineWork.DISPATCHING, int(waits.sum())))
                divided.append((row.place, work if work in WITHIN else None, int((here & ~waits).sum())))
            parts[stage] = lines_of(divided, locate, breakdown[stage], shown)
        return cls(parts)

    @property
    def dispatching_ms(self) -> float:
        """The host's time between the operations of compiled functions, in ms per step."""
        lines = self.parts.get(Stage.HOST, ())
        return sum(line.ms for line in lines if line.work is LineWork.DISPATCHING)


class LongStepLines(Record):
    """The lines of the long steps, most samples first, in the training calls (HOST) and between them (BETWEEN).

    Where samples have no time (``timed`` is False), the lines of callbacks between all calls stand for those of
    long steps. ``callbacks`` are those of all steps, each with the part of the step that it runs in: one that runs
    in every fifth step need not make it an outlier.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]] = field(default_factory=dict)
    timed: bool = True
    callbacks: tuple[tuple[Stage, TimedLine], ...] = ()

    @classmethod
    def measure(cls, recording: Recording, table: SampleTable | None, steps: Steps, framework: Framework) -> Self:
        """Sort the samples in long steps into those within and between the training calls.

        Raises:
            Unavailable: the stack was not sampled.
        """
        record = recording.program.python if recording.program else None
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        locate = Places.of(recording)
        if table is None:
            untimed = [(one, None, one.seen) for one in record.places if one.callback and not one.inside]
            return cls({Stage.BETWEEN: lines_of(untimed, locate)}, timed=False)
        rows = [row.only(row.step < len(steps.steps)) for row in table.rows]
        within = {stage: [row.only(row.after == (stage is Stage.BETWEEN)) for row in rows] for stage in PARTS}
        long = {part: [(row.place, None, int((~row.steady).sum())) for row in of] for part, of in within.items()}
        callbacks = []
        for name in dict.fromkeys(row.place.callback for row in rows if row.place.callback):
            for stage, of in within.items():
                # In the call, samples while something else works wait for that.
                own = [row.only(row.after | (row.part == Stage.HOST)) for row in of if row.place.callback == name]
                if any(len(row.step) for row in own):
                    line = TimedLine.of({row.place: len(row.step) for row in own if len(row.step)}, locate)
                    shown_in = frozenset(int(step) for row in own for step in row.step)
                    callbacks.append((stage, replace(line, steps=shown_in)))
        callbacks.sort(key=lambda one: -one[1].seen)
        return cls({part: lines_of(of, locate) for part, of in long.items()}, callbacks=tuple(callbacks))

    def of(self, part: str) -> tuple[TimedLine, ...]:
        """Return the lines of a part of the long steps; none for other parts than Python's."""
        return next((lines for stage, lines in self.parts.items() if stage == part), ())

    @property
    def slow_calls(self) -> tuple[TimedLine, ...]:
        """The lines between the training calls that make a costly call."""
        return tuple(line for line in self.of(Stage.BETWEEN) if line.call)


Group = list[SampleRow]  # The rows of a line


class SlowCalls(Record):
    """The lines whose samples are mostly in calls of TensorFlow and Keras that cost much per call, longest first.

    Only calls in every step: one that is seen in few steps runs once per epoch or every 100 steps. Their parts are
    the host's, between calls, the device's (operations that a call runs one by one), and waits for the pipeline
    that it has built. The time in which it runs a compiled function is its useful work, and left out. Lines
    between a ``get_weights`` and a ``set_weights`` of the same function count as one work with them.
    """

    lines: tuple[TimedLine, ...] = ()
    step_count: int = 0  # steady steps that were sampled

    @classmethod
    def measure(
        cls, recording: Recording, table: SampleTable, breakdown: Breakdown, eager: EagerWork | None
    ) -> Self:
        """Count the samples of the steady steps; of a step that itself runs eagerly, no calls of models."""
        rows, locate = [row for row in table.steady_rows if len(row.step)], Places.of(recording)
        each_ms = breakdown.step_ms / max(1, sum(len(row.step) for row in rows))
        groups, lines = _slow_groups(rows), []
        # Those that are the training: models of eager steps, and ``fit``, unless each has few steps.
        own = {SlowCall.MODEL} if eager and eager.operations_ms > eager.functions_ms else set()
        seen = recording.manifest.steps if recording.manifest else None
        settings, fits = recording.program.run if recording.program else None, 0.0
        if seen and settings:
            planned = (settings.steps_per_epoch or 0) * (settings.epochs or 0)
            fits = seen.rounds or (seen.seen / planned if planned else 0)
        if not seen or fits < SEVERAL_FITS or seen.seen > SHORT_FIT * fits:
            own.add(SlowCall.FIT)
        wanted = _regular(groups, rows) - own
        for kind, group in groups:
            at = locate(group[0].place.at)
            if at is None or kind not in wanted:
                continue
            counts, steps = Counter[Stage](), {int(step) for row in group for step in row.step}
            for row in group:
                trains = slow_call(row.place.calls) is SlowCall.FIT and row.place.inside
                if (
                    not trains and work_of(row.place) is not LineWork.ENTERING
                ):  # else it is what the call is made for
                    counts.update(Stage(part) for part in row.part if part != UNKNOWN)
            parts = {part: seen * each_ms for part, seen in counts.items()}
            lines.append(TimedLine.slow(at, kind, counts.total(), steps, parts))
        return cls(tuple(sorted(lines, key=lambda line: -line.ms)), table.steady_steps)

    @property
    def ms(self) -> float:
        """The time of all lines, in ms per training step."""
        return sum(line.ms for line in self.lines)

    @property
    def places(self) -> frozenset[Location | None]:
        """The lines themselves."""
        return frozenset(line.at for line in self.lines)


def _slow_groups(rows: Iterable[SampleRow]) -> list[tuple[SlowCall, Group]]:
    """Return the lines with half of their samples in a slow call, and those that compute weights between two."""
    by_line = by_key((row.place.at, row) for row in rows if row.place.at is not None)
    kinds: dict[tuple[str, int], SlowCall | None] = {}
    weights: dict[tuple[str, object], list[int]] = defaultdict(list)  # lines of a function, by its file and caller
    for (path, number), group in by_line.items():
        counts = summed((slow_call(row.place.calls), len(row.step)) for row in group)
        kind, seen = next((one for one in counts.items() if one[0]), (None, 0))
        kinds[path, number] = kind if 2 * seen >= sum(counts.values()) else None
        for row in group if kinds[path, number] is SlowCall.WEIGHTS else ():
            if row.place.caller:
                weights[path, row.place.caller].append(number)
    found = []
    for (path, number), group in by_line.items():
        around = [of for row in group if (of := weights.get((path, row.place.caller)))]
        between = SlowCall.WEIGHTS if any(min(each) < number < max(each) for each in around) else None
        if kind := kinds[path, number] or between:
            found.append((kind, group))
    return found


def _regular(groups: Iterable[tuple[SlowCall, Group]], rows: Iterable[SampleRow]) -> set[SlowCall]:
    """Return the calls whose samples are spread over the steps as those of work in every step are.

    Their steps are compared with those that as many of all samples would hit by chance: some steps are sampled more
    often than others.
    """
    every = np.concatenate([np.zeros(0, np.int64), *(row.step for row in rows)])
    per_step = np.unique(every, return_counts=True)[1]
    steps = by_key((kind, int(step)) for kind, group in groups for row in group for step in row.step)
    regular = set()
    for kind, seen in steps.items():
        missed = (1.0 - len(seen) / per_step.sum()) ** per_step
        if len(set(seen)) >= SPREAD * float((1.0 - missed).sum()):
            regular.add(kind)
    return regular
