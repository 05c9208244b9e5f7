"""The objects of some classes that are alive in this process."""

import collections
import sys


def alive(kinds):
    """Return all objects of classes and of those below: {what: (module, class)} to {what: [object, …]}."""
    import gc

    gc.collect()  # models of an earlier cell are in cycles, and share their names with their successors
    found = {
        what: getattr(sys.modules.get(module), name, None) for what, (module, name) in kinds.items()
    }
    wanted = {id(kind): what for what, kind in found.items() if kind is not None}
    found, known = collections.defaultdict(list), {}
    for thing in gc.get_objects():
        own = type(thing)
        what = known.get(id(own), known)
        if what is known:
            # Not issubclass: an abstract class would remember every type that it is asked about.
            above = (wanted.get(id(each)) for each in own.__mro__)
            what = known[id(own)] = next(filter(None, above), "")
        if what:
            found[what].append(thing)
    return found
