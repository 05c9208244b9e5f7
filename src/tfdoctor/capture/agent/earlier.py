"""What a process had built before recording began, as far as the recording has to do with it.

`tfdoctor profile` sees everything being made. `tfdoctor.record` comes later: what a layer, a dataset or a
traced function is can still be read off it, but not which line made it, nor its name in traces. That stays
unknown. Of functions and layers only those in use are described, for others may have the same names.
"""

import collections
import functools
import sys
import weakref

from . import traced
from .alive import alive
from .call_loop import LOOPS, TRAINS
from .frames import hide
from .journal import quietly
from .registry import DATASETS, LAYERS
from .tf_hooks import FUNCTIONS


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


class Earlier:
    """What there was when a recording began."""

    def __init__(self, window, layers=()):
        self.window = window
        self.layers = list(layers)  # (reference, line or None)
        self.datasets = weakref.WeakSet()
        self.waiting = {}  # id: (reference, marks) of a function that trains and was not called yet
        self.called = []
        if FUNCTIONS in sys.modules or any(name in sys.modules for name in LAYERS):
            quietly("earlier", window.log)(self._look)()

    def _look(self):
        """Find what is alive, and which functions train."""
        names = {"functions": (FUNCTIONS, "Function"), "datasets": (DATASETS, "DatasetV2")}
        names.update((name, (name, "Layer")) for name in LAYERS)
        found = alive(names)
        self.window.registry.numbering.settled = False
        known = {id(reference()) for reference, _ in self.layers}
        layers = (layer for name in LAYERS for layer in found[name] if id(layer) not in known)
        self.layers += [(weakref.ref(layer), None) for layer in layers]
        self._datasets(found["datasets"])
        function, memory = quietly("earlier function", self.window.log)(self._function), {}
        for each in found["functions"]:
            function(each, memory)
        if self.waiting:
            _watch(sys.modules[FUNCTIONS].Function, self.window.registry)

    def _datasets(self, datasets):
        """Adopt datasets; those that were not seen being made have neither a line nor a name."""
        registry = self.window.registry
        for dataset in datasets:
            if dataset not in registry.lines:
                registry.datasets.append(weakref.ref(dataset))
                registry.lines[dataset] = None
            if dataset not in registry.numbering.numbers:
                self.datasets.add(dataset)

    def _function(self, function, memory):
        """Find out whether a tf.function trains by what it was traced to."""
        marks = {}
        for concrete in traced.concrete(function):
            found = traced.marks_of(concrete.graph, memory)
            if TRAINS in found:
                marks.update(found)
                self.window.graph_marks.setdefault(concrete.graph, {}).update(found)
        for mark in (TRAINS, LOOPS):
            function.__dict__.pop(mark, None)
        if marks:
            self.waiting[id(function)] = weakref.ref(function), marks

    def noted(self, function):
        """A tf.function is being called: as if this call had traced it."""
        reference, marks = self.waiting.pop(id(function), (None, None))
        if reference is None or reference() is not function:
            return
        self.called.append(reference)
        function.__dict__.update(marks)
        if LOOPS in marks:
            self.window.watch.graphs = True
            self.window.watch.begin()

    def without_lines(self):
        """Name the parts of what was recorded whose lines are not known."""
        registry = self.window.registry
        feeds = registry.feeds()
        unseen = {
            "the model": any(
                line is None and layer() is not None for layer, line in registry.layers
            ),
            "the input pipeline": feeds is not None and feeds in self.datasets,
        }
        return [part for part, is_unseen in unseen.items() if is_unseen]

    def complete(self):
        """Let the registry have what of all this turned out to be in use."""
        quietly("earlier functions", self.window.log)(self._graphs)()
        quietly("earlier layers", self.window.log)(self._layers)()
        quietly("names of datasets", self.window.log)(self._unname)()

    def _graphs(self):
        """Add the graphs of functions that were called since."""
        registry, known = self.window.registry, set()
        known.update(id(reference()) for reference in registry.graphs)
        for function in filter(None, (reference() for reference in self.called)):
            for concrete in traced.concrete(function):
                for graph in traced.with_inner(concrete.graph):
                    if id(graph) not in known:
                        known.add(id(graph))
                        registry.graphs.append(weakref.ref(graph))
                        if graph not in registry.scopes:
                            registry.scopes[graph] = Unseen()

    def _layers(self):
        """Add the layers that fit trains, and those that the graphs were traced through."""
        registry = self.window.registry
        model = registry.model()
        used = {id(layer) for layer in (model._flatten_layers() if model is not None else ())}
        graphs = [
            registry.scopes.get(reference(), {}) for reference in registry.graphs if reference()
        ]
        named = {name for scopes in graphs for name in scopes.values()}
        alive_still = [
            (layer(), entry) for entry in self.layers for layer in entry[:1] if layer() is not None
        ]
        taken = [
            (layer, entry)
            for layer, entry in alive_still
            if id(layer) in used or layer.name in named
        ]
        names = collections.Counter(layer.name for layer, _ in taken)
        names.update(layer().name for layer, _ in registry.layers if layer() is not None)
        gone = {id(layer) for layer, _ in taken}
        self.layers = [entry for layer, entry in alive_still if id(layer) not in gone]
        registry.layers += [entry for layer, entry in taken if names[layer.name] == 1]

    def _unname(self):
        """What stands on datasets without a name must not be taken for them: it loses its own."""
        for dataset in (reference() for reference in self.window.registry.datasets):
            if any(source in self.datasets for source in getattr(dataset, "_inputs", tuple)()):
                self.datasets.add(dataset)
                self.window.registry.numbering.numbers.pop(dataset, None)


def _watch(kind, registry):
    """Note which tf.functions are called, until all those that matter were."""
    original = kind._call
    if getattr(original, "_tfdoctor", False):
        return

    @quietly("call", registry.log)
    def noted(function):
        registry.earlier.noted(function)

    @functools.wraps(original)
    def _call(self, *args, **kwargs):
        if registry.earlier.waiting:
            noted(self)
        return original(self, *args, **kwargs)

    kind._call = hide(_call)
    kind._call._tfdoctor = True
