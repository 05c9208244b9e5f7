"""The numbers that lines of run.jsonl use: for kinds of calls made at a line, and for stacks."""

from __future__ import annotations

import collections

from .kinds import SCRIPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.stack import Line

    Key = tuple[str, "Line | None", str, "int | None"]

MOST = 5000  # Places that are told apart; later ones are those of the call around them


class CallSite:
    """A kind of call made at a line, within another one."""

    __slots__ = ("at", "between", "kind", "name", "number", "parent")

    def __init__(self, number: int, kind: str, at: Line | None, name: str, parent: CallSite | None) -> None:
        self.number, self.kind, self.at, self.name, self.parent = number, kind, at, name, parent
        self.between: CallSite | None = None  # what follows a step within this one

    def describe(self) -> dict[str, object]:
        """Return what the file says of it."""
        return {
            "kind": "call",
            "id": self.number,
            "call": self.kind,
            "at": self.at,
            "name": self.name,
            "parent": self.parent.number if self.parent else None,
        }


class CallSites:
    """All places that were met, and those that the file does not have yet."""

    def __init__(self) -> None:
        self.known: dict[Key, CallSite] = {}
        self.made: list[CallSite] = []  # by their numbers
        self.new: collections.deque[CallSite] = collections.deque()
        self.script = self.of(SCRIPT, None, "", None)

    def of(self, kind: str, at: Line | None, name: str, parent: CallSite | None) -> CallSite:
        """Return the place of a call, and remember it for the file where it is new."""
        key = kind, at, name, parent.number if parent else None
        place = self.known.get(key)
        if place is None:
            if len(self.known) >= MOST:
                at, name = None, ""
                key = kind, at, name, key[3]
                if key in self.known:
                    return self.known[key]
            place = self.known[key] = CallSite(len(self.made), kind, at, name, parent)
            self.made.append(place)
            self.new.append(place)
        return place

    def __contains__(self, place: CallSite) -> bool:
        return place.number < len(self.made) and self.made[place.number] is place
