"""The Keras layers of the run, and which of them an operation belongs to."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..process.declared import KerasLayer
    from ..process.stack import Line

    Scopes = Mapping[str, str]  # the layer's name of each name scope
    Entry = tuple[Callable[[], KerasLayer | None], Line | None]  # a weak reference, and the line


CUDNN_LAYERS = frozenset(("LSTM", "GRU"))  # Keras' classes that cuDNN computes where their arguments let it
# The arguments that decide whether it does: plain values, and functions, of which the name counts.
RECURRENT = ("recurrent_dropout", "unroll", "use_bias", "reset_after", "use_cudnn")
FUNCTIONS = ("activation", "recurrent_activation")


class Layers:
    """All live layers, found again by the name scopes of operations."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        alive = ((reference(), line) for reference, line in entries)
        self.entries = [(layer, line) for layer, line in alive if layer is not None]
        self.paths: dict[str, str] = {}
        self.names: set[str] = set()
        # Those of all graphs: the gradients of a loop have a graph of their own.
        self.scopes: Scopes = {}
        for layer, _ in self.entries:
            name = str(getattr(layer, "name", ""))
            self.names.add(name)
            self.paths.setdefault(str(getattr(layer, "path", None) or name), name)

    def owner(self, scopes: Scopes | None) -> Callable[[str], str | None]:
        """Return what finds the layer of an operation by name, in a graph with these scopes.

        None: the graph was traced unseen. Names alone may lead to another's layer, so that the answer is "".
        """
        known: dict[str, str | None] = {}

        def of(operation: str) -> str | None:
            scope = operation.rpartition("/")[0]
            if scope not in known:
                known[scope] = self._search(scope.split("/"), scopes)
            return known[scope]

        return of

    def _search(self, segments: list[str], scopes: Scopes | None) -> str | None:
        """Return the innermost layer on a path of scopes: as noted while tracing, else by name."""
        for prefix in ("gradient_tape", "gradients"):  # the latter in the bodies of while loops
            while prefix in segments:
                segments = segments[segments.index(prefix) + 1 :]
        if scopes is None and segments:
            return ""
        for end in range(len(segments), 0, -1):
            path = "/".join(segments[:end])
            name = (scopes or {}).get(path) or self.scopes.get(path) or self.paths.get(path)
            if name:
                return name
        return next((name for name in reversed(segments) if name in self.names), None)

    def describe(self) -> list[dict[str, object]]:
        """Return the name, class, type and line of each layer."""
        return [_layer(layer, line) for layer, line in self.entries]


def _layer(layer: KerasLayer, line: Line | None) -> dict[str, object]:
    kind, trainable, axis = type(layer), getattr(layer, "trainable", None), getattr(layer, "axis", None)
    return {
        "name": layer.name,
        "class": kind.__name__,
        "module": kind.__module__,
        "config": {"axis": axis if isinstance(axis, (int, list, tuple)) else None},
        "recurrent": _recurrent(layer),
        "masks": kind.__name__ == "Masking" or getattr(layer, "mask_zero", False) is True,
        "compute_dtype": getattr(layer, "compute_dtype", None),
        # As the script has set it:
        "trainable": trainable if isinstance(trainable, bool) else None,
        "at": line,
    }


def _recurrent(layer: KerasLayer) -> dict[str, object] | None:
    """Return the arguments that decide whether cuDNN computes a layer; None for other layers."""
    if not CUDNN_LAYERS & {base.__name__ for base in type(layer).__mro__}:
        return None
    given = {name: getattr(layer, name, None) for name in RECURRENT}
    plain = {name: value for name, value in given.items() if isinstance(value, (bool, int, float, str))}
    functions = ((name, getattr(layer, name, None)) for name in FUNCTIONS)
    return plain | {name: str(getattr(f, "__name__", type(f).__name__)) if f else None for name, f in functions}
