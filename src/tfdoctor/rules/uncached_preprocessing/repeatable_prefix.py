"""The work of a random function that comes before its first random operation, and so is the same in every pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import Cacheable, CacheablePart
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.input.map_functions import CONTROL, FunctionGraphs, tensor_bytes
from tfdoctor.facts.run.operation_types import RANDOM
from tfdoctor.facts.run.program import WIDTHS
from tfdoctor.recording.program import RecordedOperation
from tfdoctor.terms.verdict import Location

ARGUMENT = "Placeholder"  # The type of a function's arguments in its graph


@dataclass(frozen=True, slots=True)
class RepeatablePrefix:
    """What one cache could keep if the function were divided before its first random operation.

    ``share``, 0 to 1, is that of the repeatable operations in the time of all operations of the ``stage``'s
    function. What the function takes between its operations is divided alike.
    ``nbytes`` are those of the tensors that the rest of the function takes, or that it returns, for one element;
    None where a shape is open. ``heaviest`` are the types of the longest repeatable operations.
    """

    part: CacheablePart
    stage: StageTime
    share: float
    nbytes: int | None
    heaviest: tuple[str, ...] = ()
    drawn_at: Location | None = None  # the first random operation's line

    @property
    def ms(self) -> float:
        """The repeatable part of the stage's work in ms per step, summed over threads."""
        return self.share * self.stage.work_ms


@dataclass(frozen=True, slots=True)
class RepeatablePrefixes:
    """The random functions of the pipeline that begin with repeatable work."""

    prefixes: tuple[RepeatablePrefix, ...] = ()

    @classmethod
    def measure(cls, cacheable: Cacheable, pipeline: InputPipeline, graphs: FunctionGraphs | Unavailable) -> Self:
        """Follow the data from the random operations of each function; what they do not reach is repeatable."""
        if isinstance(graphs, Unavailable):
            return cls()
        found = []
        for part in cacheable.random:
            graph = graphs.of(part.last)
            ran = (stage for stage in pipeline.stages if stage.dataset and stage.work_ms)
            stage = next((stage for stage in ran if stage.dataset == part.last), None)
            reached = _reached(graph.operations) if graph and stage else []
            if not graph or not stage or not any(reached):
                continue  # the random operation is where the record does not reach
            kept = [op for op, random in zip(graph.operations, reached, strict=True) if not random]
            times = {op.name: stage.operations.get(op.name, 0.0) for op in kept}
            total, ran_ms = sum(times.values()), sum(stage.operations.values())
            longest = sorted(kept, key=lambda op: -times[op.name])[:3]
            found.append(
                RepeatablePrefix(
                    part,
                    stage,
                    total / ran_ms if ran_ms else 0.0,
                    _passed_on(graph.operations, reached),
                    tuple(op.type for op in longest if times[op.name] >= LONG * total),
                    graphs.at(graph.operations[reached.index(True)]),
                )
            )
        return cls(tuple(found))


LONG = 0.05  # Share of the repeatable work from which the report names an operation


def _reached(operations: Sequence[RecordedOperation]) -> list[bool]:
    """Return (n,) whether an operation is random, or depends on one.

    Operations that call functions count as random: what they call is not recorded. Stateful ones that are neither
    are excluded before: their function is not known to be random.
    """
    reached: list[bool] = []
    for operation in operations:
        draws = bool(RANDOM.search(operation.type)) or operation.type in CONTROL
        later = any(at is None or at >= len(reached) for at in operation.sources)
        reached.append(draws or later or any(reached[at] for at in operation.sources if at is not None))
    return reached


def _passed_on(operations: Sequence[RecordedOperation], reached: Sequence[bool]) -> int | None:
    """Return the bytes of repeatable tensors that random operations take, or that nothing takes: results.

    Those that do not depend on the element are constants. None for text, whose length is unknown.
    """
    varies: list[bool] = []
    taken: set[int] = set()
    by_random: set[int] = set()
    for operation, random in zip(operations, reached, strict=True):
        sources = {at for at in operation.sources if at is not None}
        varies.append(operation.type == ARGUMENT or any(varies[at] for at in sources if at < len(varies)))
        taken |= sources
        by_random |= sources if random else set()
    outputs = [
        output
        for at, operation in enumerate(operations)
        if varies[at] and not reached[at] and (at in by_random or at not in taken)
        for output in operation.outputs
    ]
    sizes = [tensor_bytes(*output) if output[0] in WIDTHS else None for output in outputs]
    return None if None in sizes else sum(size or 0 for size in sizes)
