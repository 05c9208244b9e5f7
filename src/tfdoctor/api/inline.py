"""The report in a notebook's cell, and the notebook's cells in the report."""

import importlib
import sys
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis import Diagnosis

PACKAGE = Path(__file__).parent.parent

CELL = "In ["
"""How a cell is called: "In [3]", and a line in it "In [3]:12"."""

HEIGHT_PX = 720
"""A page is longer: it scrolls inside its frame, which can be dragged to another height."""

FRAME = (
    '<iframe title="tfdoctor" sandbox="allow-scripts" srcdoc="{page}" '
    'style="width: 100%; height: {height}px; border: 0; resize: vertical"></iframe>'
)
"""A page of its own: neither its style nor its scripts touch the notebook, and it needs no file that a
remote browser could not open."""


def frame(diagnosis: Diagnosis) -> str:
    """Return the whole report as one element."""
    from tfdoctor.report import html  # noqa: PLC0415 - brings Jinja and plotly

    page = html.render(diagnosis).replace("&", "&amp;").replace('"', "&quot;")
    return FRAME.format(page=page, height=HEIGHT_PX)


def notebook() -> bool:
    """Say whether a notebook runs this, in Jupyter or Colab."""
    return hasattr(_shell(), "kernel")


def display(thing: object) -> bool:
    """Show something in the cell that is running; say whether there was one."""
    if not notebook():
        return False
    importlib.import_module("IPython.display").display(thing)
    return True


def places() -> dict[str, str | None]:
    """Return what to call source files: a notebook's cells by their numbers; tfdoctor's own not at all."""
    found: dict[str, str | None] = {str(path): None for path in PACKAGE.rglob("*.py")}
    cells = getattr(getattr(_shell(), "compile", None), "_filename_map", {})
    return found | {name: f"{CELL}{number}]" for name, number in cells.items()}


def _shell() -> Any:  # noqa: ANN401  # IPython's
    """Return IPython, if it runs this."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None
