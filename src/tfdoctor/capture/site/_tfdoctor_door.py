"""The way in for the agent: waits in a Python from 3.9 on until its script imports TensorFlow."""

from __future__ import annotations

import _frozen_importlib_external as external  # what Python has loaded already
import _imp
import atexit
import gc
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

OURS = os.path.dirname(os.path.abspath(__file__))

# The working directory as the script finds it; it may have left it, or deleted it, when the agent comes.
START = os.getcwd()

# What stands in the command of a process that multiprocessing or joblib has started to do a part of another one's
# work, and how that was: a server forks such processes, a tracker looks after what they leave.
STARTS = {
    "--multiprocessing-fork": "spawn", "loky.backend.popen_loky_posix": "loky",
    "from multiprocessing.forkserver": "server", "from multiprocessing.": "tracker",
}  # fmt: skip
WORDS = getattr(sys, "orig_argv", sys.argv)
PART = next((how for part, how in STARTS.items() if any(part in word for word in WORDS)), "")

# What Python names the code of a program that is in no file.
MAIN = "" if PART else {"-c": "<string>", "-": "<stdin>", "": "<stdin>"}.get(sys.argv[0], "")
CHANGED = '"changed"'  # What a plan has where this process is to read other texts of some files
TRIAL = '"trial"'  # What it has where steps are timed, and nothing else is recorded

# Python's functions as they are now: the agent may come after the script has replaced them.
TAKEN = {
    module.__name__: dict(vars(module))
    for module in (sys.modules["_thread"], gc, sys.modules["io"], os, os.path, time)
}

MAIN_THREAD = TAKEN["_thread"]["get_ident"]()  # The main thread
FIRST = ("tensorflow", "keras", "tf_keras")  # Where the modules that the agent patches begin


def _hide(name: str, value: str | None) -> None:
    """Show the script a variable as it would be; programs that it starts still inherit ours.

    Only Python's view of the environment changes. What is started with `env=None`, by `os.system`
    or by multiprocessing gets the environment of the process itself, and with it the agent; for what
    gets another one see `_tfdoctor_children`.
    """
    environ: Any = os.environ
    key, seen = environ.encodekey(name), environ._data  # noqa: SLF001  # no other way
    if value is None:
        seen.pop(key, None)
    else:
        seen[key] = environ.encodevalue(value)


def _users_path() -> str | None:
    """Return PYTHONPATH without us: None when there was none, for ours twice stands for an empty one."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [entry for entry in entries if entry != OURS]
    if others:
        return os.pathsep.join(others)
    return "" if len(entries) > 1 else None


# Stands for the files of our code, so that what measures the script's coverage, or debugs it, passes that over.
NO_FILE = "<tfdoctor>"


class AgentLoader(external.SourceFileLoader):
    """Loads a module of the agent."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, which is of no file."""
        code = super().get_code(fullname)
        _imp._fix_co_filename(code, NO_FILE + fullname)  # type: ignore[attr-defined]  # noqa: SLF001
        return code


def _agent() -> Any:  # noqa: ANN401  # loaded by its path
    """Load the agent from its folder, under a name that no user has."""
    import importlib.util  # noqa: PLC0415  # costs, and few processes get here

    name, folder = "_tfdoctor_agent", os.path.join(os.path.dirname(OURS), "agent")
    if name not in sys.modules:
        for inside, _, _ in os.walk(folder):
            sys.path_importer_cache[inside] = external.FileFinder(inside, (AgentLoader, [".py"]))
        path = os.path.join(folder, "__init__.py")
        spec = importlib.util.spec_from_file_location(
            name, path, loader=AgentLoader(name, path), submodule_search_locations=[folder]
        )
        if spec is None or spec.loader is None:
            raise ImportError(folder + " cannot be loaded")
        module: Any = importlib.util.module_from_spec(spec)
        module.START, module.MAIN = START, MAIN
        module.TAKEN, module.MAIN_THREAD = TAKEN, MAIN_THREAD
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class Door:
    """A finder that finds nothing, and lets the agent in when the script imports TensorFlow."""

    def __init__(self, plan: str) -> None:
        self.plan = plan

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, or what the agent's own finder says once it is there."""
        finders: list[Any] = sys.meta_path
        if name not in FIRST or self not in finders:
            return None
        finders.remove(self)
        try:
            finder = _agent().enter(self.plan, name)
        except Exception:  # nothing of ours may end the user's run; the agent has noted what it could
            return None
        spec: ModuleSpec | None = finder.find_spec(name, path, target)
        return spec


def _leave(exit_now: Callable[[int], object]) -> None:
    """Leave at once where the agent has ended the run: the last that runs before the interpreter's own end."""
    early_end: Any = sys.modules.get("_tfdoctor_agent.process.early_end")
    if early_end is not None:
        early_end.leave(exit_now)


def let_in() -> None:
    """Prepare this process: `TFDOCTOR_PLAN` is tfdoctor's process, what to hide, and the plan as JSON."""
    # Before the script registers any handler: so it runs after them.
    atexit.register(_leave, os._exit)
    parent, manners, plan = os.environ["TFDOCTOR_PLAN"].split(" ", 2)
    sys.path_importer_cache[OURS] = external.FileFinder(OURS, (AgentLoader, [".py"]))
    import _tfdoctor_children  # type: ignore[import-not-found] # noqa: PLC0415 # next to this file

    del sys.path_importer_cache[OURS]
    _tfdoctor_children.follow(os.environb[b"TFDOCTOR_PLAN"], OURS)
    if CHANGED in plan:
        _agent().read_changed(plan, os.path.join(OURS, "run_changed.py"))
    if manners == "hidden":
        _hide("PYTHONPATH", _users_path())
        _hide("TFDOCTOR_PLAN", None)
    if os.getppid() == int(parent):
        _agent().begin(plan)
    elif PART not in ("", "tracker") and TRIAL not in plan:
        _agent().begin(plan, how=PART)
    elif manners == "visible" and not PART:
        _agent().begin(plan, waits=True)
    finders: list[Any] = sys.meta_path
    finders.insert(0, Door(plan))


for _late in (_agent, _leave, Door.find_spec, AgentLoader.get_code):  # what runs within the script
    _late.__code__ = _late.__code__.replace(co_filename=NO_FILE)
