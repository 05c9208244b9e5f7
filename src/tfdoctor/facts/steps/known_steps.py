"""The steps by precedence: what the recorder, markers or the device recorded, else what a search finds."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.cycle import MOSTLY
from tfdoctor.facts.steps.search import search
from tfdoctor.facts.steps.step import Step, chain
from tfdoctor.facts.steps.xla_steps import module_steps, queued_steps
from tfdoctor.facts.timeline.host_events import is_named
from tfdoctor.recording.manifest import Manifest
from tfdoctor.trace.names import END_OF_WINDOW, TRAINING_CALLS

# Names of a training step's markers: xprof knows the first two, users write the third.
TRAINING = re.compile(r"train|TraceContext|step", re.IGNORECASE)
# Names that a training step's markers may have in JAX and PyTorch, which expect none in particular.
OTHER = re.compile(r"(?!.*(?:eval|test|valid|infer|predict|epoch)).+", re.IGNORECASE)


def marked(trace: Trace, manifest: Manifest | None, *, any_name: bool = False) -> list[Step]:
    """Read the markers; tfdoctor's own, which hold their number of steps, take precedence.

    With ``any_name``, markers of other names count too, where none is named after training.
    """
    events = list(_markers(trace, TRAINING)) or (list(_markers(trace, OTHER)) if any_name else [])
    markers = sorted(events, key=lambda event: event.start_ps)
    own = [event for event in markers if "steps" in event.stats]
    if own:
        return chain(marked_step(event, max(1, int(event.stats["steps"]))) for event in own)
    window, calls, first = manifest.window if manifest else None, 1, None
    if window is not None and window.calls:
        calls, first = max(1, round(window.steps / window.calls)), window.first_step
    elif any("batch_size" in event.stats for event in markers):
        calls = _calls_each(trace, markers)
    steps = [marked_step(event, calls) for event in markers]
    if first is None and any(later.number <= step.number for step, later in pairwise(steps)):
        first = steps[0].number  # Keras 2 restarts its numbers in each epoch
    if first is not None:
        steps = [replace(step, number=first + place * calls) for place, step in enumerate(steps)]
    return chain(steps)


def _markers(trace: Trace, name: re.Pattern[str]) -> Iterator[Event]:
    for line in trace.host_lines:
        events = np.intersect1d(line.stats.having("_r"), line.stats.having("step_num"))
        yield from map(line.event, events[is_named(line, name.match)[events]].tolist())


def marked_step(event: Event, calls: int) -> Step:
    """Return the call of so many training steps that a marker stands for."""
    return Step(int(event.stats["step_num"]), event.start_ps, event.end_ps, event.end_ps, calls)


def _calls_each(trace: Trace, markers: list[Event]) -> int:
    """Return how many training steps one of Keras 2's calls runs, which its markers do not hold."""
    try:
        source, steps = search(trace)
    except Unavailable:
        return 1
    starts = np.array([step.start_ps for step in steps], np.int64)
    inside = [int(np.count_nonzero((starts >= one.start_ps) & (starts < one.end_ps))) for one in markers]
    calls, times = Counter(inside).most_common(1)[0]
    return max(1, calls) if source == StepSource.GRAPH_PERIOD and times >= MOSTLY * len(inside) else 1


def step_line(plane: Plane | None) -> list[Step]:
    """Read the line "Steps" of a device."""
    steps = []
    for line in plane.lines if plane else ():
        for place, event in enumerate(line.events() if line.name == "Steps" else ()):
            digits = re.search(r"\d{1,18}$", event.name)
            steps.append(Step(int(digits[0]) if digits else place, event.start_ps, event.end_ps, event.end_ps))
    return chain(steps)


def train_function_calls(trace: Trace) -> list[Step]:
    """Return the calls of Keras' train function: of several concrete ones, those of the one with the most time."""
    by_function: dict[str, list[Step]] = defaultdict(list)
    for line in trace.host_lines:
        for index in np.flatnonzero(is_named(line, TRAINING_CALLS.__contains__)).tolist():
            event = line.event(index)
            inner = map(line.event, range(index + 1, min(index + 8, len(line))))
            inside = (one for one in inner if one.start_ps < event.end_ps)
            named = (str(name) for one in inside if (name := one.stats.get("eager_op")))  # by EagerExecute
            calls = by_function[next(named, event.name)]
            calls.append(Step(len(calls), event.start_ps, event.end_ps, event.end_ps))
    return chain(max(by_function.values(), key=lambda calls: sum(step.total_ms for step in calls), default=[]))


KnownSteps = tuple[StepSource, list[Step]]  # How the steps were found, and the steps; NONE and none


def find_steps(
    trace: Trace, recording: Recording, device: Device, xla_programs: XlaPrograms, framework: Framework
) -> tuple[str, KnownSteps]:
    """Return the program whose runs are the steps ("" for none), and the steps.

    Raises:
        Unavailable: the trace does not show, or not with certainty, where a step begins.
    """
    manifest, found = recording.manifest, None
    # The recorder's name for a loop inside a tf.function: a marker around its call is not a step.
    if manifest and StepSource.GRAPH_LOOP in (manifest.steps.source, manifest.window and manifest.window.source):
        found = _searched(trace, in_graph=True)
    elif steps := marked(trace, manifest, any_name=framework.foreign):
        found = _closed(StepSource.MARKERS, steps, trace)
    elif steps := step_line(device.busiest):
        on_tpu = device.kind == DeviceKind.TPU
        found = _closed(StepSource.TPU_STEPS if on_tpu else StepSource.MARKERS, steps, trace)
    if framework.foreign and (recording.traces or recording.run is None):
        program, source, steps = queued_steps(trace, device, xla_programs, framework, found[1] if found else [])
        return program, found if found and source is StepSource.NONE else _closed(source, steps, trace)
    program = ""
    if found is None and device.kind == DeviceKind.TPU:
        program, steps = module_steps(device, xla_programs)
        found = _closed(StepSource.XLA_RUNS, steps, trace) if steps else None
    return program, found or _searched(trace, in_graph=False)


def _searched(trace: Trace, *, in_graph: bool) -> KnownSteps:
    """Look for steps that nobody marked; Keras' train function is known by its name."""
    source, steps = search(trace, in_graph=in_graph)
    if not steps and in_graph:
        raise Unavailable(
            "the training loop is inside a graph, and the trace does not separate its iterations (XLA runs a "
            "whole loop as one program)",
            "call the function once per step to measure the steps",
        )
    if not steps:
        source, steps = StepSource.REPEATED_CALL, train_function_calls(trace)
    if not steps:
        return StepSource.NONE, []
    return _closed(source, chain(steps), trace) if source == StepSource.REPEATED_CALL else (source, chain(steps))


def _closed(source: StepSource, steps: list[Step], trace: Trace) -> KnownSteps:
    """Let the last step end with the traced window, where the trace shows when that ended."""
    ends = [event.start_ps for event in trace.host_events(END_OF_WINDOW) if event.start_ps >= steps[-1].call_end_ps]
    return source, [*steps[:-1], replace(steps[-1], end_ps=min(ends))] if ends else steps
