"""Recording a part of a process: from here to there, and perhaps again later.

`tfdoctor profile` sees everything being made. `tfdoctor.record` comes later: what a layer, a dataset or a
traced function is can still be read off it, but not which line made it, nor its name in traces. That stays
unknown. Of functions and layers only those in use are described, for others may have the same names.
"""

from __future__ import annotations

import collections
import sys
import weakref

from .. import install
from ..entry_points import DATASETS, FUNCTIONS, LAYERS
from ..process import journal, stack
from ..process.journal import guarded
from ..process.kept import gc
from ..process.objects import LOOPS, TRAINS, alive, concrete, keep, living, marks_of, with_inner
from ..run.whole import Forks
from ..stream import watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType

    from ..installed import Installed
    from ..process.declared import AgentPlan, Foreign, KerasLayer, TfDataset
    from ..process.objects import Marks, Notes
    from ..program.layers import Entry
    from ..stream import Args, Held, Kwargs


class Block:
    """The recordings of parts of this process: the one under way, and those that will follow it."""

    def __init__(self, plan: AgentPlan) -> None:
        self.log = journal.Journal(processes=plan["processes"])
        self.installed = install({**plan, "out": self.log.out}, self.log)
        Forks(self.installed.recorder).watch()
        self.earlier = Earlier(self.installed)
        self.installed.program.before.append(self.earlier.complete)

    def begin(self, places: Mapping[str, str | None]) -> None:
        """Begin to record; `places` are names for source files: a notebook's cells, or None for others'."""
        stack.name_files(places)
        self._forget_fits()
        self.earlier.begin()
        self.installed.recorder.begin()

    @guarded("join")
    def join(self, model: object, frame: FrameType) -> None:
        """Take part in the fit of this model that is running at the frame, from its next step on."""
        for trainers in self.installed.trainers:
            trainers.join(model, frame)

    def end(self, reason: str, what: str, error: BaseException | None = None) -> None:
        """End the recording; `what` is what was recorded, a block or a fit, and `error` what it raised."""
        self.installed.recorder.end(error)  # first: the rest is our own work
        window = self.installed.window
        window.close(reason)
        lacking = {entry["what"] for entry in self.log.lacking}
        if window.wanted and window.kept is None and "trace" not in lacking:
            self.log.missing("trace", self._why_no_trace(what))
        self._note_missing_lines(what)
        self.installed.end()
        self._forget_fits()
        self.installed.registry.held = None
        self.earlier.waiting.clear()

    def _forget_fits(self) -> None:
        """A fit that is running is known from its next step on, and to one recording only."""
        for trainers in self.installed.trainers:
            trainers.fit = None

    @guarded("lines")
    def _note_missing_lines(self, what: str) -> None:
        """Note which parts of a trace have no lines, since they were there before."""
        self.installed.program.end()
        parts = self.earlier.without_lines() if self.installed.window.kept is not None else []
        if parts:
            were = "was" if len(parts) == 1 else "were"
            why = f"{' and '.join(parts)} {were} made before the {what}"
            self.log.missing("lines", f"{why}: move this code inside the {what} to see its lines")

    def _why_no_trace(self, what: str) -> str:
        """Return why nothing was traced, and what to do about it."""
        if "tensorflow" not in sys.modules:
            return f"TensorFlow was not imported by the end of the {what}: if other code trains, record that"
        window = self.installed.window
        seen = max((source.seen for source in window.sources.values()), default=0)
        if not seen:
            return (
                f"no training step was seen in the {what}, neither of Model.fit nor of a loop that computes "
                "gradients or runs a session: if other code trains, record that, or trace by time with "
                "record(seconds=2)"
            )
        warmup = window.plan["warmup"]
        if seen == 1:
            return f"the {what} ended after 1 step, during warm-up ({warmup}): train longer"
        advice = f"record with warmup={min(seen // 2, max(0, warmup - 1))}"
        return f"the {what} ended after {seen} steps, during warm-up ({warmup}): {advice}"


