"""What of all that was built earlier turned out to be in use: the registry gets that, and no more."""

from __future__ import annotations

import collections
import weakref

from ..process.journal import guarded
from ..program import traced_graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import KerasLayer
    from ..program.layers import Entry
    from .earlier_objects import Earlier


class EarlierUse:
    """Completes the registry just before the program is written."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier, self.registry, self.log = earlier, earlier.registry, earlier.log

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
        called = (reference() for reference in self.earlier.called)
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
        self.earlier.layers = [entry for entry in self.earlier.layers if id(entry[0]()) not in gone]
        self.registry.layers += [entry for layer, entry in used if names[layer.name] == 1]

    def _used(self) -> list[tuple[KerasLayer, Entry]]:
        """Return the earlier layers that the model has, or that a graph names."""
        registry = self.registry
        model = registry.model()
        of_model = {id(layer) for layer in (model._flatten_layers() if model is not None else ())}
        graphs = (reference() for reference in registry.graphs)
        scopes = [registry.scopes.get(graph, {}) for graph in graphs if graph is not None]
        named = {name for of_graph in scopes for name in of_graph.values()}
        alive = ((entry[0](), entry) for entry in self.earlier.layers)
        return [
            (layer, entry)
            for layer, entry in alive
            if layer is not None and (id(layer) in of_model or layer.name in named)
        ]

    @guarded("names of datasets")
    def _unname(self) -> None:
        """What stands on datasets without a name must not be taken for them: it loses its own."""
        unnamed, numbers = self.earlier.datasets, self.registry.numbering.numbers
        for dataset in (reference() for reference in self.registry.datasets):
            if dataset is None or not hasattr(dataset, "_inputs"):
                continue
            if any(source in unnamed for source in dataset._inputs()):
                unnamed.add(dataset)
                numbers.pop(dataset, None)
