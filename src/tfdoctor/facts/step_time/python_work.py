"""What Python runs in a step: operations one by one, functions, their tracings and XLA's compilations."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.steps.step import bounds_of, compilations
from tfdoctor.facts.steps.steps import COMPILING, SteadySteps, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import is_named, spans_of, trainers
from tfdoctor.recording.program import ProgramRecord, RunSettings
from tfdoctor.trace.names import EAGER_EXECUTE, EAGER_KERNEL, EAGER_OPERATION, FUNCTION_RUNS, GRAPH_BUILDING

# Python runs a whole function: its name begins with "__inference_" or "__forward_".
FUNCTION = re.compile(r"EagerLocalExecute: __\w+")
# The stat of a tf.function's call: "traced-nonXla", "notTraced-xla" (TensorFlow 2.3 to 2.21).
CALL = "tf_function_call"
# Ms that running a kernel from Python adds to the kernel (the shortest of 8 traced runs took 1.3 to 2.1 us, the 5th
# percentile 1.7 to 2.4 us), and that a graph's executor spends on each operation at least (0.4 to 0.7 us for those
# that only pass a tensor on; TensorFlow 2.21 on a Xeon with AMX).
STARTING, SCHEDULING = 2e-3, 0.5e-3


class EagerWork(Record):
    """What the trainer's thread ran; numbers and ms per training step.

    ``least_ms`` is what the kernels of the operations take on a CPU when a graph runs them: each at its fastest
    in the traced steps, since a pool that slept between two operations, or another program, delays the others.
    0.0 where the steps do not run the same kernels, and on accelerators.
    """

    operations: float  # that Python ran one by one
    operations_ms: float
    functions_ms: float  # in whole functions
    asked: bool | None = None  # run_eagerly of Keras; None: not recorded, or no Keras
    at: Location | None = None  # the line of fit, or of the loop
    least_ms: float = 0.0
    step_at: Location | None = None  # where the function that the loop calls is defined
    called_at: Location | None = None  # the line of the loop that calls it
    beside: str = ""  # the tf.function that is the step, where the operations run beside it

    @classmethod
    def measure(
        cls, trace: Trace, recording: Recording, framework: Framework, steps: Steps, device: Device
    ) -> Self:
        """Count on the threads of Python that train.

        Raises:
            Unavailable: the run is not TensorFlow's, or its calls were not recorded.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} compiles its steps")
        lines, steady = trainers(trace.host_lines), SteadySteps.of(steps)
        masks = [is_named(line, EAGER_OPERATION.fullmatch) for line in lines]
        begun = sum(int(steady.holds(line.start_ps[mask]).sum()) for line, mask in zip(lines, masks, strict=True))
        single = Intervals.any_of(map(spans_of, lines, masks))
        whole = Intervals.any_of(
            spans_of(line, is_named(line, FUNCTION_RUNS.__contains__) | is_named(line, FUNCTION.fullmatch))
            for line in lines
        )
        if not single and not whole:
            raise Unavailable("the trace does not show what Python ran (TensorFlow before 2.4)")
        program, manifest = recording.program, recording.manifest
        settings = program.run if program else RunSettings()
        seen = manifest.steps.candidates if manifest else ()
        takes_gradients = any(one.source == StepSource.EAGER_GRADIENT for one in seen)
        fed = program.python.fed if program and program.python and not takes_gradients else None
        locate = Places.of(recording)
        # The function that most samples of steps are in, by its definition, and the line that mostly calls it.
        log = recording.run
        samples = (row for bucket in log.buckets for row in bucket.samples.items()) if log else ()
        seen_in = ((log.stacks.get(int(at)), n) for at, n in samples if log and at.isdecimal())
        stacks = [((one.step, one.step_call), number) for one, number in seen_in if one and one.step]
        step = next(iter(summed((at, seen) for (at, _), seen in stacks)), None)
        call = next(iter(summed((line, seen) for (at, line), seen in stacks if at == step and line)), None)
        return cls(
            begun / steady.rounds,
            steady.ms(single - whole),  # not within a function that runs on the thread of Python
            steady.ms(whole),
            settings.run_eagerly,
            locate(settings.fit_at or (manifest.steps.at if manifest else None)),
            _least(lines, whole, steady) if device.kind == DeviceKind.CPU else 0.0,
            locate(step),
            locate(call),
            fed.function if fed else "",
        )


def _least(lines: list[Line], whole: Intervals, steady: SteadySteps) -> float:
    """Return the least ms per step of the kernels that Python starts outside of functions; 0.0 is unknown.

    Of the thread with the most, by the steps that run the usual number, where these are half of the steady ones.
    """
    found = [np.zeros((0, 0))]  # (steps, kernels) ms
    for line in lines:
        single = is_named(line, EAGER_KERNEL.__eq__) & ~whole.holds(line.start_ps)
        starts, lasting = line.start_ps[single], line.duration_ps[single]
        first, last = map(starts.searchsorted, (steady.stretches.starts_ps, steady.stretches.ends_ps))
        (usual, often), *_ = Counter((last - first).tolist()).most_common(1) or [(0, 0)]
        if usual and 2 * often >= len(first):
            equal = first[last - first == usual]
            found.append(lasting[equal[:, None] + np.arange(usual)] / 1e9)
    times = max(found, key=lambda rows: (rows.size > 0, rows.sum()))
    return float(np.maximum(times.min(axis=0) - STARTING, SCHEDULING).sum()) if times.size else 0.0


