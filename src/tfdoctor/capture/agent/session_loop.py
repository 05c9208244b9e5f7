"""Steps of TensorFlow 1: the calls of `Session.run` that fetch something that trains."""

import functools
import weakref

from .frames import hide
from .journal import quietly
from .stack import here

SESSION = "tensorflow.python.client.session"
SOURCE = "session-run"

UPDATES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")
"""How the operations are called that change weights by gradients: ApplyAdam, ResourceApplyAdam …"""


def hooks(window):
    """Return what to patch in which module."""
    return {SESSION: [lambda module: Sessions(window).patch(module)]}


class Sessions:
    """All sessions of the process."""

    def __init__(self, window):
        self.window = window
        self.known = weakref.WeakKeyDictionary()  # graph: {name of a fetch: whether it trains}
        self.key = quietly("session", window.log)(self._key)

    def patch(self, module):
        """Have `run`, which every kind of session comes down to, tell of its steps."""
        original, window = module.BaseSession.run, self.window

        @functools.wraps(original)
        def run(session, fetches, *args, **kwargs):
            module._tfdoctor_made = True
            loops = window.local.loops
            key = None if window.quiet or loops.depth else self.key(session, fetches)
            if key is None:
                return original(session, fetches, *args, **kwargs)
            source = window.source(SOURCE, key, here)
            marker = source.begin(1)
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

        module.BaseSession.run = hide(run)

    def _key(self, session, fetches):
        """Return which fetches train, or None: the same ones again are the same loop."""
        graph = session.graph
        known = self.known.get(graph)
        if known is None:
            known = self.known[graph] = {}
        training = []
        for fetch in _flat(fetches):
            name = fetch if isinstance(fetch, str) else getattr(fetch, "name", None)
            if name not in known:
                known[name] = trains(graph, fetch)
                if known[name]:
                    self.window.registry.graph_made(graph)
            if known[name]:
                training.append(name)
        return (id(graph), *sorted(training)) if training else None


def _flat(fetches):
    """Yield the fetches of any nesting."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for each in fetches:
            yield from _flat(each)
    elif fetches is not None:
        yield fetches


def trains(graph, fetch):
    """Say whether running a fetch changes weights by gradients."""
    try:
        element = graph.as_graph_element(fetch)
    except (KeyError, TypeError, ValueError):  # a structure of the user's own
        return False
    waiting = [getattr(element, "op", element)]
    seen, gradients, assigns = set(), False, False
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type.startswith(UPDATES):
            return True
        gradients = gradients or op.name.startswith("gradients")
        assigns = assigns or op.type.startswith("Assign")
        waiting.extend(tensor.op for tensor in op.inputs)
        waiting.extend(op.control_inputs)
    return gradients and assigns
