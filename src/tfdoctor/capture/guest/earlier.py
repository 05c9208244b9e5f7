"""What a process had built before recording began in it, found among the objects that are alive.

`tfdoctor profile` sees everything being made. `tfdoctor.record` comes later: what a layer, a dataset or a
traced function is can still be read off it, but not which line made it, nor its name in traces. That stays
unknown.
"""

import collections
import sys
import weakref

from .call_loop import LOOPS, TRAINS
from .journal import quietly
from .registry import DATASETS, LAYERS
from .tf_hooks import BODIES, FUNCTIONS

GRADIENTS = "gradient_tape/"
"""How the names of operations begin that a GradientTape made while a function was traced."""


class NoLayer(str):
    """The answer that an operation is of no layer, and that nobody else need be asked."""

    __slots__ = ()

    def __bool__(self):
        return True


class Unseen(dict):
    """The name scopes of a graph that was traced unseen: names alone may lead to another's layer."""

    def get(self, path, default=None):  # noqa: ARG002  # a mapping's signature
        """Return that no layer is known for this path."""
        return NoLayer()


def adopt(window):
    """Make known what is alive and was not seen being made."""
    import gc

    gc.collect()  # models of an earlier cell are in cycles, and share their names with their successors
    names = {"functions": [FUNCTIONS, "Function"], "datasets": [DATASETS, "DatasetV2"]}
    names.update((name, [name, "Layer"]) for name in LAYERS)
    kinds = {what: _kind(*where) for what, where in names.items()}
    found = alive({id(kind): what for what, kind in kinds.items() if kind is not None})
    log, registry = window.log, window.registry
    registry.numbering.settled = False
    _layers(registry, [layer for name in LAYERS for layer in found[name]])
    _datasets(registry, found["datasets"])
    known = {id(reference()) for reference in registry.graphs}
    function = quietly("earlier function", log)(_function)
    for each in found["functions"]:
        function(window, each, known)


def _kind(module, name):
    return getattr(sys.modules.get(module), name, None)


def alive(kinds):
    """Return all objects of classes and of those below them: {id of a class: what} to {what: [object, …]}."""
    import gc

    found, known = collections.defaultdict(list), {}
    for thing in gc.get_objects():
        own = type(thing)
        what = known.get(id(own), known)
        if what is known:
            # Not issubclass: an abstract class would remember every type that it is asked about.
            above = (kinds.get(id(each)) for each in own.__mro__)
            what = known[id(own)] = next(filter(None, above), "")
        if what:
            found[what].append(thing)
    return found


def _layers(registry, layers):
    """Adopt layers whose names are their own: of two that share one, either could be meant."""
    seen = {id(reference()) for reference, _ in registry.layers}
    names = collections.Counter(str(getattr(layer, "name", "")) for layer in layers)
    for layer in layers:
        if id(layer) not in seen and names[str(getattr(layer, "name", ""))] == 1:
            registry.layers.append((weakref.ref(layer), None))


def _datasets(registry, datasets):
    """Adopt datasets without a line and without a name."""
    for dataset in datasets:
        if dataset not in registry.lines:
            registry.datasets.append(weakref.ref(dataset))
            registry.lines[dataset] = None
            registry.earlier.add(dataset)


def _function(window, function, known):
    """Find out whether a tf.function trains by what it was traced to, and describe what does."""
    marks, memory = {}, {}
    cache = getattr(function, "_function_cache", None)
    for concrete in cache.values() if cache is not None else ():
        found = marks_of(concrete.graph, memory)
        if TRAINS in found:
            marks.update(found)
            window.graph_marks.setdefault(concrete.graph, {}).update(found)
            for graph in _with_inner(concrete.graph):
                _graph(window.registry, graph, known)
    function.__dict__.update(marks)
    if LOOPS in marks:
        window.watch.graphs = True
        window.watch.begin()


def _graph(registry, graph, known):
    """Describe a graph, but for its layers."""
    if id(graph) not in known:
        known.add(id(graph))
        registry.graphs.append(weakref.ref(graph))
        registry.scopes[graph] = Unseen()


def marks_of(graph, memory):
    """Return the marks of a traced graph: whether it takes gradients, and whether in a loop of its own."""
    if id(graph) in memory:
        return memory[id(graph)]
    marks = memory[id(graph)] = {}
    if any(op.name.startswith(GRADIENTS) for op in graph.get_operations()):
        marks[TRAINS] = True
    for inner in _inner(graph):
        found = marks_of(inner, memory)
        marks.update(found)
        if TRAINS in found and _is_loop(inner):
            marks[LOOPS] = True
    return marks


def _is_loop(graph):
    """Say whether this is the body of a loop, and not what a gradient through a loop made of one."""
    body = type(graph).__name__ == "WhileBodyFuncGraph" and not graph.name.endswith("_rewritten")
    return body or graph.name.startswith(BODIES)


def _inner(graph):
    """Return the graphs of the functions that a graph calls; some have none in Python."""
    functions = getattr(graph, "_functions", {}).values()
    graphs = (getattr(function, "graph", None) for function in functions)
    return [inner for inner in graphs if inner is not None]


def _with_inner(graph):
    """Return a graph and all those inside it."""
    found, waiting = {}, [graph]
    while waiting:
        each = waiting.pop()
        if id(each) not in found:
            found[id(each)] = each
            waiting.extend(_inner(each))
    return list(found.values())
