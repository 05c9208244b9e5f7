"""Which part of Keras made an operation that no layer owns: a metric, a loss, an optimizer, a regularizer."""

from __future__ import annotations

import re
from functools import cache

from ..process.kept import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..process.declared import TracedFrame

    Origin = tuple[str, str]  # the kind of the part, and its class or function

# Where Keras 2 and 3 and tf_keras keep these parts; single files in old versions.
PART = re.compile(r"keras[\\/](?:src[\\/])?(metrics|losses|optimizers|regularizers)[\\/]?")

KINDS = {"metrics": "metric", "losses": "loss", "optimizers": "optimizer", "regularizers": "regularizer"}

# Files of the classes that all parts of a kind share: they do not say which one it is.
SHARED = re.compile(r"[\\/](metric|base_metric|reduction_metrics|loss|base_optimizer|optimizer)\.py$")
CLIPPING = re.compile(r"clip", re.IGNORECASE)  # In the names of the optimizers' functions that clip gradients
DEFINED = re.compile(r"(?:class|def) (\w+)")  # A definition of a module
# Classes that call a function, which says what it is.
WRAPPERS = frozenset({"LossFunctionWrapper", "MeanMetricWrapper"})

_names: dict[tuple[str, int], str] = {}


@cache
def _part(file: str) -> str:
    """Return which part of Keras a file is of, "" of none."""
    match = PART.search(file)
    return match[1] if match else ""


def origin(frames: Sequence[TracedFrame]) -> Origin | None:
    """Return which part of Keras frames lead into, the user's excluded and the innermost last; None if none."""
    parts = [(part, frame) for frame in frames if (part := _part(frame.filename))]
    if not parts:
        return None
    kind = parts[0][0]
    own = [frame for part, frame in parts if part == kind]
    if kind == "optimizers" and any(CLIPPING.search(frame.name) for frame in own):
        return "gradient clipping", ""
    named = (_defined(frame) for frame in own if not SHARED.search(frame.filename))
    return KINDS[kind], next((name for name in named if name and name not in WRAPPERS), "")


def _defined(frame: TracedFrame) -> str:
    """Return the class or function of a module that holds a line, "" where its file cannot be read."""
    key = frame.filename, frame.lineno
    if key not in _names:
        try:
            with io.open(frame.filename, encoding="utf-8") as file:
                lines = [next(file, "") for _ in range(frame.lineno)]
        except OSError:
            lines = []
        found = (match[1] for line in reversed(lines) if (match := DEFINED.match(line)))
        _names[key] = next(found, "")
    return _names[key]
