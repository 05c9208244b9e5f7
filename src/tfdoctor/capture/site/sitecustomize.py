"""Python runs this before the user's script: it lets the agent in and leaves no trace of itself.

The folder of this file is first on PYTHONPATH of the processes below `tfdoctor profile`. The interpreter
therefore runs the script natively (`__main__`, arguments, tracebacks, Ctrl-C). Any Python may come
by here, training or not: this file is Python 2.7 syntax, and the code for the agent is in `_tfdoctor_door`.
"""

import os
import sys

OURS = os.path.dirname(os.path.abspath(__file__))

if "TFDOCTOR_PLAN" in os.environ and __name__ == "sitecustomize":
    if sys.version_info >= (3, 9):  # noqa: UP036  # whichever Python comes by
        try:
            import _tfdoctor_door  # type: ignore[import-not-found] # next to this file

            _tfdoctor_door.let_in()
        except Exception:  # a folder that cannot be written: tfdoctor misses agent.json and says so
            sys.modules.pop("_tfdoctor_agent", None)
    # Run the sitecustomize that this one has hidden, as Python would have done.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != OURS]
    module = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401  # the user's, if any
    except ImportError as error:
        if getattr(error, "name", None) not in ("sitecustomize", None):
            raise
    finally:
        sys.modules.setdefault("sitecustomize", module)
