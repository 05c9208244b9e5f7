"""What slows a TensorFlow training run, on which line, and what changing it saves."""

import importlib
from typing import Any

__version__ = "0.1.0"

_API = ("Recorder", "Run", "record")


def __getattr__(name: str) -> Any:  # noqa: ANN401  # a class or a function
    """Load what is for use from Python when it is first asked for: the command line needs none of it."""
    if name in _API:
        return getattr(importlib.import_module("tfdoctor.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
