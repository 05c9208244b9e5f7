"""Runs a main script whose text is changed: ``python run_changed.py script.py ARGUMENTS``.

The interpreter reads a main script by itself, where nothing can stand in between. So this file is the main
script for a moment: it makes everything as the interpreter would for the other one, and runs that.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _run_script(path: str) -> None:
    import io  # noqa: PLC0415  # nothing of ours stays in the namespace of the script

    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.join(os.getcwd(), path)  # as `__file__` of a main script is, from Python 3.9 on
    with io.open_code(path) as file:  # the changed text
        code = compile(file.read(), path, "exec", dont_inherit=True)
    from importlib.machinery import SourceFileLoader  # noqa: PLC0415  # same

    main: Any = sys.modules["__main__"]
    names = main.__dict__
    builtins = names["__builtins__"]
    names.clear()
    names.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=SourceFileLoader("__main__", path),
        __spec__=None,
        __annotations__={},
        __builtins__=builtins,
        __file__=path,
        __cached__=None,
    )
    exec(code, names)  # noqa: S102  # the user's script


del sys.argv[0]
_run_script(sys.argv[0])
