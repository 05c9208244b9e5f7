"""Reports in notebook cells, and the names of notebook cells in reports."""

import importlib
import sys
from html import escape
from pathlib import Path
from typing import Any

from tfdoctor.diagnosis import Diagnosis

PACKAGE = Path(__file__).parent.parent

CELL = "In ["  # Start of the name of a cell: "In [3]", a line in it is "In [3]:12"
HEIGHT_PX = 720  # The page scrolls inside its frame, whose height the user can change

FRAME = (
    '<iframe title="tfdoctor" sandbox="allow-scripts" style="width: 100%; height: {height}px; '
    "border: 0; resize: vertical\" srcdoc='{page}'></iframe>\n"
    "<details><summary>tfdoctor: the report as text</summary><pre>{text}</pre></details>"
)
"""A separate page: its style and scripts cannot affect the notebook, and a remote browser needs no file.

Where a viewer takes the frame away, the text is left.
"""

_carriers: set[str] = set()  # The cell whose report carries plotly.js for all reports of this kernel


def frame(diagnosis: Diagnosis) -> str:
    """Return the whole report as one element; plotly.js of the kernel's first report draws its charts."""
    from tfdoctor.report import terminal  # noqa: PLC0415 - brings rich
    from tfdoctor.report.formats import html  # noqa: PLC0415 - brings Jinja and plotly

    cell = None  # what the running cell is known by when it runs again: its number in the front end, else its text
    if notebook():
        shell = _shell()
        parent: dict[str, Any] = getattr(shell.kernel, "get_parent", dict)()
        cell = str(parent.get("metadata", {}).get("cellId") or shell.history_manager.input_hist_raw[-1])
    if cell is not None and not _carriers:
        _carriers.add(cell)
    carries = cell is None or cell in _carriers
    page = html.render(diagnosis) if carries else html.render_without_plotly(diagnosis)
    quoted = page.replace("&", "&amp;").replace("'", "&#39;")
    text = escape(terminal.render(diagnosis, color=False))
    return FRAME.format(page=quoted, height=HEIGHT_PX, text=text)


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
    shell = _shell()
    compiler = getattr(shell, "compile", None)
    cells: dict[str, int] | None = getattr(compiler, "_filename_map", None)  # numbers by the names of their code
    if cells is None and compiler is not None:
        history = shell.history_manager  # IPython 7, which Colab has, keeps no such table
        codes = enumerate(zip(history.input_hist_raw, history.input_hist_parsed, strict=True))
        cells = {compiler.get_code_name(raw, code, number): number for number, (raw, code) in codes}
    own: dict[str, str | None] = {str(path): None for path in PACKAGE.rglob("*.py")}
    return own | {name: f"{CELL}{number}]" for name, number in (cells or {}).items()}


def _shell() -> Any:  # noqa: ANN401  # IPython's
    """Return the IPython shell that runs this; None without one."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None
