"""program.json.gz: what the run built, written once."""

import gzip
import hashlib
import json
import os

from . import graphs, settings
from .datasets import Datasets
from .layers import Layers

SCHEMA = 1

INPUTS = {
    "TFDatasetAdapter": "tf.data",
    "ArrayDataAdapter": "arrays",
    "PyDatasetAdapter": "PyDataset",
    "GeneratorDataAdapter": "generator",
    "TorchDataLoaderAdapter": "torch",
    "GrainDatasetAdapter": "grain",
}
"""What the user gave to fit, by the class of Keras's adapter for it."""


def write(registry, window):
    """Describe what is alive and replace the file; each part fails for itself."""
    part = Parts(registry.log)
    layers = part("layers", lambda: Layers(registry.layers)) or Layers([])
    datasets = part("datasets", lambda: Datasets(registry))
    of_data = part("dataset functions", datasets.graphs) or set()
    adapter = registry.fit.get("adapter")
    program = {
        "schema": SCHEMA,
        "graphs": [
            graph
            for reference in registry.graphs
            if (graph := part("graph", lambda: graphs.describe(reference, layers, of_data, registry.scopes)))
        ],
        "layers": part("layers", layers.describe) or [],
        "datasets": part("datasets", datasets.describe) or [],
        "feeds": part("feeds", lambda: datasets.id_of(registry.feeds())),
        "input_kind": INPUTS.get(adapter, adapter) if adapter else _loop_kind(registry),
        "run": part("settings", lambda: settings.describe(registry, window)) or {},
    }
    program["sources"] = _sources(program)
    _replace(os.path.join(registry.log.out, "program.json.gz"), program)


class Parts:
    """Runs the parts of the description, and records those that fail."""

    def __init__(self, log):
        self.log = log

    def __call__(self, name, describe):
        """Return what the part says, or None."""
        try:
            return describe()
        except Exception as error:  # the rest of the program is still worth having
            self.log.error(f"program: {name}", error)
            return None


def _loop_kind(registry):
    return "tf.data" if registry.feeds() is not None else None


def _sources(program):
    """Return the hash of every user file that a line points into."""
    named = {entry["at"][0] for entry in _located(program) if entry.get("at")}
    found = {}
    for path in sorted(named):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def _located(program):
    for graph in program["graphs"]:
        yield from graph["operations"]
    yield from program["layers"]
    for dataset in program["datasets"]:
        yield dataset
        yield dataset["function"] or {}


def _replace(path, program):
    temporary = path + ".tmp"
    with gzip.open(temporary, "wt", encoding="utf-8", compresslevel=6) as file:
        json.dump(program, file, separators=(",", ":"), default=str)
    os.replace(temporary, path)


