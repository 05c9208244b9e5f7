"""Reports in notebook cells, and the names of notebook cells in reports."""

import importlib
import sys
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis import Diagnosis

PACKAGE = Path(__file__).parent.parent

CELL = "In ["
"""Start of the name of a cell: "In [3]", a line in it is "In [3]:12"."""

HEIGHT_PX = 720
"""The page scrolls inside its frame, whose height the user can change."""

FRAME = (
    '<iframe title="tfdoctor" sandbox="allow-scripts" srcdoc="{page}" '
    'style="width: 100%; height: {height}px; border: 0; resize: vertical"></iframe>'
)
"""A separate page: its style and scripts cannot affect the notebook, and a remote browser needs no file."""


def frame(diagnosis: Diagnosis) -> str:
    """Return the whole report as one element."""
    from tfdoctor.report.formats import html  # noqa: PLC0415 - brings Jinja and plotly

    page = html.render(diagnosis).replace("&", "&amp;").replace('"', "&quot;")
    return FRAME.format(page=page, height=HEIGHT_PX)


def notebook() -> bool:
    """Say whether this runs in a notebook (Jupyter, Colab)."""
    return hasattr(_shell(), "kernel")


def display(thing: object) -> bool:
    """Show an object in the running cell; say whether there is one."""
    if not notebook():
        return False
    importlib.import_module("IPython.display").display(thing)
    return True


def places() -> dict[str, str | None]:
    """Return the names of source files: those of notebook cells, and None for tfdoctor's own."""
    places: dict[str, str | None] = {str(path): None for path in PACKAGE.rglob("*.py")}
    return places | {name: f"{CELL}{number}]" for name, number in _cells(_shell()).items()}


def _cells(shell: Any) -> dict[str, int]:  # noqa: ANN401  # IPython's
    """Return the numbers of the cells by the names of their code."""
    compiler = getattr(shell, "compile", None)
    known: dict[str, int] | None = getattr(compiler, "_filename_map", None)
    if known is not None or compiler is None:
        return known or {}
    history = shell.history_manager  # IPython 7, which Colab has, keeps no such table
    cells = enumerate(zip(history.input_hist_raw, history.input_hist_parsed, strict=True))
    return {compiler.get_code_name(raw, code, number): number for number, (raw, code) in cells}


def _shell() -> Any:  # noqa: ANN401  # IPython's
    """Return the IPython shell that runs this; None without one."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None
