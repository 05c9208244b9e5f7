"""The stream of events: one wrapper on each entry point, which tells listeners of each call and leaves no frame.

A listener is a function ``enter(held, args, kwargs, frame)``: it is called before the entry point is, with the
arguments and the frame of what calls. What is to follow it puts on ``held`` as ``(leave, token)``, before it
changes anything else, for a handler of a signal may raise between any two lines: ``leave(token, result, error)`` is
called once, whatever comes, the last listener's first. Where it returns a function, that is called in place of the
entry point and of the listeners that follow. What fails in a listener is noted, and the call goes on.
"""

from __future__ import annotations

import functools
import sys
import weakref

from .entry_points import OWN, ROWS
from .process import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from .process.declared import Foreign
    from .process.imports import Hook
    from .process.journal import Journal

    Args = tuple[Any, ...]
    Kwargs = dict[str, Any]
    Leave = Callable[[Any, Any, BaseException | None], object]
    Held = list[tuple[Leave, Any]]
    Enter = Callable[[Held, Args, Kwargs, FrameType], Callable[[], object] | None]
    Listen = Callable[["Point"], Enter | None]  # makes the listener of an entry point

WINDOW = "window"  # The group of the listeners that rest once the traced window is over


class Point:
    """An entry point: where it is, what it was, and who listens there now."""

    def __init__(self, log: Journal, original: Foreign, name: str, owner: Foreign = None) -> None:
        self.log, self.original, self.name, self.owner = log, original, name, owner
        self.module = ""  # in which it was found
        self.all: list[tuple[Enter, str]] = []
        self.listeners: tuple[Enter, ...] = ()

    def choose(self, resting: set[str]) -> None:
        """Leave out the listeners of groups that rest."""
        self.listeners = tuple(enter for enter, group in self.all if group not in resting)


class Stream:
    """All entry points that somebody listens to."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.listens: dict[str, list[tuple[Listen, str]]] = {}
        self.points: weakref.WeakSet[Point] = weakref.WeakSet()
        self.resting: set[str] = set()

    def on(self, event: str, listen: Listen, group: str = "") -> None:
        """Have what `listen` makes for each entry point of an event hear of its calls, after those before it."""
        self.listens.setdefault(event, []).append((listen, group))

    def rest(self, group: str, *, rests: bool) -> None:
        """Tell a group of listeners nothing any more, or again."""
        (self.resting.add if rests else self.resting.discard)(group)
        for point in list(self.points):
            point.choose(self.resting)

    def hooks(self) -> dict[str, list[Hook]]:
        """Return what to patch in which module."""
        found: dict[str, list[Hook]] = {}
        for event, modules, owner, names in ROWS:
            for module in modules if event in self.listens else ():
                patch = functools.partial(self._patch, event=event, owner=owner, names=names)
                found.setdefault(module, []).append(patch)
        return found

    def _patch(self, module: Foreign, event: str, owner: str, names: Sequence[str]) -> None:
        of = module
        for part in owner.split(".") if owner else ():
            of = getattr(of, part, None)
        if owner in OWN and getattr(of, "__module__", None) != module.__name__:
            return  # later versions keep the old name for what lives elsewhere
        for name in names:
            if hasattr(of, name):
                point = Point(self.log, getattr(of, name), name, of)
                point.module = module.__name__
                listeners = [(listen(point), group) for listen, group in self.listens[event]]
                told = self.wrap(point, listeners)
                setattr(of, name, staticmethod(told) if name == "__new__" else told)

    def wrap(self, point: Point, listeners: Sequence[tuple[Enter | None, str]]) -> Callable[..., Any]:
        """Return what stands for an entry point: its calls are told to the listeners."""
        point.all = [(enter, group) for enter, group in listeners if enter is not None]
        point.choose(self.resting)
        self.points.add(point)
        return _told(point)


def _told(point: Point) -> Callable[..., Any]:
    original, log, name, caller = point.original, point.log, point.name, sys._getframe

    def call(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401  # those of any function
        listeners = point.listeners
        if not listeners:
            return original(*args, **kwargs)
        held: Held = []
        try:
            instead, frame = None, caller(1)
            for enter in listeners:
                try:
                    instead = enter(held, args, kwargs, frame)
                except Exception as error:
                    log.fault(name, error)
                if instead is not None:
                    break
            result = original(*args, **kwargs) if instead is None else instead()
            while held:
                leave, token = held.pop()
                try:
                    leave(token, result, None)
                except Exception as error:
                    log.fault(name, error)
        except BaseException as error:
            _fail(point, held, error)
            frames.leave(error)
            raise
        return result

    own: Foreign = call
    if hasattr(original, "__code__"):
        own = functools.wraps(original)(call)
        own.__code__ = own.__code__.replace(co_name=original.__code__.co_name)
    named: Callable[..., Any] = frames.named_apart(own)
    return named


def _fail(point: Point, held: Held, error: BaseException) -> None:
    """Tell the listeners that an exception leaves the call, and who is left of them where one has raised it."""
    while held:
        leave, token = held.pop()
        try:
            leave(token, None, error)
        except Exception as fault:
            point.log.fault(point.name, fault)
