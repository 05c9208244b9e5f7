"""Which tf.functions were retraced while the run trained, how long that took, and what had changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.long_steps import COMPILING, compilations
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import is_named, spans_of
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import EAGER_EXECUTE, EAGER_KERNEL, GRAPH_BUILDING
from tfdoctor.trace.stats import Value

# The stat of a tf.function's call: "traced-nonXla", "notTraced-xla" (TensorFlow 2.3 to 2.21).
CALL = "tf_function_call"


@dataclass(frozen=True, slots=True)
class Retraced:
    """One tf.function; numbers of its calls in the traced steps."""

    name: str
    calls: int
    traced: int  # calls that traced it
    tracings: int  # of the whole run, until the last of these calls
    changed: tuple[str, ...] = ()  # an argument's value in each trace; () where not recorded


@dataclass(frozen=True, slots=True)
class Retracing:
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
        lines = trace.host_lines
        whole = steps.steps[0].start_ps, steps.steps[-1].end_ps
        steady = SteadySteps.of(steps)
        working, calls = activity.of(Stage.DEVICE), Intervals.any_of(map(function_calls, lines))
        tracing = Intervals.any_of(map(_tracing, lines)) - working
        calling_ms = steady.ms(calls - steady.calls - working - tracing)
        functions = tuple(_functions(lines, whole, recording.program))
        return cls(functions, *steady.split_ms(tracing), calling_ms)

    @property
    def total_ms(self) -> float:
        """The time of tracing, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms


def function_calls(line: Line, name: str = "") -> Intervals:
    """Return when a thread was in calls of tf.functions, or of those of a name."""
    called = np.zeros(len(line), bool)
    called[line.stats.having(CALL)] = True
    return spans_of(line, called & is_named(line, name.__eq__) if name else called)


def _tracing(line: Line) -> Intervals:
    """Return when a thread traced: it built a graph, or prepared a new one to run."""
    events, ways = line.stats.values(CALL)
    traced = np.zeros(len(line), bool)
    traced[events] = list(map(_is_traced, ways))
    prepares, runs, builds = (
        spans_of(line, is_named(line, name.__eq__)) for name in (EAGER_EXECUTE, EAGER_KERNEL, GRAPH_BUILDING)
    )
    return spans_of(line, traced) & (builds | (prepares - runs))


def _is_traced(way: Value) -> bool:
    return str(way).startswith("traced")


def _functions(lines: Iterable[Line], whole: tuple[int, int], program: ProgramRecord | None) -> Iterable[Retraced]:
    by_function: dict[str, list[Mapping[str, Value]]] = defaultdict(list)
    for line in lines:
        events = line.stats.having(CALL)
        middles = line.start_ps[events] + line.duration_ps[events] // 2
        for index in events[(middles >= whole[0]) & (middles < whole[1])].tolist():
            by_function[line.types[line.kind[index]].name].append(line.stats.of(index))
    for name, calls in by_function.items():
        traced = sum(_is_traced(stats[CALL]) for stats in calls)
        tracings = max(int(stats.get("tracing_count") or 0) for stats in calls)
        yield Retraced(name, len(calls), traced, tracings, changed(name, program))


def changed(name: str, program: ProgramRecord | None) -> tuple[str, ...]:
    """Return the values of the first argument that differs between the traces of a function."""
    traces = [graph.given for graph in (program.graphs if program else ()) if graph.name == name and graph.given]
    for values in zip(*traces, strict=False):
        if len(set(values)) > 1:
            return tuple(dict.fromkeys(values))
    return ()


@dataclass(frozen=True, slots=True)
class CompileTime:
    """XLA's compilations in the traced steps; ms per training step.

    ``host_ms`` and ``between_ms`` lie inside and outside the call that is a step, in steady steps, while
    the device is idle. ``share`` is the compiler's share of the whole traced time, 0 to 1. ``apart`` has
    the places of the outlier steps that mostly compile.
    """

    steps: int  # with a compilation
    of: int  # all steps
    late: int  # steps with a compilation in the second half of all steps
    host_ms: float = 0.0
    between_ms: float = 0.0
    longest_ms: float = 0.0  # of one compilation
    share: float = 0.0
    apart: frozenset[int] = frozenset()

    @classmethod
    def measure(cls, trace: Trace, steps: Steps, activity: Activity) -> Self:
        """Find the compiler's own events on any thread of the host."""
        compiling = compilations(trace)
        within = [compiling.within(step.start_ps, step.end_ps).total for step in steps.steps]
        holding = [bool(time) for time in within]
        long = [step.end_ps - step.start_ps for step in steps.steps]
        steady = SteadySteps.of(steps)
        exposed = compiling - activity.of(Stage.DEVICE)
        longest = int((compiling.ends_ps - compiling.starts_ps).max(initial=0))
        return cls(
            sum(holding),
            len(holding),
            sum(holding[len(holding) // 2 :]),
            *steady.split_ms(exposed),
            longest / 1e9,
            sum(within) / max(1, sum(long)),
            frozenset(
                at for at, steady in enumerate(steps.steady) if not steady and within[at] >= COMPILING * long[at]
            ),
        )

    @property
    def total_ms(self) -> float:
        """The exposed time of compiling, inside and outside of the call, in ms per step."""
        return self.host_ms + self.between_ms