def begin(plan: AgentPlan, places: Mapping[str, str | None], block: Block | None = None) -> Block:
    """Begin a recording and return what ends it; `block` is that of the one before in this process."""
    if block is None:
        block = Block(plan)
    else:
        block.installed.again(plan)
    block.begin(places)
    return block


class Earlier:
    """What there was when a recording began."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.log = installed, installed.log
        self.registry = installed.registry
        self.layers: list[Entry] = []
        self.waiting: Notes[Marks] = {}  # the marks of functions that train and were not called yet
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
        gc.collect()  # models of an earlier cell are in cycles, and share their names with their successors
        things = living([(FUNCTIONS, "Function"), (DATASETS, "DatasetV2"), *((name, "Layer") for name in LAYERS)])
        self.registry.numbering.settled = False
        known = {id(reference()) for reference, _ in self.layers}
        layers = (layer for name in LAYERS for layer in things.get(name, ()) if id(layer) not in known)
        self.layers += [(weakref.ref(layer), None) for layer in layers]
        self._adopt(things.get(DATASETS, ()))
        memory: dict[int, Marks] = {}
        for function in things.get(FUNCTIONS, ()):
            self._function(function, memory)
        if self.waiting and not self.watches:
            self.watches = True
            kind = sys.modules[FUNCTIONS].Function
            kind._call = watched(self.log, kind._call, "_call", self.noted)

    def _adopt(self, datasets: Iterable[TfDataset]) -> None:
        """Adopt datasets; those that were not seen being made have neither a line nor a name."""
        registry = self.registry
        for dataset in datasets:
            if dataset not in registry.made:
                registry.datasets.append(weakref.ref(dataset))
                registry.made[dataset] = None, "", ()
            if dataset not in registry.numbering.numbers:
                self.datasets.add(dataset)

    @guarded("earlier function")
    def _function(self, function: Foreign, memory: dict[int, Marks]) -> None:
        marks: Marks = {}
        graph_marks = self.installed.window.graph_marks
        for traced in concrete(function):
            of_graph = marks_of(traced.graph, memory)
            if TRAINS in of_graph:
                marks.update(of_graph)
                known = graph_marks.get(id(traced.graph), {})
                keep(graph_marks, traced.graph, {**known, **of_graph})
        if marks:
            keep(self.waiting, function, marks)

    def noted(self, _: Held, args: Args, __: Kwargs, ___: object) -> None:
        """A tf.function is being called: as if this call had traced it."""
        marks = self.waiting.pop(id(args[0]), None)
        if marks is None:
            return
        self.called.append(weakref.ref(args[0]))
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
        for traced in (each for function in alive(self.called) for each in concrete(function)):
            for graph in with_inner(traced.graph):
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
        names.update(layer.name for layer in alive(reference for reference, _ in self.registry.layers))
        gone = {id(layer) for layer, _ in used} | {id(None)}
        self.layers = [entry for entry in self.layers if id(entry[0]()) not in gone]
        self.registry.layers += [entry for layer, entry in used if names[layer.name] == 1]

    def _used(self) -> list[tuple[KerasLayer, Entry]]:
        registry = self.registry
        model = registry.model()
        of_model = {id(layer) for layer in (model._flatten_layers() if model is not None else ())}
        scopes = [registry.scopes.get(graph, {}) for graph in alive(registry.graphs)]
        named = {name for of_graph in scopes for name in of_graph.values()}
        return [
            (layer, entry)
            for layer, entry in ((entry[0](), entry) for entry in self.layers)
            if layer is not None and (id(layer) in of_model or layer.name in named)
        ]

    @guarded("names of datasets")
    def _unname(self) -> None:
        """What stands on datasets without a name must not be taken for them: it loses its own."""
        unnamed, numbers = self.datasets, self.registry.numbering.numbers
        for dataset in alive(self.registry.datasets):
            if any(source in unnamed for source in getattr(dataset, "_inputs", list)()):
                unnamed.add(dataset)
                numbers.pop(dataset, None)
