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

ENVIRONMENT = 5  # The place of the environment among the arguments of `fork_exec`: a list of b"NAME=value", or None


class ChildrenPlan:
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

    given = ChildrenPlan(plan, ours)
    wrap(_posixsubprocess, "fork_exec", given.fork_exec)
    wrap(sys.modules.get("subprocess"), "_fork_exec", given.fork_exec)  # imported by a .pth file
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        wrap(os, name, given.execve)
    wrap(os, "putenv", given.putenv)
    wrap(os, "unsetenv", given.unsetenv)


def wrap(module: Any, name: str, wrapper: Function) -> None:  # noqa: ANN401 - any module
    """Put a function around one of C's."""
    original: Any = getattr(module, name, None)
    if original is not None:
        builtin = Builtin(original, wrapper)
        if original in os.supports_fd:
            os.supports_fd.remove(original)
            os.supports_fd.add(builtin)
        for place in (module, sys.modules.get(original.__module__)):
            if getattr(place, name, None) is original:
                setattr(place, name, builtin)


class Builtin:
    """Stands for a function of C: it is none of a class that has it, and is pickled by its name.

    From Python 3.11 on, no error that it raises has a frame of ours.
    """

    __slots__ = ("_original", "_wrapper")

    def __init__(self, original: Any, wrapper: Function) -> None:  # noqa: ANN401 - any function of C
        self._original, self._wrapper = original, wrapper

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function takes them
        try:
            return self._wrapper(self._original, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = None
            raise

    @property  # type: ignore[misc]  # it is written by no one
    def __class__(self) -> Any:  # noqa: ANN401 - what `isinstance` and `inspect` see
        return type(self._original)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - its name, its documentation, its signature
        return getattr(self._original, name)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]  # noqa: ANN401 - same
        return self._original.__doc__

    @property
    def __module__(self) -> Any:  # type: ignore[override]  # noqa: ANN401 - same
        return self._original.__module__

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> str:
        name: str = self._original.__name__
        return name
