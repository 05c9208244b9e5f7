"""The time that the run spends in each class of Keras callbacks, by stack samples of the whole run."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.call_tree import numbered
from tfdoctor.facts.phases.run_clock import whole_run
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import SeenStack

METHOD = re.compile(r"\b(\w+)\.(on_(?:epoch|batch|train|test|predict)\w*)$")
"""A method that Keras calls, by its qualified name. Earlier recordings name the user's function only."""

OF_BATCHES = re.compile(r"on_(?:train_)?batch_")

KERAS_OWN = frozenset({"History", "ProgbarLogger", "BaseLogger"})
"""Callbacks that Keras itself adds, and reads from."""

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackTime:
    """The time in callbacks of a class, in ms of the run, with all that they call.

    ``in_step`` says that most of it is in functions that are called at each batch; ``long``, that most of it lies
    in steps of more than 1.5 times the usual one, after that time.
    """

    name: str
    ms: float
    samples: int
    at: SourceLine | None  # the user's line with most of it, which may be the one that calls fit
    in_step: bool
    long: bool


@dataclass(frozen=True, slots=True)
class CallbackTimes:
    """All classes of callbacks that samples show, those that take most first."""

    callbacks: tuple[CallbackTime, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the samples of each class.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log = whole_run(recording)
        groups: dict[str, dict[int, tuple[SeenStack, str]]] = defaultdict(dict)
        for number, stack in log.stacks.items():
            found = METHOD.search(stack.callback or stack.function)
            if found and found[1] not in KERAS_OWN:
                groups[found[1]][number] = (stack, found[2])
        ms: dict[int, float] = defaultdict(float)
        samples: dict[int, float] = defaultdict(float)
        for bucket in log.buckets:
            for total, part in ((ms, bucket.stacks), (samples, bucket.samples)):
                for number, amount in numbered(part).items():
                    total[number] += amount
        times = [
            _time(name, [(*seen, ms[n], samples[n]) for n, seen in stacks.items()])
            for name, stacks in groups.items()
        ]
        if not times:
            raise Unavailable("no Keras callback was seen at work")
        return cls(tuple(sorted(times, key=lambda one: -one.ms)))


def _time(name: str, seen: Iterable[tuple[SeenStack, str, float, float]]) -> CallbackTime:
    """Add up the stacks of a class: each with the method, its ms and its samples."""
    seen = list(seen)
    total = sum(ms for _, _, ms, _ in seen)
    lines: dict[SourceLine | None, float] = defaultdict(float)
    for stack, _, ms, _ in seen:
        lines[stack.at] += ms
    of_batches = sum(ms for _, method, ms, _ in seen if OF_BATCHES.match(method))
    in_long = sum(ms for stack, _, ms, _ in seen if stack.long)
    return CallbackTime(
        name=name,
        ms=total,
        samples=round(sum(samples for _, _, _, samples in seen)),
        at=max(lines, key=lambda line: lines[line]),
        in_step=of_batches > HALF * total,
        long=in_long > HALF * total,
    )
