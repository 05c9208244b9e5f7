"""The stream of events: one wrapper on each entry point, which tells listeners of each call and leaves no frame.

A listener is a function ``enter(held, args, kwargs, frame)``: it is called before the entry point is, with the
arguments and the frame of what calls. What is to follow it puts on ``held`` as ``(leave, token)``, before it
changes anything else, for a handler of a signal may raise between any two lines: ``leave(token, result, error)`` is
called once, whatever comes, the last listener's first. Where it returns a function, that is called in place of the
entry point and of the listeners that follow. What fails in a listener is noted, and the call goes on.

Calls that repeat as they were, one each step, may be noted more briefly (`Repeats`), where one listener hears of
them: three wrappers of each step then take a third of what their listeners take.
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
    from typing import Any, Protocol

    from .process.declared import Foreign
    from .process.imports import Hook
    from .process.journal import Journal

    Args = tuple[Any, ...]
    Kwargs = dict[str, Any]
    Leave = Callable[[Any, Any, BaseException | None], object]
    Held = list[tuple[Leave, Any]]
    Enter = Callable[[Held, Args, Kwargs, FrameType], Callable[[], object] | None]
    Listen = Callable[["Point"], Enter | None]  # makes the listener of an entry point

    class Repeats(Protocol):
        """Notes calls that repeat by their moments alone."""

        brief: object  # the function whose calls are noted like this; None: none
        began: int  # when the one under way did; 0: none is
        inner: object  # what that runs, of which nobody is told; None: whatever it runs
        within: bool  # a call in it is under way that may trace

        def begins(self, frame: FrameType) -> bool:
            """Say whether the call that begins repeats the last one."""

        def over(self) -> bool:
            """Say whether it did to its end; else it is told to who leaves it."""

        def passed(self) -> bool:
            """Say the same of a call that may trace within the one under way, and is over."""


WINDOW = "window"  # The group of the listeners that rest once the traced window is over


class Point:
    """An entry point: where it is, what it was, and who listens there now."""

    def __init__(self, log: Journal, original: Foreign, name: str, owner: Foreign = None) -> None:
        self.log, self.original, self.name, self.owner = log, original, name, owner
        self.module = ""  # in which it was found
        self.all: list[tuple[Enter, str]] = []
        self.listeners: tuple[Enter, ...] = ()
        self.repeats: Repeats | None = None  # where calls may be noted briefly now
        self.notes: Repeats | None = None  # the same, whoever listens
        self.key: object = None  # how those know the function; None: it is the first argument
        # How a call is left that was to repeat, and one within another one that was to, in which more has happened:
        self.again: Callable[[Args, Kwargs, FrameType], tuple[Leave, Any]]
        self.within: Callable[[Args, Kwargs, FrameType], tuple[Leave, Any]] | None = None  # None: nothing can
        self.failing: Sequence[Callable[[BaseException], object]] = ()  # hear of what calls raise

    def choose(self, resting: set[str]) -> None:
        """Leave out the listeners of groups that rest."""
        self.listeners = tuple(enter for enter, group in self.all if group not in resting)
        self.repeats = self.notes if len(self.listeners) == 1 else None

    def enter(self, held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> Callable[[], object] | None:
        """Tell the listeners that a call begins; return what is called in its place, if anything."""
        for enter in self.listeners:
            try:
                instead = enter(held, args, kwargs, frame)
            except Exception as error:
                self.log.fault(self.name, error)
            else:
                if instead is not None:
                    return instead
        return None

    def leave(self, held: Held, result: object, error: BaseException | None) -> None:
        """Tell those that are held that it is over."""
        while held:
            leave, token = held.pop()
            try:
                leave(token, result, error)
            except Exception as fault:
                self.log.fault(self.name, fault)

    def fail(self, held: Held, error: BaseException) -> None:
        """Tell the listeners that an exception leaves the call, and who is left of them where one has raised it."""
        self.leave(held, None, error)
        for told in self.failing:
            try:
                told(error)
            except Exception as fault:
                self.log.fault(self.name, fault)


class Stream:
    """All entry points that somebody listens to."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.listens: dict[str, list[tuple[Listen, str]]] = {}
        self.failing: dict[str, list[Callable[[BaseException], object]]] = {}
        self.points: weakref.WeakSet[Point] = weakref.WeakSet()
        self.resting: set[str] = set()

    def on(self, event: str, listen: Listen, group: str = "") -> None:
        """Have what `listen` makes for each entry point of an event hear of its calls, after those before it."""
        self.listens.setdefault(event, []).append((listen, group))

    def on_failure(self, event: str, told: Callable[[BaseException], object]) -> None:
        """Tell what calls of an event raise, the last of all; a call that returns costs nothing then."""
        self.failing.setdefault(event, []).append(told)

    def rest(self, group: str, *, rests: bool) -> None:
        """Tell a group of listeners nothing any more, or again."""
        (self.resting.add if rests else self.resting.discard)(group)
        for point in list(self.points):
            point.choose(self.resting)

    def hooks(self) -> dict[str, list[Hook]]:
        """Return what to patch in which module."""
        found: dict[str, list[Hook]] = {}
        for event, modules, owner, names in ROWS:
            for module in modules if event in self.listens or event in self.failing else ():
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
                point.failing = self.failing.get(event, ())
                listeners = [(listen(point), group) for listen, group in self.listens.get(event, ())]
                told = self.wrap(point, listeners)
                setattr(of, name, staticmethod(told) if name == "__new__" else told)

    def wrap(self, point: Point, listeners: Sequence[tuple[Enter | None, str]]) -> Callable[..., Any]:
        """Return what stands for an entry point: its calls are told to the listeners."""
        point.all = [(enter, group) for enter, group in listeners if enter is not None]
        point.choose(self.resting)
        self.points.add(point)
        return _told(point)


