"""What a process had built before recording began, as far as the recording has to do with it.

`tfdoctor profile` sees everything being made. `tfdoctor.record` comes later: what a layer, a dataset or a
traced function is can still be read off it, but not which line made it, nor its name in traces. That stays
unknown. Of functions and layers only those in use are described, for others may have the same names.
"""

from __future__ import annotations

import collections
import sys
import weakref

from ..entry_points import DATASETS, FUNCTIONS, LAYERS
from ..process import by_identity
from ..process.journal import guarded
from ..process.live_objects import alive
from ..process.marks import LOOPS, TRAINS
from ..program import traced_graphs
from ..stream import Point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..installed import Installed
    from ..process.declared import Foreign, KerasLayer, TfDataset
    from ..process.marks import Marks
    from ..program.layers import Entry
    from ..stream import Args, Held, Kwargs


class Earlier:
    """What there was when a recording began."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.log = installed, installed.log
        self.registry = installed.registry
        self.layers: list[Entry] = []
        # Functions that train and were not called yet: a reference and their marks, by id.
        self.waiting: dict[int, tuple[weakref.ref[object], Marks]] = {}
        self.watches = False  # the calls of tf.functions

    def begin(self) -> None:
        """Count what was built before this recording as built earlier, with what the one before has seen."""
        self.layers += self.registry.layers
        self.registry.layers.clear()
        self.datasets: weakref.WeakSet[TfDataset] = weakref.WeakSet()  # those without a name
        self.waiting.clear()
        self.called: list[weakref.ref[object]] = []
        if FUNCTIONS in sys.modules or any(name in sys.modules for name in LAYERS):
            self._search()

    @guarded("earlier")
    def _search(self) -> None:
        """Find what is alive, and which functions train."""
        names = {"functions": (FUNCTIONS, "Function"), "datasets": (DATASETS, "DatasetV2")}
        names.update((name, (name, "Layer")) for name in LAYERS)
        things = alive(names)
        self.registry.numbering.settled = False
        known = {id(reference()) for reference, _ in self.layers}
        layers = (layer for name in LAYERS for layer in things[name] if id(layer) not in known)
        self.layers += [(weakref.ref(layer), None) for layer in layers]
        self._adopt(things["datasets"])
        memory: dict[int, Marks] = {}
        for function in things["functions"]:
            self._function(function, memory)
        if self.waiting and not self.watches:
            self.watches = True
            kind, stream = sys.modules[FUNCTIONS].Function, self.installed.stream
            kind._call = stream.wrap(Point(self.log, kind._call, "_call", kind), [(self.noted, "")])

    def _adopt(self, datasets: Iterable[TfDataset]) -> None:
        """Adopt datasets; those that were not seen being made have neither a line nor a name."""
        registry = self.registry
        for dataset in datasets:
            if dataset not in registry.lines:
                registry.datasets.append(weakref.ref(dataset))
                registry.lines[dataset] = None
            if dataset not in registry.numbering.numbers:
                self.datasets.add(dataset)

    @guarded("earlier function")
    def _function(self, function: Foreign, memory: dict[int, Marks]) -> None:
        """Find out whether a tf.function trains by what it was traced to."""
        marks: Marks = {}
        graph_marks = self.installed.window.graph_marks
        for concrete in traced_graphs.concrete(function):
            of_graph = traced_graphs.marks_of(concrete.graph, memory)
            if TRAINS in of_graph:
                marks.update(of_graph)
                known = graph_marks.get(id(concrete.graph), {})
                by_identity.keep(graph_marks, concrete.graph, {**known, **of_graph})
        if marks:
            self.waiting[id(function)] = weakref.ref(function), marks

    def noted(self, _: Held, args: Args, __: Kwargs, ___: object) -> None:
        """A tf.function is being called: as if this call had traced it."""
        function = args[0]
        reference, marks = self.waiting.pop(id(function), (None, None))
        if reference is None or marks is None or reference() is not function:
            return
        self.called.append(reference)
        if LOOPS in marks:
            self.installed.watch.begin_for_graphs()

    def without_lines(self) -> list[str]:
        """Name the parts of what was recorded whose lines are not known."""
        registry = self.registry
        feeds = registry.feeds()
        unseen = {
            "the model": any(line is None and layer() is not None for layer, line in registry.layers),
            "the input pipeline": feeds is not None and feeds in self.datasets,
        }
        return [part for part, is_unseen in unseen.items() if is_unseen]

    # What turned out to be in use: the registry gets that, and no more

    def complete(self) -> None:
        """Let the registry have what was used of what is earlier."""
        self._graphs()
        self._layers()
        self._unname()

    @guarded("earlier functions")
    def _graphs(self) -> None:
        """Add the graphs of functions that were called since."""
        registry = self.registry
        known = {id(reference()) for reference in registry.graphs}
        called = (reference() for reference in self.called)
        for concrete in (each for function in called for each in traced_graphs.concrete(function)):
            for graph in traced_graphs.with_inner(concrete.graph):
                if id(graph) not in known:
                    known.add(id(graph))
                    registry.graphs.append(weakref.ref(graph))
                    if graph not in registry.scopes:
                        registry.unseen.add(graph)

    @guarded("earlier layers")
    def _layers(self) -> None:
        """Add the layers that fit trains, and those that the graphs were traced through.

        Of layers of one name nobody knows which an operation belongs to: none of them is added.
        """
        used = self._used()
        names = collections.Counter(layer.name for layer, _ in used)
        new = (reference() for reference, _ in self.registry.layers)
        names.update(layer.name for layer in new if layer is not None)
        gone = {id(layer) for layer, _ in used} | {id(None)}
        self.layers = [entry for entry in self.layers if id(entry[0]()) not in gone]
        self.registry.layers += [entry for layer, entry in used if names[layer.name] == 1]

    def _used(self) -> list[tuple[KerasLayer, Entry]]:
        """Return the earlier layers that the model has, or that a graph names."""
        registry = self.registry
        model = registry.model()
        of_model = {id(layer) for layer in (model._flatten_layers() if model is not None else ())}
        graphs = (reference() for reference in registry.graphs)
        scopes = [registry.scopes.get(graph, {}) for graph in graphs if graph is not None]
        named = {name for of_graph in scopes for name in of_graph.values()}
        alive = ((entry[0](), entry) for entry in self.layers)
        return [
            (layer, entry)
            for layer, entry in alive
            if layer is not None and (id(layer) in of_model or layer.name in named)
        ]

    @guarded("names of datasets")
    def _unname(self) -> None:
        """What stands on datasets without a name must not be taken for them: it loses its own."""
        unnamed, numbers = self.datasets, self.registry.numbering.numbers
        for dataset in (reference() for reference in self.registry.datasets):
            if dataset is None or not hasattr(dataset, "_inputs"):
                continue
            if any(source in unnamed for source in dataset._inputs()):
                unnamed.add(dataset)
                numbers.pop(dataset, None)
