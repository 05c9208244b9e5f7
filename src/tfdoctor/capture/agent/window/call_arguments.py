"""What the function that trains is given, noted at two calls: just before the window, or else in it."""

from __future__ import annotations

import itertools
import sys
import weakref

from ..process.journal import guarded
from ..process.stack import user_file, user_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import CodeType
    from typing import Any

    from ..process.declared import Foreign, Graph
    from ..process.journal import Journal
    from .steps import StepCounter


MOST_LEAVES = 64  # Arrays of a nested structure to look at: one of thousands would take longer than the call
DEEPEST = 4  # Levels of a nested structure to look into
COMPARED = 4096  # Elements of an array that are compared, evenly spread: 10 to 20 microseconds, however large it is


class CallArguments:
    """The arguments of the tf.function that trains."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.wanted = False
        self.prepared: StepCounter | None = None  # whose window may open next
        self.source: StepCounter | None = None  # whose calls are of interest
        self._forget()

    def _forget(self) -> None:
        self.code: CodeType | None = None  # of the user's function that calls
        # The first of the two calls: its line, and the function's name in the trace, "" where Keras calls it.
        self.call: dict[str, Any] | None = None
        self.begun = False  # a window has opened at a step
        self.session = False  # the call is one of Session.run
        # References to the arrays, with some of their values, until the second call:
        self.first: Sequence[tuple[Callable[[], object], bytes | None]] | None = None

    @property
    def noted(self) -> dict[str, Any] | None:
        """The first call of a function, where it was followed by a window."""
        return self.call if self.begun and not self.session else None

    @property
    def feeds(self) -> dict[str, Any] | None:
        """The first call of Session.run, where it was followed by a window."""
        return self.call if self.begun and self.session else None

    def prepare(self, source: StepCounter) -> None:
        """A window of this source may open two calls later: these are of interest."""
        self._forget()
        self.prepared, self.wanted = source, True
        self.source = source

    def begin(self, source: StepCounter) -> None:
        """A window opens: its first two calls are of interest, unless those before it were noted."""
        if self.prepared is not source:
            self.prepare(source)
        self.prepared, self.begun = None, True

    @guarded("arguments")
    def note(self, args: Sequence[object], kwargs: Mapping[str, object], function: object = None) -> None:
        """Note what a call is given, and at the second call whether those are new objects and values."""
        named = [*enumerate(args), *kwargs.items()]
        found = (each for place, value in named for each in _arrays(value, str(place)))
        given = list(itertools.islice(found, MOST_LEAVES))
        values = [(_reference(value), _values(value)) for _, value in given]
        if self.first is None:
            self.first, frame = values, user_frame(sys._getframe(1))
            if frame is not None:
                self.code = frame.f_code
                self.call = {
                    "at": (user_file(frame.f_code.co_filename), frame.f_lineno),
                    "function": str(getattr(function, "_name", "")),
                    "arguments": [_described(place, value) for place, value in given],
                }
            return
        self.wanted = False
        if self.call is not None and len(values) == len(self.first):
            for argument, before, now in zip(self.call["arguments"], self.first, values):  # noqa: B905
                argument["anew"] = now[0]() is not before[0]()  # another object
                if now[1] is not None:
                    argument["same"] = now[1] == before[1]  # the values, as far as they are compared
        self.first = None

    @guarded("arguments")
    def note_feeds(self, graph: Graph, feeds: Mapping[object, object]) -> None:
        """Note what a call of Session.run is fed: arrays by the name of their placeholder, and what is no array."""
        placeholders: list[tuple[Foreign, object]] = [
            (graph.as_graph_element(key), value)
            for key, value in feeds.items()
            if isinstance(key, str) or hasattr(key, "value_index")  # else a structure of tensors
        ]
        self.session = True
        self.note((), {tensor.op.name: value for tensor, value in placeholders})
        if self.call is not None and self.first is not None:
            types = {tensor.op.name: tensor.dtype.name for tensor, _ in placeholders}
            for argument in self.call["arguments"]:
                argument["fed_as"] = types.get(argument["place"], "")
            self.call["arguments"] += [
                {"place": tensor.op.name, "kind": "python"}
                for tensor, value in placeholders
                if isinstance(value, (list, tuple))
            ]


def _arrays(value: object, place: str, depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the arrays of a nested structure, in TensorFlow's order: a dictionary's by its sorted keys."""
    if hasattr(value, "dtype") or _package(value) == "pandas":
        if len(getattr(value, "shape", ())) > 0:
            yield place, value
    elif depth < DEEPEST and isinstance(value, (list, tuple, dict)) and len(value) <= MOST_LEAVES:
        keys = sorted(value, key=str) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from _arrays(value[key], f"{place}.{key}", depth + 1)


def _reference(value: object) -> Callable[[], object]:
    """Return what finds an array again, and does not keep it alive where that is possible."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _values(value: Foreign) -> bytes | None:
    """Return some of the values that the host holds, to be compared; None of a tensor's."""
    if _package(value) == "pandas":
        value = value.values
    if _package(value) != "numpy":
        return None
    step = -(-value.size // COMPARED) or 1
    some: bytes = value.flat[::step].tobytes()
    return some


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _described(place: str, value: Foreign) -> dict[str, Any]:
    """Return what is noted of an array; its place is "0", "mask", or "0.1": the second part of the first one."""
    package = _package(value)
    kind = package if package in {"numpy", "pandas"} else "tensor"
    dtype = value.dtype if hasattr(value, "dtype") else value.values.dtype
    shape = [int(n) for n in value.shape]
    return {"place": place, "kind": kind, "dtype": str(dtype), "shape": shape}
