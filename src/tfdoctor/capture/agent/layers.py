"""The Keras layers of the run, and which of them an operation belongs to."""

import math

LONGEST = 16
"""Longer lists in a layer's config are data (vocabularies), not settings."""


class Layers:
    """All live layers, found again by the name scopes of operations."""

    def __init__(self, found):
        self.entries = [
            (layer, line) for layer, line in ((ref(), at) for ref, at in found) if layer
        ]
        self.paths, self.names = {}, set()
        self.scopes = {}  # those of all graphs: the gradients of a loop have a graph of their own
        for layer, _ in self.entries:
            name = str(getattr(layer, "name", ""))
            self.names.add(name)
            self.paths.setdefault(str(getattr(layer, "path", None) or name), name)

    def owner(self, scopes):
        """Return what finds the layer of an operation by name, in a graph with these scopes."""
        known = {}

        def of(operation):
            scope = operation.rpartition("/")[0]
            if scope not in known:
                known[scope] = self._search(scope.split("/"), scopes)
            return known[scope]

        return of

    def _search(self, segments, scopes):
        """Return the innermost layer on a path of scopes: as noted while tracing, else by name."""
        for prefix in ("gradient_tape", "gradients"):  # the latter in the bodies of while loops
            while prefix in segments:
                segments = segments[segments.index(prefix) + 1 :]
        for end in range(len(segments), 0, -1):
            path = "/".join(segments[:end])
            found = scopes.get(path) or self.scopes.get(path) or self.paths.get(path)
            if found:
                return found
        return next((name for name in reversed(segments) if name in self.names), None)

    def describe(self):
        """Return what is worth knowing of each layer."""
        return [_layer(layer, line) for layer, line in self.entries]


def _layer(layer, line):
    policy = getattr(layer, "dtype_policy", None)
    return {
        "name": layer.name,
        "class": type(layer).__name__,
        "module": type(layer).__module__,
        "path": getattr(layer, "path", None),
        "config": _config(layer),
        "policy": getattr(policy, "name", None),
        "compute_dtype": getattr(layer, "compute_dtype", None),
        "variable_dtype": getattr(layer, "variable_dtype", None),
        "weights": [_weight(weight) for weight in getattr(layer, "_trainable_variables", [])],
        "at": line,
    }


def _weight(weight):
    return {
        "name": weight.name,
        "shape": list(weight.shape) if weight.shape is not None else None,
        "dtype": str(weight.dtype),
    }


def _config(layer):
    """Return the simple values of a layer's config; models say nothing that their layers do not."""
    if hasattr(layer, "layers"):
        return {}
    try:
        config = layer.get_config()
    except Exception:  # many users' layers have none, and Keras says so with various errors
        return {}
    return {key: value for key, value in config.items() if _simple(value)}


def _simple(value):
    if isinstance(value, (list, tuple)):
        return len(value) <= LONGEST and all(_simple(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))
