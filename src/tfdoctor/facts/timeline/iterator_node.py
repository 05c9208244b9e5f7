"""One stage of tf.data's pipeline, from the calls of its iterators in the trace."""

from dataclasses import dataclass, field

from tfdoctor.facts.kit import *

# Stages that make their elements on threads of their own; their GetNext only waits for an element.
ASYNCHRONOUS = re.compile(r"Prefetch|MapAndBatch|(?:Legacy)?Parallel\w+")


@dataclass(slots=True)
class Node:
    """One stage: all calls of one iterator over all epochs. Times in ps."""

    path: str  # "Root::Prefetch::Map"
    names: list[str] = field(default_factory=list)  # tf.data's, of the datasets: "MapDataset:4"
    called: list[tuple[int, int]] = field(default_factory=list)  # calls for an element
    self_ps: int = 0  # without upstream stages, on the calling thread
    function: list[tuple[int, int]] = field(default_factory=list)  # when its function ran
    python_ps: int = 0  # how long its function was inside the Python interpreter
    reading_ps: int = 0  # how long its function read whole files
    reads: int = 0  # number of those files
    image_ps: int = 0  # how long its function decoded and resized images
    operations: dict[str, int] = field(default_factory=dict)  # of its function, by name
    repetition: int = 0  # passes that a repeat() above had completed, at most

    @property
    def name(self) -> str:
        """All names, the latest first: a dataset that is rebuilt in each epoch has several."""
        return " ".join(reversed(self.names))

    @property
    def kind(self) -> str:
        """The stage's own name: "Map"."""
        return re.sub(r"\[\w*\]", "", self.path.rpartition("::")[2])

    @property
    def parent(self) -> str:
        """The path of its consumer; for a branch "Zip[1]" that of the Zip."""
        return re.sub(r"\[\d+\]$", "", self.path.rpartition("::")[0])

    @property
    def asynchronous(self) -> bool:
        """Whether it works on threads of its own."""
        return bool(ASYNCHRONOUS.fullmatch(self.kind))

    @property
    def calls(self) -> int:
        """The number of calls for an element."""
        return len(self.called)

    @property
    def self_wall_ps(self) -> float:
        """Its own time, in which parallel threads count once: an interleave has several readers."""
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
