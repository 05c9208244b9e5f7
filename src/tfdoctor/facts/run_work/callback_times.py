"""The time that the run spends in each class of Keras callbacks, by stack samples of the whole run."""

import re
from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.call_tree import sampled
from tfdoctor.facts.phases.run_clock import whole_run
from tfdoctor.recording import Recording
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import SeenStack

# A method that Keras calls, by its qualified name. Earlier recordings name the user's function only.
METHOD = re.compile(r"\b(\w+)\.(on_(?:epoch|batch|train|test|predict)\w*)$")

OF_BATCHES = re.compile(r"on_(?:train_)?batch_")

# Callbacks that Keras itself adds, and reads from.
KERAS_OWN = frozenset({"History", "ProgbarLogger", "BaseLogger"})

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
        seen = defaultdict[str, list[tuple[SeenStack, str, float, float]]](list)
        amounts = sampled(log.buckets)
        for number, stack in log.stacks.items():
            found = METHOD.search(stack.callback or stack.function)
            if found and found[1] not in KERAS_OWN:
                seen[found[1]].append((stack, found[2], *amounts.get(number, (0.0, 0.0))))
        if not seen:
            raise Unavailable("no Keras callback was seen at work")
        times = []
        for name, stacks in seen.items():
            total_ms = sum(ms for _, _, ms, _ in stacks)
            lines: dict[SourceLine | None, float] = defaultdict(float)
            for stack, _, ms, _ in stacks:
                lines[stack.at] += ms
            times.append(
                CallbackTime(
                    name=name,
                    ms=total_ms,
                    samples=round(sum(samples for _, _, _, samples in stacks)),
                    at=max(lines.items(), key=itemgetter(1))[0],
                    in_step=sum(ms for _, of, ms, _ in stacks if OF_BATCHES.match(of)) > HALF * total_ms,
                    long=sum(ms for stack, _, ms, _ in stacks if stack.long) > HALF * total_ms,
                )
            )
        return cls(tuple(sorted(times, key=lambda one: -one.ms)))
