"""What the host does in a step while no device works, by the events of the trace."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.step_time.breakdown import WORKING, Breakdown, working
from tfdoctor.facts.step_time.python_work import function_calls
from tfdoctor.facts.steps.steps import SteadySteps, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import enclosing, is_named, spans_of, trainers
from tfdoctor.trace.names import EXECUTOR, INPUT_THREAD

# Keras' own loops: what Python does around their calls is the cost of a call.
OF_KERAS = (StepSource.KERAS_FIT, StepSource.KERAS_TRAIN_ON_BATCH)
SAMPLED_STEPS = 5  # Steady steps whose events are read: events of every step alike show in a few
# What follows the type of an event: "EagerLocalExecute: __inference_step_12".
AFTER_COLON = re.compile(r"(?<!:):(?!:).*", re.DOTALL)


class LoopBody(Record):
    """What Python does in a step while the device, the input and transfers are idle; ms per training step.

    Calls of tf.functions are left out. ``host_ms`` lies within the part of a step that is marked as the call,
    ``between_ms`` after it. In a loop over a dataset the mark lasts from one batch to the next, so that the
    loop's body lies within it; a mark around a call of fit's or of a function leaves the body outside.
    """

    host_ms: float
    between_ms: float

    @classmethod
    def measure(cls, trace: Trace, framework: Framework, steps: Steps, activity: Activity) -> Self:
        """Subtract from the steady steps what works and the calls of functions, on the trainer's threads.

        Raises:
            Unavailable: the trace does not show the functions that Python calls, or the device's work.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} has no tf.function")
        if activity.missing or activity.within_data:
            why = "tf.data itself runs the training, so the loop has no body in Python"
            raise Unavailable(activity.missing or why)
        taken = Intervals.any_of(map(function_calls, trainers(trace.host_lines)))
        if not taken:
            raise Unavailable("the trace does not show a tf.function that Python calls")
        steady = SteadySteps.of(steps)
        return cls(*steady.split_ms(steady.stretches - taken - working(activity, *WORKING)))


class PythonOverhead(Record):
    """The time to enter and leave the training call from Python, in ms per training step.

    ``edges_ms`` lie within the call: before its first operation and after its last, less the waits for
    input. ``between_ms`` is the time between two calls in which nothing works. ``pauses_ms`` lie between the
    operations of a call, while no thread of a graph's executor works: threads wake up. In a loop of the user's,
    its body counts to none of them: what it does may grow with the batch, and one call of several steps keeps it.
    ``body_between_ms`` is what was left out of ``between_ms`` for it.
    """

    edges_ms: float
    between_ms: float
    pauses_ms: float = 0.0
    body_between_ms: float = 0.0

    @classmethod
    def measure(cls, steps: Steps, activity: Activity, trace: Trace, body: LoopBody | None) -> Self:
        """Measure the steady steps, scaled to the median step as in Breakdown.

        Raises:
            Unavailable: the device's work was not recorded, or tf.data itself runs the training.
        """
        if activity.missing or activity.within_data:
            in_data = "tf.data itself runs the training, so there are no calls from Python"
            raise Unavailable(activity.missing or in_data)
        device = activity.of(Stage.DEVICE)
        waits = working(activity, Stage.INPUT, Stage.TRANSFER, Stage.COLLECTIVE)
        lines = [line for line in trace.host_lines if len(line) and not line.name.startswith(INPUT_THREAD)]
        executors = [spans_of(line, is_named(line, EXECUTOR.__eq__)) for line in lines]
        executing = Intervals.any_of([device, waits, *executors])
        edges_ps, between_ps, pauses_ps = 0, 0, 0  # in which nothing works
        for step in steps.steady_steps:
            after = step.call_end_ps, step.end_ps
            between_ps += after[1] - after[0] - (device.within(*after) | waits.within(*after)).total
            if work := device.within(step.start_ps, step.call_end_ps):  # else its operations were not recorded
                first, last = work.bounds_ps
                edges = Intervals.union(((step.start_ps, first), (last, step.call_end_ps))) - waits
                edges_ps += edges.total
                pauses_ps += last - first - executing.within(first, last).total
        edges_ms, between_ms, pauses_ms = map(SteadySteps.of(steps).scaled, (edges_ps, between_ps, pauses_ps))
        own = None if steps.source in OF_KERAS else body
        inside_ms, after_ms = (own.host_ms, own.between_ms) if own else (0.0, 0.0)
        edges_ms, kept_ms = max(0.0, edges_ms - inside_ms), max(0.0, between_ms - after_ms)
        return cls(edges_ms, kept_ms, pauses_ms, min(between_ms, after_ms))


class PartEvent(Record):
    """The innermost events of one name on the threads of one name, in ms per training step, summed over threads."""

    name: str
    thread: str
    ms: float


class PartEvents(Record):
    """The events in the host's time, and in the time between steps, the longest first."""

    by_part: Mapping[str, tuple[PartEvent, ...]]

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity, breakdown: Breakdown) -> Self:
        """Read the first steady steps of the trace, scaled to the parts of the median step.

        Raises:
            Unavailable: the trace has no events of the host.
        """
        lines = [line for line in trace.host_lines if len(line)]
        if not lines:
            raise Unavailable("the trace has no events of the host's threads")
        chosen = steps.steady_steps[:SAMPLED_STEPS]
        calls = Intervals.union((step.start_ps, step.call_end_ps) for step in chosen)
        pauses = Intervals.union((step.call_end_ps, step.end_ps) for step in chosen)
        works = working(activity, *WORKING)
        parts = {Stage.HOST: calls - works, Stage.BETWEEN: pauses - works}
        times: dict[Stage, list[tuple[tuple[str, str], float]]] = {stage: [] for stage in parts}
        for line in lines:
            for stage, passed in zip(parts, own_ps(line, parts.values()), strict=True):
                for kind in np.flatnonzero(passed).tolist():
                    name, thread = AFTER_COLON.sub("", line.types[kind].name), line.name.partition("/")[0]
                    times[stage].append(((name, thread), float(passed[kind])))
        found: dict[str, tuple[PartEvent, ...]] = {}
        for stage, part in parts.items():
            scale = breakdown[stage] / max(1, part.total)
            events = (PartEvent(name, thread, scale * ps) for (name, thread), ps in summed(times[stage]).items())
            found[stage] = tuple(sorted(events, key=lambda event: (-event.ms, event.name, event.thread)))
        return cls(found)


def own_ps(line: Line, parts: Collection[Intervals]) -> Iterator[NDArray[np.number[Any]]]:
    """Yield what a thread's events take of each part, by their kinds, without the events in them."""
    start, end = Intervals.any_of(parts).bounds_ps
    starts, until = np.maximum(line.start_ps, start), np.minimum(line.start_ps + line.duration_ps, end)
    rows = np.flatnonzero(starts < until)
    kinds, starts, ends = line.kind[rows], starts[rows], until[rows]
    around = enclosing(starts, ends, [len(rows)])
    if (np.append(ends, end)[around] < ends).any():  # some overlap without one in the other
        stack: list[int] = []
        for row, starts_at in enumerate(starts.tolist()):
            while stack and ends[stack[-1]] <= starts_at:
                stack.pop()
            ends[row] = min(ends[row], ends[stack[-1]] if stack else end)
            stack.append(row)
        around = enclosing(starts, ends, [len(rows)])
    for part in parts:
        covered = part.covered(starts, ends)
        passed = np.bincount(kinds, covered)  # exact below 2.5 hours
        yield passed - np.bincount(kinds[around[around >= 0]], covered[around >= 0], len(passed))
