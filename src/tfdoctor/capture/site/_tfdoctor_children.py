"""Children with an environment of their own: they get our two variables with it, so that the agent is in them too.

Whatever environment a script gives to a child, it made it from what it sees, which is without us. A Python below
hides the variables again, as in all other children; programs that are no Python see them, as they do where a child
inherits the environment.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Function = Callable[..., Any]

PLAN, PATH = b"TFDOCTOR_PLAN", b"PYTHONPATH"

ENVIRONMENT = 5
"""The place of the environment among the arguments of `fork_exec`: a list of b"NAME=value", or None."""


class Given:
    """What our variables are to each child: the plan, and our folder first on PYTHONPATH."""

    def __init__(self, plan: bytes, ours: str) -> None:
        self.plan, self.folder, self.seam = plan, os.fsencode(ours), os.fsencode(os.pathsep)
        self.put: Function = os.putenv

    def path(self, value: bytes | None) -> bytes:
        """Return a PYTHONPATH with our folder; twice marks one that was set but empty."""
        if not value:
            return self.seam.join([self.folder] * (1 if value is None else 2))
        entries = value.split(self.seam)
        return value if self.folder in entries else self.seam.join([self.folder, *entries])

    def environment(self, own: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return an environment for a child with ours; one that another tfdoctor has made is left as it is."""
        try:
            names = {os.fsencode(name): os.fsencode(own[name]) for name in own}
        except (TypeError, ValueError):  # the function itself says what is wrong with it
            return own
        if names.setdefault(PLAN, self.plan) == self.plan:
            names[PATH] = self.path(names.get(PATH))
        return names

    def execve(self, original: Function, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - as the function takes them
        """Give them to what replaces this process, or is spawned."""
        if "env" in more:
            more["env"] = self.environment(more["env"])
        return original(*args[:2], *map(self.environment, args[2:3]), *args[3:], **more)

    def fork_exec(self, original: Function, *args: Any) -> Any:  # noqa: ANN401 - same
        """Give them to what `subprocess` starts; without an environment, it inherits this process's."""
        told = args[ENVIRONMENT]
        if told is not None:
            own = {name: value for name, _, value in (entry.partition(b"=") for entry in told)}
            told = [name + b"=" + value for name, value in self.environment(own).items()]
        return original(*args[:ENVIRONMENT], told, *args[ENVIRONMENT + 1 :])

    def putenv(self, original: Function, name: Any, value: Any) -> None:  # noqa: ANN401 - same
        """Leave our folder in what children inherit; `os.environ[name] = value` calls this."""
        original(name, self.path(os.fsencode(value)) if os.fsencode(name) == PATH else value)

    def unsetenv(self, original: Function, name: Any) -> None:  # noqa: ANN401 - same
        """The same for `del os.environ[name]`, and `os.environ.clear()`."""
        ours = {PATH: self.folder, PLAN: self.plan}.get(os.fsencode(name))
        _ = original(name) if ours is None else self.put(os.fsencode(name), ours)


def follow(plan: bytes, ours: str) -> None:
    """Have each child of this process get the variables."""
    import _posixsubprocess  # noqa: PLC0415 - another system may lack it

    given = Given(plan, ours)
    _wrap(_posixsubprocess, "fork_exec", given.fork_exec)
    _wrap(sys.modules.get("subprocess"), "_fork_exec", given.fork_exec)  # imported by a .pth file
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        _wrap(os, name, given.execve)
    _wrap(os, "putenv", given.putenv)
    _wrap(os, "unsetenv", given.unsetenv)


def _wrap(module: Any, name: str, wrapper: Function) -> None:  # noqa: ANN401 - any module
    """Put a function around one of C's; from Python 3.11 on, no error that it raises has a frame of ours."""
    original: Any = getattr(module, name, None)
    if original is None:
        return

    def function(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function takes them
        try:
            return wrapper(original, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = None
            raise

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(function, attribute, getattr(original, attribute))
    if original in os.supports_fd:
        os.supports_fd.add(function)
    setattr(module, name, function)
