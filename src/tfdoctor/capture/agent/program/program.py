"""program.json.gz: what the run built, written once."""

from __future__ import annotations

import gzip
import hashlib
import sys

from ..process.all_threads import collector
from ..process.budget import CaptureBudget
from ..process.journal import quietly, replace
from ..process.kept import io, json, os, time
from ..process.objects import alive
from . import datasets, graphs, settings
from .devices import STARTED
from .layers import Layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from ..process.declared import Graph, TfDataset
    from .registry import Registry

    R = TypeVar("R")

SCHEMA = 1

# Without it the script has no TensorFlow; importing one at its end would be a crash of ours.
CONTEXT = "tensorflow.python.eager.context"
DIGITS = 8  # Of the hash of a line; `tfdoctor.recording.program` has the same
MOST_LINES = 10_000  # Lines of a file beyond which it is generated code: no finding is looked for in it by its text

GRAPHS = "graphs"
# Why graphs are left out.
TOO_MANY = (
    "{} of {} graphs, earlier ones of functions that were traced again, were not recorded, because that would have "
    "cost over 10 % of the run"
)

# What the user gave to fit, by the class of Keras's adapter for it.
INPUTS = {
    "TFDatasetAdapter": "tf.data",
    "ArrayDataAdapter": "arrays",
    "PyDatasetAdapter": "PyDataset",
    "GeneratorDataAdapter": "generator",
    "TorchDataLoaderAdapter": "torch",
    "GrainDatasetAdapter": "grain",
}


class ProgramFile:
    """Describes what is alive, and replaces the file; each part fails for itself."""

    def __init__(self, registry: Registry, *, traced: bool = True) -> None:
        self.registry = registry
        self.budget = CaptureBudget()
        self.traced = traced  # False: no trace has operations that are to be found in a graph
        self.described = False
        # What was alive when nothing was measured any more:
        self.kept: dict[str, object] | None = None
        self.python: Callable[[], object] = dict  # describes where Python was between the calls
        self.before: list[Callable[[], object]] = []  # called before the description

    def _wanted(self) -> bool:
        return not self.registry.written and self.registry.log.ours() and CONTEXT in sys.modules

    def describe(self, *, last: bool) -> None:
        """Write the program as it is now: after each window that is kept."""
        if self._wanted():
            self.described = True
            self.registry.written = last
            self._spend(self._write, self.kept or self._spend(self._parts))

    def keep(self) -> None:
        """Keep what is alive for the next description: the run may end before its profiler stops."""
        if self._wanted():
            self.kept = self._spend(self._parts)

    def end(self) -> None:
        """The run is over: describe it, unless its traced window was, while all of it was alive."""
        if not self.described:
            self.describe(last=True)

    def _spend(self, work: Callable[..., R], *given: object) -> R | None:
        """Return what some work on the program returns; None where it fails. The run pays for its time."""
        began = time.perf_counter()
        done = quietly("program", self.registry.log)(work)(*given)
        self.budget.described(time.perf_counter() - began)
        return done

    def _parts(self) -> dict[str, object]:
        for prepare in self.before:
            prepare()
        registry, part = self.registry, self._part
        layers, stages = Layers(registry.layers), alive(registry.datasets)
        feeds, numbering, made = registry.feeds(), registry.numbering, registry.made
        adapter = registry.fit.get("adapter")
        loop = "tf.data" if feeds is not None else None  # where there is no fit
        return {
            "schema": SCHEMA,
            "graphs": self._graphs(layers, stages) if self.traced else [],
            "layers": part("layers", layers.describe) or [],
            "metrics": part("metrics", lambda: _metrics(registry)) or [],
            "datasets": part("datasets", lambda: datasets.describe(stages, numbering, made)) or [],
            "feeds": next((number for number, stage in enumerate(stages) if stage is feeds), None),
            "input_kind": INPUTS.get(adapter, adapter) if adapter else loop,
            "run": part("settings", lambda: settings.describe(registry)) or {},
            "sequences": part("sequence lengths", lambda: registry.given.describe(feeds)) or [],
        }

    def _write(self, program: dict[str, Any] | None) -> None:
        if program is None:
            return
        program["python"] = self._part("stack samples", self.python) or {}
        program["sources"], program["lines"] = _sources(program)
        # In one piece: what writes to a file bit by bit is ten times slower, and training waits.
        text = json.dumps(program, separators=(",", ":"), default=str)
        replace(os.path.join(self.registry.log.out, "program.json.gz"), gzip.compress(text.encode("utf-8"), 4))

    def _graphs(self, layers: Layers, stages: Sequence[TfDataset]) -> list[dict[str, object]]:
        registry = self.registry
        of_data = self._part("dataset functions", lambda: datasets.graphs(stages)) or set()
        scopes = registry.scopes
        built = list(dict.fromkeys(alive(registry.graphs)))  # a session's is met with each fetch that trains
        layers.scopes = {path: name for known in scopes.values() for path, name in known.items()}

        def described(graph: Graph) -> dict[str, object]:
            of_graph = None if graph in registry.unseen else scopes.get(graph, {})
            return graphs.describe(graph, layers, of_data, of_graph)

        describe = quietly("program: graph", registry.log)(described)
        collector.stop()  # its passes over all that is described take longer than describing it
        try:
            entries = {graph: describe(graph) for graph in self._worth(built)}
        finally:
            collector.go_on()
        return [entry for entry in map(entries.get, built) if entry]  # in the order of their making

    def _worth(self, built: Sequence[Graph]) -> Iterator[Graph]:
        """Yield the newest graph of each name, then earlier ones, while there is time for them."""
        newest = {getattr(graph, "name", id(graph)): graph for graph in built}
        yield from newest.values()
        kept = set(map(id, newest.values()))
        earlier = [graph for graph in reversed(built) if id(graph) not in kept]
        until, log = time.perf_counter() + self.budget.left_s(), self.registry.log
        log.forgive(GRAPHS)
        for left_out, graph in enumerate(earlier):
            if time.perf_counter() >= until:
                log.missing(GRAPHS, TOO_MANY.format(len(earlier) - left_out, len(built)))
                return
            yield graph

    def _part(self, name: str, describe: Callable[[], R]) -> R | None:
        """Return what a part says, or None: the rest of the program is still worth having."""
        return quietly(f"program: {name}", self.registry.log)(describe)()


