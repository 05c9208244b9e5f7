"""The file formats of reports. A module here is one: its name is the format's, its ``render`` the renderer.

Nothing is registered by hand: a new module is a new value of ``--format`` and writes ``report.<its name>``.
Importing this package is cheap: plotly and Jinja load when a report is rendered.
"""

from importlib import import_module
from pkgutil import iter_modules

from tfdoctor.diagnosis import Diagnosis

FORMATS = tuple(sorted(module.name for module in iter_modules(__path__)))


def render(file_format: str, diagnosis: Diagnosis) -> str:
    """Return the whole text of a file in one of ``FORMATS``."""
    text: str = import_module(f"{__name__}.{file_format}").render(diagnosis)
    return text
