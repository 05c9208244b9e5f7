"""Python runs this before the user's script: it lets the guest in and leaves no trace of itself.

The folder of this file is first on PYTHONPATH of the process that tfdoctor starts. The interpreter
therefore runs the script natively (`__main__`, arguments, tracebacks, Ctrl-C), and all that is ours
happens here, before the script's first line. Standard library and Python 3.9 syntax only.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys


def _restore(plan):
    """Give the script and its children the environment and the path they would have had."""
    del os.environ["TFDOCTOR_PLAN"]
    if plan["pythonpath"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = plan["pythonpath"]
    ours = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != ours]


def _load(name, path, **location):
    """Run a module from a file, under a name of our choice."""
    spec = importlib.util.spec_from_file_location(name, path, **location)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _let_in(plan):
    """Install the guest; what fails is written to the recording, for the script must run anyway."""
    folder = plan["guest"]
    try:
        guest = _load(
            "_tfdoctor_guest",
            os.path.join(folder, "__init__.py"),
            submodule_search_locations=[folder],
        )
        guest.install(plan)
    except Exception as error:  # nothing of ours may end the user's run
        failure = {"errors": [{"where": "install", "error": f"{type(error).__name__}: {error}"}]}
        with open(os.path.join(plan["out"], "guest.json"), "w", encoding="utf-8") as file:
            json.dump(failure, file)


def _chain():
    """Run the sitecustomize that ours has hidden, as Python would have done."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if "TFDOCTOR_PLAN" in os.environ:
    _plan = json.loads(os.environ["TFDOCTOR_PLAN"])
    _restore(_plan)
    try:
        _let_in(_plan)
    except OSError:  # not even the failure could be written: tfdoctor misses guest.json and says so
        sys.modules.pop("_tfdoctor_guest", None)
    _chain()