def _metrics(registry: Registry) -> list[dict[str, object]]:
    alive = ((reference(), line) for reference, line in registry.metrics)
    return [
        {"name": metric.name, "classes": [kind.__name__ for kind in type(metric).__mro__], "at": line}
        for metric, line in alive
        if metric is not None
    ]


def _sources(program: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the hash of every user file that a line points into, but for those changed since it ran.

    The second are the hashes of its lines, `DIGITS` digits each: by these a finding is known again in a file that
    was renamed.
    """
    named = {entry["at"][0] for entry in _located(program) if entry.get("at")}
    hashes, lines = {}, {}
    for path in sorted(named):
        if os.path.isfile(path) and os.path.getmtime(path) <= STARTED:
            with io.open(path, "rb") as file:
                data = file.read()
            hashes[path] = hashlib.sha256(data).hexdigest()
            if data.count(b"\n") < MOST_LINES:
                digests = (hashlib.sha256(line.strip()).hexdigest() for line in data.splitlines())
                lines[path] = "".join(digest[:DIGITS] for digest in digests)
    return hashes, lines


def _located(program: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("fit_at", "batches_at", "strategy_at", "intra_op_at"):
        yield {"at": program["run"].get(name)}
    for graph in program["graphs"]:
        yield from graph["operations"]
    yield from program["layers"]
    yield from program["metrics"]
    for dataset in program["datasets"]:
        yield dataset
        yield dataset["function"] or {}
    yield from program["python"].get("places", ())  # all that an eager loop has