class Retraced(Record):
    """One tf.function; numbers of its calls in the traced steps."""

    name: str
    calls: int
    traced: int  # calls that traced it
    tracings: int  # of the whole run, until the last of these calls
    changed: tuple[str, ...] = ()  # an argument's value in each trace; () where not recorded


class Retracing(Record):
    """The functions that were called while the run trained; ms per training step.

    Tracing is building the graph in Python and preparing it to run for the first time. ``between_ms`` lies
    outside the call that is a step, where the step is marked within the function. ``calling_ms`` is Python's
    overhead of calling functions without tracing them, outside of that call.
    """

    functions: tuple[Retraced, ...] = ()
    host_ms: float = 0.0
    between_ms: float = 0.0
    calling_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, recording: Recording, framework: Framework, steps: Steps, activity: Activity
    ) -> Self:
        """Read the calls on the threads of Python.

        Raises:
            Unavailable: the run is not TensorFlow's.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} has no tf.function")
        found, spans = defaultdict[str, list[tuple[bool, int]]](list), []  # whether a call traced, and tracings
        for line in trace.host_lines:
            events, ways = line.stats.values(CALL)
            traced = np.zeros(len(line), bool)
            traced[events] = [str(way).startswith("traced") for way in ways]
            prepares, runs, builds = (
                spans_of(line, is_named(line, name.__eq__))
                for name in (EAGER_EXECUTE, EAGER_KERNEL, GRAPH_BUILDING)
            )
            spans.append(spans_of(line, traced) & (builds | (prepares - runs)))
            middles = line.start_ps[events] + line.duration_ps[events] // 2
            inside = (middles >= steps.steps[0].start_ps) & (middles < steps.steps[-1].end_ps)
            for index in events[inside].tolist():
                tracings = int(line.stats.of(index).get("tracing_count") or 0)
                found[line.types[line.kind[index]].name].append((bool(traced[index]), tracings))
        functions = []
        for name, called in found.items():
            number, tracings = sum(traces for traces, _ in called), max(count for _, count in called)
            functions.append(Retraced(name, len(called), number, tracings, changed(name, recording.program)))
        steady, working = SteadySteps.of(steps), activity.of(Stage.DEVICE)
        calls = Intervals.any_of(map(function_calls, trace.host_lines))
        tracing = Intervals.any_of(spans) - working
        calling_ms = steady.ms(calls - steady.calls - working - tracing)
        return cls(tuple(functions), *steady.split_ms(tracing), calling_ms)

    @property
    def total_ms(self) -> float:
        """The time of tracing, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms


def function_calls(line: Line, name: str = "") -> Intervals:
    """Return when a thread was in calls of tf.functions, or of those of a name."""
    called = np.zeros(len(line), bool)
    called[line.stats.having(CALL)] = True
    return spans_of(line, called & is_named(line, name.__eq__) if name else called)


def changed(name: str, program: ProgramRecord | None) -> tuple[str, ...]:
    """Return the values of the first argument that differs between the traces of a function."""
    traces = [graph.given for graph in (program.graphs if program else ()) if graph.name == name and graph.given]
    differ = (values for values in zip(*traces, strict=False) if len(set(values)) > 1)
    return tuple(dict.fromkeys(next(differ, ())))


class CompileTime(Record):
    """XLA's compilations in the traced steps; ms per training step.

    ``host_ms`` and ``between_ms`` lie inside and outside the call that is a step, in steady steps, while
    the device is idle. ``share`` is the compiler's share of the whole traced time, 0 to 1. ``apart`` has
    the places of the outlier steps that mostly compile. ``long`` steps of the whole run, for ``long_ms`` beyond the
    usual time, took at least half as long as the longest compilation.
    """

    steps: int  # with a compilation
    of: int  # all steps
    late: int  # steps with a compilation in the second half of all steps
    host_ms: float = 0.0
    between_ms: float = 0.0
    longest_ms: float = 0.0  # of one compilation
    share: float = 0.0
    apart: frozenset[int] = frozenset()
    long: int = 0
    long_ms: float = 0.0

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity, recording: Recording) -> Self:
        """Find the compiler's own events on any thread of the host."""
        compiling = compilations(trace)
        starts, ends = bounds_of(steps.steps)
        within = compiling.covered(starts, ends)
        apart = (within >= COMPILING * (ends - starts)) & ~np.array(steps.steady, bool)
        longest_ms = int((compiling.ends_ps - compiling.starts_ps).max(initial=0)) / 1e9
        told = [one for one in recording.run.long_steps if not one.first] if recording.run and longest_ms else []
        long = [one.ms - one.usual_ms for one in told if 2 * (one.ms - one.usual_ms) >= longest_ms]
        return cls(
            int(np.count_nonzero(within)),
            len(within),
            int(np.count_nonzero(within[len(within) // 2 :])),
            *SteadySteps.of(steps).split_ms(compiling - activity.of(Stage.DEVICE)),
            longest_ms,
            int(within.sum()) / max(1, int((ends - starts).sum())),
            frozenset(np.flatnonzero(apart).tolist()),
            len(long),
            sum(long),
        )

    @property
    def total_ms(self) -> float:
        """The exposed time of compiling, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms
