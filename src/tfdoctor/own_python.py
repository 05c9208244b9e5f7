"""The Python that tfdoctor itself runs on, without the settings that are meant for the user's script.

`PYTHONPATH`, `PYTHONOPTIMIZE` and others reach every Python of a shell: modules for another version, no docstrings,
warnings that are errors. tfdoctor and the processes of its own go on without them, and the script gets them back.
This is imported first, so it imports nothing that could be found elsewhere.
"""

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Variables that only the script is to have. Those of files and terminals (PYTHONIOENCODING, PYTHONUTF8, …) are for
# both, and PYTHONHOME too: this interpreter has started with it, and may need it.
SETTINGS = (
    *("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT"),
    *("PYTHONDEBUG", "PYTHONDEVMODE", "PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"),
    *("PYTHONMALLOC", "PYTHONMALLOCSTATS", "PYTHONTRACEMALLOC", "PYTHONASYNCIODEBUG"),
    *("PYTHONINTMAXSTRDIGITS", "PYTHONDUMPREFS"),
)

PREFIX = "TFDOCTOR_"  # Before the name of a variable of the script's in our environment
MARK = f"{PREFIX}PYTHON"  # A variable of our own environment: how tfdoctor was called (``sys.argv[0]``)
# What our environment may have of these settings: modules in the working directory are not ours.
OWN = ("PYTHONPATH", "PYTHONSAFEPATH")
# The folder that tfdoctor is imported from.
HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - same as below


def own(variables: "Mapping[str, str]") -> dict[str, str]:
    """Return an environment for processes of our own, in which the settings of the script wait for it."""
    if MARK in variables:
        return dict(variables)
    kept = {name: value for name, value in variables.items() if name not in SETTINGS}
    waiting = {f"{PREFIX}{name}": variables[name] for name in SETTINGS if name in variables}
    path = _path(variables.get("PYTHONPATH", ""))
    return {**kept, **waiting, **path, "PYTHONSAFEPATH": "1", MARK: sys.argv[0]}


def _path(given: str) -> dict[str, str]:
    """Return the PYTHONPATH that tfdoctor itself needs: its own folder, or all where its packages are there."""
    folders = [_whole(folder) for folder in given.split(os.pathsep) if folder]
    left = [folder for folder in sys.path if folder == HOME or _whole(folder) not in folders]
    if folders and not all(PathFinder.find_spec(name, left) for name in ("typer", "numpy")):
        return {"PYTHONPATH": given}
    return {"PYTHONPATH": HOME} if HOME in (*folders, _whole(sys.path[0])) else {}


def _whole(folder: str) -> str:
    return os.path.abspath(folder)  # noqa: PTH100 - pathlib is not imported yet


def users(variables: "Mapping[str, str]") -> dict[str, str]:
    """Return an environment as the user has set it, for the script."""
    if MARK not in variables:
        return dict(variables)
    kept = {name: value for name, value in variables.items() if name not in OWN and not name.startswith(MARK)}
    waiting = (name for name in variables if name.startswith(MARK) and name != MARK)
    return {**kept, **{name.removeprefix(PREFIX): variables[name] for name in waiting}}


def enter() -> None:
    """Go on in our own environment; where this interpreter has read settings of the script, start it again."""
    clean = own(os.environ)
    read = (name for name in SETTINGS if os.environ.get(name, "") not in ("", clean.get(name)))
    again = MARK not in os.environ and (sys.flags.optimize or {*read} - {"PYTHONSAFEPATH"})
    for name in set(os.environ) - set(clean):
        del os.environ[name]
    os.environ.update(clean)
    if again and sys.executable:
        words = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
        words = [word for word in words if word.strip("O") != "-"]  # python -OO -m tfdoctor
        os.execv(sys.executable, [sys.executable, *words, *sys.argv[1:]])  # noqa: S606 - ourselves
    if not sys.flags.safe_path and _whole(sys.path[0]) != HOME:
        del sys.path[0]  # the working directory, or the folder of the program
