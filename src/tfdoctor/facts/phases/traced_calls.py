"""The calls that traced a tf.function, by its definition, without the usual call that each contains."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.run_clock import MS
from tfdoctor.facts.phases.step_times import usual_step
from tfdoctor.recording.run_log import FunctionTrace, Line, RunLog
from tfdoctor.terms.kinds import RunCall

Definition = tuple[str, Line | None]
"""The name of a function, and the line that calls it."""

NOTHING: Mapping[Definition, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tracings:
    """The calls that traced functions of one name and line, in order; ``usual_ms`` is a call that does not."""

    name: str
    at: Line | None
    traces: tuple[FunctionTrace, ...]
    usual_ms: float
    within: RunCall

    def own_ms(self, trace: FunctionTrace) -> float:
        """Return the time of a call without that of a usual one."""
        return max(0.0, trace.ms - self.usual_ms)


def tracings(log: RunLog, tree: CallTree, usual_ms: Mapping[Definition, float] = NOTHING) -> list[Tracings]:
    """Return all calls that traced, by name, line and what is around; those within another one are part of it.

    ``usual_ms`` has usual calls of functions, as far as the recorder timed them; of training ones it is a step.
    """
    step = usual_step(log)
    by_definition: dict[tuple[str, Line | None, RunCall], list[FunctionTrace]] = defaultdict(list)
    for trace in outermost(log.traces):
        # Fit's training and its evaluation share names: they differ in the call around.
        kind = tree.kind(trace.call)
        within = tree.parent(trace.call) if kind is RunCall.TRACE else kind
        by_definition[trace.name, trace.at, within].append(trace)
    found = []
    for (name, at, within), traces in by_definition.items():
        in_step = any(tree.trains(trace.call) for trace in traces)
        usual = step if in_step else usual_ms.get((name, at), 0.0)
        found.append(Tracings(name, at, tuple(traces), usual, within))
    return found


def outermost(traces: Sequence[FunctionTrace]) -> list[FunctionTrace]:
    """Return the traces that lie in no other one, in order."""
    found: list[FunctionTrace] = []
    end = 0.0
    for trace in sorted(traces, key=lambda trace: (trace.start, -trace.ms)):
        until = trace.start + trace.ms / MS
        if until > end or not found:
            found.append(trace)
            end = until
    return found


def first_tracings_ms(log: RunLog, tree: CallTree) -> float:
    """Return the time of the first tracing of each definition."""
    return sum(group.own_ms(group.traces[0]) for group in tracings(log, tree))
