"""What slows a TensorFlow training run, on which line, and what changing it saves."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` may be another one, see own_python
    from typing import Any

__version__ = "0.2.0"

# What is for use from Python, and where it is; the last is called by `%load_ext tfdoctor`.
_API = {
    "Recorder": "tfdoctor.api.recorder",
    "Run": "tfdoctor.api.run",
    "record": "tfdoctor.api.run",
    "load_ipython_extension": "tfdoctor.api.magic",
}


def __getattr__(name: str) -> "Any":  # noqa: ANN401  # a class or a function
    """Load what is for use from Python when it is first asked for: the command line needs none of it."""
    if name in _API:
        return getattr(importlib.import_module(_API[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
