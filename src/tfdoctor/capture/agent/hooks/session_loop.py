"""Steps of TensorFlow 1: the calls of `Session.run` that fetch something that trains."""

from __future__ import annotations

import functools
import sys
import weakref

from ..process.frames import UP, hide, named_apart
from ..process.journal import guarded
from ..process.nested import leaves
from ..process.stack import here
from ..window.steps import StepKind
from ..window.window import WAITING
from .users_profiler import Lending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ..installed import Installed
    from ..process.declared import Foreign, Graph, GraphOperation, SessionModule
    from ..process.imports import Hooks

    Run = Callable[..., object]

MODULE = "tensorflow.python.client.session"

SESSION = StepKind.SESSION

HARDWARE_TRACE = 2  # The level of `RunOptions` from which on TensorFlow profiles a step; a full trace is above it
# How the operations are called that change weights by gradients: ApplyAdam, ResourceApplyAdam …
UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")
# How those are called that write variables: beside gradients, they train. Gradient descent writes the rows of an
# embedding by ScatterSub or ResourceScatterAdd.
WRITES = ("Assign", "Scatter", "ResourceScatter")


def hooks(installed: Installed) -> Hooks:
    """Return what to patch in which module."""
    return {MODULE: [lambda module: patch(module, installed)]}


def patch(module: SessionModule, installed: Installed) -> None:
    """Notice the steps in `run`, which every kind of session calls in the end."""
    original, window, fetched = module.BaseSession.run, installed.window, Fetches(installed)
    account, lending = installed.run, Lending(window)

    def counted(session: Foreign, fetches: object, *args: object, **kwargs: object) -> object:
        if installed.local.loops.depth:
            return original(session, fetches, *args, **kwargs)
        key = fetched.key(session.graph, fetches)
        begun = account.session_begins(session.graph, sys._getframe(UP + 1), trains=key is not None)
        try:
            if key is None or window.quiet:
                return original(session, fetches, *args, **kwargs)
            return step(key, session, fetches, *args, **kwargs)
        except BaseException as error:
            account.session_fails(begun, error)
            raise
        finally:
            account.session_ends(begun)

    alone = lending.alone(counted)

    @functools.wraps(original)
    def run(session: Foreign, fetches: object, *args: object, **kwargs: object) -> object:
        module._tfdoctor_made = True
        options = args[1] if len(args) > 1 else kwargs.get("options")
        return (alone if profiles(options) else counted)(session, fetches, *args, **kwargs)

    def made(session: Foreign, callable_options: Foreign) -> object:
        if profiles(callable_options.run_options):
            lending.give_way()
            window.lent += 1  # for good: each call of what is made here may be a step
        return make(session, callable_options)

    make = module.BaseSession._make_callable_from_options
    module.BaseSession._make_callable_from_options = hide(functools.wraps(make)(made))
    named_apart(counted)
    step = named_apart(_step(original, installed))
    module.BaseSession.run = hide(run)


def profiles(options: object) -> bool:
    """Say whether a step that is run with these options opens a session of the profiler."""
    level: int = getattr(options, "trace_level", 0)
    return level >= HARDWARE_TRACE


def _step(original: Run, installed: Installed) -> Run:
    """Return `run` as a step of the window."""
    window, lengths, arguments = installed.window, installed.lengths, installed.arguments

    def step(key: Hashable, session: Foreign, fetches: object, *args: object, **kwargs: object) -> object:
        feeds = args[0] if args else kwargs.get("feed_dict")
        if lengths.calls_left and window.state is WAITING:
            lengths.call(args[:1], kwargs.get("feed_dict"))
        source = window.source(SESSION, key, here)
        if arguments.wanted and arguments.source is source:
            arguments.note_feeds(session.graph, feeds if isinstance(feeds, dict) else {})
        marker, loops = source.begin(1), installed.local.loops
        loops.depth += 1
        try:
            result = original(session, fetches, *args, **kwargs)
        except BaseException:
            source.retract(marker, 1)
            raise
        finally:
            loops.depth -= 1
            if marker is not None:
                marker.__exit__(None, None, None)
        return result

    return step


class Fetches:
    """Which fetches train, remembered for each graph."""

    def __init__(self, installed: Installed) -> None:
        self.registry, self.log = installed.registry, installed.log
        self.known: weakref.WeakKeyDictionary[Graph, dict[object, bool]] = weakref.WeakKeyDictionary()

    @guarded("session")
    def key(self, graph: Graph, fetches: object) -> Hashable:
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
                    self.registry.graph_made(graph)
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
