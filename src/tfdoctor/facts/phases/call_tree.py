"""The recorded calls of a run: what each one is, and what is around it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.kinds import RunCall
from tfdoctor.recording.run_log import CallPlace, RunLog

LEAST = 1e-6
"""ms from which time counts: less is no time that a clock shows."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """The places of calls by number, and the kinds of calls around each, innermost first."""

    places: Mapping[int, CallPlace]
    around: Mapping[int, tuple[RunCall, ...]]

    @classmethod
    def of(cls, log: RunLog) -> Self:
        """Read the calls of a log."""
        kinds = {call: tuple(place.call for place in _above(log, call)) for call in log.calls}
        return cls(log.calls, kinds)

    def kind(self, call: int) -> RunCall:
        """Return what a call is; of a number that the log does not define, the script."""
        place = self.places.get(call)
        return place.call if place else RunCall.SCRIPT

    def within(self, call: int, *kinds: RunCall) -> bool:
        """Return whether a call of one of these kinds is around a call."""
        return any(kind in kinds for kind in self.around.get(call, ()))

    def parent(self, call: int) -> RunCall:
        """Return the kind of the call around a call."""
        return next(iter(self.around.get(call, ())), RunCall.SCRIPT)

    def of_kind(self, *kinds: RunCall) -> tuple[CallPlace, ...]:
        """Return the places of calls of some kinds."""
        return tuple(place for place in self.places.values() if place.call in kinds)

    def trains(self, call: int) -> bool:
        """Return whether a call trains, or traces within one that does."""
        kind = self.kind(call)
        return kind is RunCall.STEP or (kind is RunCall.TRACE and self.within(call, RunCall.STEP))


def _above(log: RunLog, call: int) -> Iterator[CallPlace]:
    """Yield the calls around a call, innermost first; a damaged log may name one as its own parent."""
    seen = {call}
    parent = log.calls[call].parent
    while parent is not None and parent in log.calls and parent not in seen:
        seen.add(parent)
        yield log.calls[parent]
        parent = log.calls[parent].parent


def numbered(entries: Mapping[str, float]) -> dict[int, float]:
    """Return the entries of a bucket by number, without those that are no amount."""
    return {int(key): value for key, value in entries.items() if key.isdecimal() and value > LEAST}
