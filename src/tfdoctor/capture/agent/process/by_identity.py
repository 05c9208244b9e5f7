"""Notes on objects of the user's: kept as long as the object lives, found without a call of Python."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")
    Notes = dict[int, T]  # by the id of the object


def keep(notes: Notes[T], thing: object, note: T) -> T:
    """Keep a note on an object until that is gone: `notes.get(id(thing))` finds it.

    A `WeakKeyDictionary` does the same by three calls of Python: those take longer in each step than all else that
    is done with the note, for a step of the user's empties the processor's caches.
    """
    if id(thing) not in notes:
        weakref.finalize(thing, notes.pop, id(thing), None).atexit = False
    notes[id(thing)] = note
    return note
