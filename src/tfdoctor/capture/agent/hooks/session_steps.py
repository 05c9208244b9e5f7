"""Steps of TensorFlow 1: the calls of `Session.run` that fetch something that trains."""

from __future__ import annotations

import sys
import weakref

from ..entry_points import SESSIONS
from ..process.objects import leaves
from ..process.stack import here
from ..run import kinds
from ..window.steps import StepKind
from ..window.window import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from types import FrameType

    from ..installed import Installed
    from ..process.declared import Foreign, Graph, GraphOperation
    from ..stream import Args, Held, Kwargs, Stream
    from .users_profiler import Lending

SESSION = StepKind.SESSION

HARDWARE_TRACE = 2  # The level of `RunOptions` from which on TensorFlow profiles a step; a full trace is above it
# How the operations are called that change weights by gradients: ApplyAdam, ResourceApplyAdam …
UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")
# How those are called that write variables: beside gradients, they train. Gradient descent writes the rows of an
# embedding by ScatterSub or ResourceScatterAdd.
WRITES = ("Assign", "Scatter", "ResourceScatter")


def listen(stream: Stream, installed: Installed, lending: Lending) -> None:
    """Notice the steps in `run`, which every kind of session calls in the end."""
    sessions = Sessions(installed, lending)
    stream.on("session run", lambda _: sessions.runs)
    stream.on("session callable", lambda _: sessions.makes)


def profiles(options: object) -> bool:
    """Say whether a step that is run with these options opens a session of the profiler."""
    level: int = getattr(options, "trace_level", 0)
    return level >= HARDWARE_TRACE


class Sessions:
    """The calls of all sessions, and which fetches train, remembered for each graph."""

    def __init__(self, installed: Installed, lending: Lending) -> None:
        self.installed, self.window, self.lending = installed, installed.window, lending
        self.clock = installed.recorder.clock
        self.known: weakref.WeakKeyDictionary[Graph, dict[object, bool]] = weakref.WeakKeyDictionary()

    def makes(self, _: Held, args: Args, __: Kwargs, ___: object) -> None:
        """Give way to the profiler of each call of what is made, for good: it may be a step."""
        if profiles(args[1].run_options):
            self.lending.give_way()
            self.window.lent += 1

    def runs(self, held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> None:
        """A call begins; it may train."""
        made: Foreign = sys.modules[SESSIONS]
        made._tfdoctor_made = True
        session, fetches, *rest = *args, *(kwargs["fetches"] for _ in range(2 - len(args)))
        if profiles(rest[1] if len(rest) > 1 else kwargs.get("options")):
            self.lending.lend(held)
        if self.installed.local.loops.depth:
            return
        key = self._key(session.graph, fetches)
        self._account(held, session.graph, frame, trains=key is not None)
        if key is not None and not self.window.quiet:
            feeds = rest[0] if rest else kwargs.get("feed_dict")
            self._step(held, key, session.graph, feeds)

    def _account(self, held: Held, graph: Foreign, frame: FrameType, *, trains: bool) -> None:
        """Have the clock know it, on the thread that it follows."""
        clock = self.clock
        if clock.thread is None or not (clock.adopt() if trains else clock.follows()):
            return
        clock.graph = int(graph.version)
        call: Foreign = [frame, None, None]
        held.append((self._accounted, call))
        if trains:
            call[1] = clock.step_begins(frame, "session-run", 1)
        elif clock.opens():
            call[2] = clock.enter(kinds.FUNCTION, "Session.run", frame)

    def _accounted(self, call: Foreign, _: object, error: BaseException | None) -> None:
        (frame, outer, entered), clock = call, self.clock
        clock.step_is_over(outer, error, part=outer is None)
        if entered is not None and entered[2] in clock.places:
            clock.testing.add(frame)
            clock.switch(entered[0])

    def _step(self, held: Held, key: Hashable, graph: Graph, feeds: object) -> None:
        """A step of the window begins."""
        window, given = self.window, self.installed.registry.given
        source = window.source(SESSION, key, here)
        if given.asks:
            given.fed(source, graph, feeds, waits=window.state is WAITING)
        loops = self.installed.local.loops
        call = [source, loops, None]
        held.append((self._over, call))
        call[2] = source.begin(1)
        loops.depth += 1

    def _over(self, call: Foreign, _: object, error: BaseException | None) -> None:
        source, loops, marker = call
        loops.depth = 0
        if error is not None:
            source.retract(marker, 1)
        if marker is not None:
            marker.__exit__(None, None, None)

    def _key(self, graph: Graph, fetches: object) -> Hashable:
        """Return which fetches train, or None: the same ones again are the same loop."""
        known = self.known.get(graph)
        if known is None:
            known = self.known[graph] = {}
        training = []
        for fetch in leaves(fetches):
            name = fetch if isinstance(fetch, str) else getattr(fetch, "name", None)
            if name not in known:
                known[name] = trains(graph, fetch)
                if known[name]:
                    self.installed.registry.graph_made(graph)
            if known[name]:
                training.append(str(name))
        return (id(graph), *sorted(training)) if training else None


def trains(graph: Graph, fetch: object) -> bool:
    """Say whether running a fetch changes weights by gradients."""
    try:
        element = graph.as_graph_element(fetch)
    except (KeyError, TypeError, ValueError):  # a structure of the user's own
        return False
    gradients = writes = False
    for op in _needed(element):
        if op.type.startswith(UPDATES):
            return True
        gradients = gradients or op.name.startswith("gradients")
        writes = writes or op.type.startswith(WRITES)
    return gradients and writes


def _needed(element: Foreign) -> Iterator[GraphOperation]:
    """Yield the operation of a graph's element and all those that it needs."""
    last: Foreign = getattr(element, "op", element)
    waiting: list[GraphOperation] = [last]
    seen = set()
    while waiting:
        op = waiting.pop()
        if op not in seen:
            seen.add(op)
            yield op
            waiting.extend(tensor.op for tensor in op.inputs)
            waiting.extend(op.control_inputs)
