"""The file formats of reports. A module here is one: its name is the format's, its ``render`` the renderer.

Nothing is registered by hand: a new module is a new value of ``--format`` and writes ``report.<its name>``, or
``report.<its SUFFIX>``. Those of ``PRINTED`` are printed instead of written.
Importing this package is cheap: Jinja loads when a report is rendered.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from tfdoctor.diagnosis import Diagnosis

FORMATS = tuple(sorted(module.name for module in iter_modules(__path__)))

COMMANDS = "github"  # The format whose lines a runner is to obey
# Formats that a program reads from the output of the command. They are named here, because a command line is
# checked before anything that renders is imported.
PRINTED = frozenset({COMMANDS, "llm"})


def render(file_format: str, diagnosis: Diagnosis) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    text: str = _module(file_format).render(diagnosis)
    return text


def prepare(file_formats: Iterable[str]) -> None:
    """Import what renders these formats, and let them do what needs no diagnosis."""
    for name in file_formats:
        begin: Callable[[], object] = getattr(_module(name), "prepare", lambda: None)
        begin()


def suffix(file_format: str) -> str:
    """Return how the name of a file in one of ``FORMATS`` ends."""
    return str(getattr(_module(file_format), "SUFFIX", file_format))


def _module(file_format: str) -> ModuleType:
    return import_module(f"{__name__}.{file_format}")
