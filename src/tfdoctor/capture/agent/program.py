"""program.json.gz: what the run built, written once."""

import gzip
import hashlib
import json
import os
import time

from . import graphs, settings
from .datasets import Datasets
from .layers import Layers

SCHEMA = 1

STARTED = time.time()
"""When TensorFlow was imported at the latest: a file written later may not be what Python has read."""

INPUTS = {
    "TFDatasetAdapter": "tf.data",
    "ArrayDataAdapter": "arrays",
    "PyDatasetAdapter": "PyDataset",
    "GeneratorDataAdapter": "generator",
    "TorchDataLoaderAdapter": "torch",
    "GrainDatasetAdapter": "grain",
}
"""What the user gave to fit, by the class of Keras's adapter for it."""


def write(registry):
    """Describe what is alive and replace the file; each part fails for itself."""
    part = Parts(registry.log)
    layers = Layers(registry.layers)
    datasets = Datasets(registry)
    adapter = registry.fit.get("adapter")
    program = {
        "schema": SCHEMA,
        "graphs": _graphs(registry, part, layers, datasets),
        "layers": part("layers", layers.describe) or [],
        "datasets": part("datasets", datasets.describe) or [],
        "feeds": part("feeds", datasets.id_of, registry.feeds()),
        "input_kind": INPUTS.get(adapter, adapter) if adapter else _loop_kind(registry),
        "run": part("settings", settings.describe, registry) or {},
        "python": part("whereabouts", registry.python) or {},
    }
    program["sources"] = _sources(program)
    _replace(os.path.join(registry.log.out, "program.json.gz"), program)


def _graphs(registry, part, layers, datasets):
    of_data = part("dataset functions", datasets.graphs) or set()
    layers.scopes = {
        name: layer for known in registry.scopes.values() for name, layer in known.items()
    }
    found = []
    for graph in (reference() for reference in registry.graphs):
        if graph is not None:
            scopes = registry.scopes.get(graph, {})
            found.append(part("graph", graphs.describe, graph, layers, of_data, scopes))
    return [graph for graph in found if graph]


class Parts:
    """Runs the parts of the description, and records those that fail."""

    def __init__(self, log):
        self.log = log

    def __call__(self, name, describe, *arguments):
        """Return what the part says, or None."""
        try:
            return describe(*arguments)
        except Exception as error:  # the rest of the program is still worth having
            self.log.fault(f"program: {name}", error)
            return None


def _loop_kind(registry):
    return "tf.data" if registry.feeds() is not None else None


def _sources(program):
    """Return the hash of every user file that a line points into, but for those changed since it ran."""
    named = {entry["at"][0] for entry in _located(program) if entry.get("at")}
    found = {}
    for path in sorted(named):
        if os.path.isfile(path) and os.path.getmtime(path) <= STARTED:
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def _located(program):
    yield {"at": program["run"].get("fit_at")}
    for graph in program["graphs"]:
        yield from graph["operations"]
    yield from program["layers"]
    for dataset in program["datasets"]:
        yield dataset
        yield dataset["function"] or {}


def _replace(path, program):
    temporary = path + ".tmp"
    # In one piece: what writes to a file bit by bit is ten times slower, and training waits.
    text = json.dumps(program, separators=(",", ":"), default=str)
    with gzip.open(temporary, "wb", compresslevel=4) as file:
        file.write(text.encode("utf-8"))
    os.replace(temporary, path)