def watched(log: Journal, original: Foreign, name: str, enter: Enter) -> Callable[..., Any]:
    """Return what stands for a function that one listener watches."""
    point = Point(log, original, name)
    point.listeners = (enter,)
    return _told(point)


def _told(point: Point) -> Callable[..., Any]:
    own: Foreign = _wrapper(point, sys._getframe)
    if hasattr(point.original, "__code__"):
        own = functools.wraps(point.original)(own)
        own.__code__ = own.__code__.replace(co_name=point.original.__code__.co_name)
    named: Callable[..., Any] = frames.named_apart(own)
    return named


def _wrapper(point: Point, caller: Callable[[int], FrameType]) -> Callable[..., Any]:
    original = point.original

    def call(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401  # those of any function
        held: Held = []
        over: Callable[[], bool] | None = None  # of a call that is noted briefly, or is part of one
        later: Foreign = None  # how it is left where it is not noted to its end
        try:
            repeats = point.repeats
            if repeats is not None and repeats.brief is not None:
                if repeats.brief is (point.key or args[0]):
                    over, later = repeats.over, point.again  # first: a handler of a signal may raise next
                    over = over if repeats.begins(caller(1)) else None
                elif repeats.began and (repeats.inner is None or repeats.inner is args[0]):
                    if point.within is None:
                        return original(*args, **kwargs)
                    over, later, repeats.within = repeats.passed, point.within, True
            instead = None
            if over is None and point.listeners:
                instead = point.enter(held, args, kwargs, caller(1))
            result = original(*args, **kwargs) if instead is None else instead()
            if over is not None:
                if over():
                    return result
                held.append(later(args, kwargs, caller(1)))
                over = None
            if held:
                point.leave(held, result, None)
        except BaseException as error:
            if over is not None:
                held.append(later(args, kwargs, caller(1)))
            point.fail(held, error)
            frames.leave(error)
            raise
        return result

    return call
