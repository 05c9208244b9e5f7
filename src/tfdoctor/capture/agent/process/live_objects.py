"""The objects of some classes that are alive in this process."""

from __future__ import annotations

import collections
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def alive(classes: Mapping[str, tuple[str, str]]) -> Mapping[str, list[Any]]:
    """Return the live objects of classes and their subclasses: {what: (module, class)} to {what: [object, …]}."""
    import gc

    gc.collect()  # models of an earlier cell are in cycles, and share their names with their successors
    loaded = {what: getattr(sys.modules.get(module), name, None) for what, (module, name) in classes.items()}
    wanted = {id(kind): what for what, kind in loaded.items() if kind is not None}
    objects: dict[str, list[Any]] = collections.defaultdict(list)
    kinds: dict[int, str] = {}  # id of a class: what its objects are, "" for nothing of interest
    for thing in gc.get_objects():
        kind = type(thing)
        what = kinds.get(id(kind))
        if what is None:
            what = kinds[id(kind)] = _what(kind, wanted)
        if what:
            objects[what].append(thing)
    return objects


def _what(kind: type, wanted: Mapping[int, str]) -> str:
    """Return what the objects of a class are; "" for nothing of interest."""
    # Not issubclass: an abstract class would remember every type that it is asked about.
    return next((wanted[id(base)] for base in kind.__mro__ if id(base) in wanted), "")
