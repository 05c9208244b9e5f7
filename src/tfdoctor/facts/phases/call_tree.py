"""The recorded calls of a run: what each one is, and what is around it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.recording.run_log import Bucket, CallPlace, Line, RunLog
from tfdoctor.terms.kinds import RunCall

LEAST = 1e-6  # ms from which time counts: less is no time that a clock shows
# Calls that are parts of the one around them, and have no name of their own.
PARTS = (RunCall.STEP, RunCall.EPOCH, RunCall.BETWEEN, RunCall.TRACE)


@dataclass(frozen=True, slots=True)
class CallTree:
    """The places of calls by number, the calls around each, innermost first, and those that train.

    A tf.function is known to train only once it runs: the way there is a call of its own, at the line of its steps.
    """

    places: Mapping[int, CallPlace]
    above: Mapping[int, tuple[CallPlace, ...]]
    training: frozenset[int] = frozenset()
    entries: Mapping[Line | None, str] = field(default_factory=dict)  # functions that train, by line

    @classmethod
    def of(cls, log: RunLog) -> Self:
        """Read the calls of a log."""
        places, above = log.calls.values(), {call: tuple(_above(log, call)) for call in log.calls}
        steps = {place.at for place in places if place.call is RunCall.STEP and place.at}
        functions = [place for place in places if place.call is RunCall.FUNCTION and place.at in steps]
        own = {place.id for place in places if place.call is RunCall.STEP} | {place.id for place in functions}
        traces = {
            call
            for call, outer in above.items()
            if log.calls[call].call is RunCall.TRACE and any(place.id in own for place in outer)
        }
        tested = {(place.at, place.name) for place in places if place.call is RunCall.TEST}
        training_last = sorted(functions, key=lambda place: (place.at, place.name) not in tested)
        return cls(log.calls, above, frozenset(own | traces), {place.at: place.name for place in training_last})

    def kind(self, call: int) -> RunCall:
        """Return what a call is; of a number that the log does not define, the script."""
        place = self.places.get(call)
        return place.call if place else RunCall.SCRIPT

    def around(self, call: int) -> Iterator[RunCall]:
        """Yield the kinds of the calls around a call, innermost first."""
        return (place.call for place in self.above.get(call, ()))

    def within(self, call: int, *kinds: RunCall) -> bool:
        """Return whether a call of one of these kinds is around a call."""
        return any(kind in kinds for kind in self.around(call))

    def parent(self, call: int) -> RunCall:
        """Return the kind of the call around a call."""
        return next(self.around(call), RunCall.SCRIPT)

    def of_kind(self, *kinds: RunCall) -> tuple[CallPlace, ...]:
        """Return the places of calls of these kinds."""
        return tuple(place for place in self.places.values() if place.call in kinds)

    def trains(self, call: int) -> bool:
        """Return whether a call is a step, the way into one, or traces the function of one."""
        return call in self.training

    def label(self, call: int) -> str:
        """Return the name of the function that is called: of parts of fit, that of fit; "" is unknown."""
        if call not in self.places:
            return ""
        around = (self.places[call], *self.above[call])
        name = next((place.name for place in around if place.call not in PARTS), "")
        if around[0].call is RunCall.TRACE and around[-1].call is RunCall.SCRIPT:
            name = name or around[0].name  # traced by another thread
        return name or (self.entries.get(self.places[call].at, "") if self.trains(call) else "")


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


def sampled(buckets: Iterable[Bucket]) -> Mapping[int, tuple[float, float]]:
    """Return the ms and the samples of each stack in buckets, by its number."""
    ms, samples = defaultdict[int, float](float), defaultdict[int, float](float)
    for bucket in buckets:
        for total, part in ((ms, bucket.stacks), (samples, bucket.samples)):
            for number, amount in numbered(part).items():
                total[number] += amount
    return {number: (amount, samples[number]) for number, amount in ms.items()}
