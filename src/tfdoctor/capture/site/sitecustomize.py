"""Python runs this before the user's script: it lets the agent in and leaves no trace of itself.

The folder of this file is first on PYTHONPATH of the processes below `tfdoctor profile`. The interpreter
therefore runs the script natively (`__main__`, arguments, tracebacks, Ctrl-C). Any Python may come
by here, training or not: this file is Python 2.7 syntax, leaves the old ones alone, and waits with all
else until TensorFlow is imported.
"""

import os
import sys

OURS = os.path.dirname(os.path.abspath(__file__))

START = None
"""The working directory as the script finds it; it may have left it, or deleted it, when the agent comes."""

FIRST = ("tensorflow", "keras", "tf_keras")
"""Where the modules that the agent patches begin."""


def _hide(name, value):
    """Show the script a variable as it would be; programs that it starts still inherit ours.

    Only Python's view of the environment changes. What is started with `env=None`, by `os.system`
    or by multiprocessing gets the environment of the process itself, and with it the agent.
    """
    key, seen = os.environ.encodekey(name), os.environ._data  # noqa: SLF001  # no other way
    if value is None:
        seen.pop(key, None)
    else:
        seen[key] = os.environ.encodevalue(value)


def _users_path():
    """Return PYTHONPATH without us: None when there was none, for ours twice stands for an empty one."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [entry for entry in entries if entry != OURS]
    if others:
        return os.pathsep.join(others)
    return "" if len(entries) > 1 else None


def _agent():
    """Load the agent from its folder, under a name that no user has."""
    import importlib.util  # noqa: PLC0415  # costs, and few processes get here

    name, folder = "_tfdoctor_agent", os.path.join(os.path.dirname(OURS), "agent")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        module = importlib.util.module_from_spec(spec)
        module.START = START
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class Door:
    """A finder that finds nothing, and lets the agent in when the script imports TensorFlow."""

    def __init__(self, plan):
        self.plan = plan

    def find_spec(self, name, path=None, target=None):
        """Return None, or what the agent's own finder says once it is there."""
        if name not in FIRST or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            watcher = _agent().enter(self.plan, name)
        except (
            Exception
        ):  # nothing of ours may end the user's run; the agent has noted what it could
            return None
        return watcher.find_spec(name, path, target)


def _let_in():
    """Prepare this process: `TFDOCTOR_PLAN` is tfdoctor's process, what to hide, and the plan as JSON."""
    global START  # noqa: PLW0603  # one process, one start
    START = os.getcwd()
    parent, manners, plan = os.environ["TFDOCTOR_PLAN"].split(" ", 2)
    if manners == "hidden":
        _hide("PYTHONPATH", _users_path())
        _hide("TFDOCTOR_PLAN", None)
    if os.getppid() == int(parent):
        _agent().begin(plan)
    sys.meta_path.insert(0, Door(plan))


def _chain():
    """Run the sitecustomize that ours has hidden, as Python would have done."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != OURS]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401, PLC0415  # another one than this
    except ImportError as error:
        if getattr(error, "name", None) not in ("sitecustomize", None):
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


if "TFDOCTOR_PLAN" in os.environ and __name__ == "sitecustomize":
    if sys.version_info >= (3, 9):  # noqa: UP036  # whichever Python comes by
        try:
            _let_in()
        except Exception:  # a folder that cannot be written: tfdoctor misses agent.json and says so
            sys.modules.pop("_tfdoctor_agent", None)
    _chain()
