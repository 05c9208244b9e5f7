"""One stage of tf.data's pipeline, as its iterators' calls in the trace show it."""

import re
from dataclasses import dataclass, field

from tfdoctor.trace import Intervals

ASYNCHRONOUS = re.compile(r"Prefetch|MapAndBatch|(?:Legacy)?Parallel\w+")
"""Stages that make their elements on threads of their own; their GetNext waits and hands over."""


@dataclass(slots=True)
class Node:
    """One stage: all calls of one iterator, whichever epoch made it. Times in ps."""

    path: str  # "Root::Prefetch::Map"
    names: list[str] = field(default_factory=list)  # as tf.data calls the datasets: "MapDataset:4"
    called: list[tuple[int, int]] = field(default_factory=list)  # when it was asked for an element
    self_ps: int = 0  # of its own, on the thread that asked
    function: list[tuple[int, int]] = field(default_factory=list)  # when its function ran
    python_ps: int = 0  # how long its function was inside the Python interpreter
    reading_ps: int = 0  # how long its function read whole files
    reads: int = 0  # how many
    parallelism: int | None = None  # as tf.data reports it

    @property
    def name(self) -> str:
        """All its names, the latest seen first: a dataset that is made anew in each epoch has several."""
        return " ".join(reversed(self.names))

    @property
    def kind(self) -> str:
        """The stage's own name: "Map"."""
        return re.sub(r"\[\w*\]", "", self.path.rpartition("::")[2])

    @property
    def parent(self) -> str:
        """The path of its consumer; of "Zip[1]" that is the Zip."""
        return re.sub(r"\[\d+\]$", "", self.path.rpartition("::")[0])

    @property
    def asynchronous(self) -> bool:
        """Whether it works on threads of its own."""
        return bool(ASYNCHRONOUS.fullmatch(self.kind))

    @property
    def calls(self) -> int:
        """How often it was asked for an element."""
        return len(self.called)

    @property
    def self_wall_ps(self) -> float:
        """Its own time where threads side by side count once: an interleave has several readers."""
        asked = sum(end - start for start, end in self.called)
        return self.self_ps * Intervals.union(self.called).total / asked if asked else 0.0

    @property
    def function_ps(self) -> int:
        """How long its function ran, summed over threads."""
        return sum(end - start for start, end in self.function)

    @property
    def function_wall_ps(self) -> int:
        """How long its function ran on at least one thread."""
        return Intervals.union(self.function).total
