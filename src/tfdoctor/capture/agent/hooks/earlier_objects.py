"""What a process had built before recording began, as far as the recording has to do with it.

`tfdoctor profile` sees everything being made. `tfdoctor.record` comes later: what a layer, a dataset or a
traced function is can still be read off it, but not which line made it, nor its name in traces. That stays
unknown. Of functions and layers only those in use are described, for others may have the same names.
"""

from __future__ import annotations

import functools
import sys
import weakref

from ..process import by_identity
from ..process.frames import hide
from ..process.journal import guarded
from ..process.live_objects import alive
from ..process.marks import LOOPS, TRAINS
from ..program import traced_graphs
from ..program.registry import DATASETS, LAYERS
from .tf_hooks import FUNCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..installed import Installed
    from ..process.declared import Foreign, FunctionClass, TfDataset
    from ..process.marks import Marks
    from ..program.layers import Entry


class Earlier:
    """What there was when a recording began."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.log = installed, installed.log
        self.registry = installed.registry
        self.layers: list[Entry] = []
        # Functions that train and were not called yet: a reference and their marks, by id.
        self.waiting: dict[int, tuple[weakref.ref[object], Marks]] = {}

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
        if self.waiting:
            _watch_calls(sys.modules[FUNCTIONS].Function, self)

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

    @guarded("call")
    def noted(self, function: object) -> None:
        """A tf.function is being called: as if this call had traced it."""
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


def _watch_calls(kind: FunctionClass, earlier: Earlier) -> None:
    """Note which tf.functions are called, until all those that matter were."""
    original = kind._call
    if getattr(original, "_tfdoctor", False):
        return

    @functools.wraps(original)
    def _call(self: object, *args: object, **kwargs: object) -> object:
        if earlier.waiting:
            earlier.noted(self)
        return original(self, *args, **kwargs)

    own: Foreign = hide(_call)
    own._tfdoctor = True
    kind._call = own
