"""The forward pass of layers that do not train, on inputs that depend on the examples alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import never_complete
from tfdoctor.facts.input.dataset_properties import RANDOM, DatasetProperties, repeatable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.terms.verdict import Location

UPDATES = re.compile(r"Assign\w*VariableOp|Resource(?:Sparse)?(?:Apply|Scatter)\w*")
"""Types of operations that change the variable that is their first input."""

READS = re.compile(r"ReadVariableOp|ResourceGather\w*")
"""Types of operations that read the variable that is their first input."""

OPAQUE = re.compile(
    r"(?=\w*\Z)(?:If|While|Case|StatelessIf|StatelessWhile|\w*PartitionedCall|\w*PyFunc\w*|XlaLaunch)"
)
"""Types of operations whose work is in another graph, or in Python: what they depend on is unknown."""

PYTHON = "EagerLocalExecute: "
"""How operations that Python runs one by one begin in the trace."""

SHAPES = frozenset(("Shape", "ShapeN", "Rank", "Size"))
"""Types of operations that use only the shape of their input."""


@dataclass(frozen=True, slots=True)
class FrozenWork(OperationRows):
    """The operations of frozen layers whose results are the same whenever an example comes again.

    ``rows`` are these, what prepares their inputs, and what only they feed; ``features_bytes`` are the results of a
    batch that trained layers and losses use, None where a shape is open. ``passes`` over the data are None where
    unknown; ``differs`` says why an example differs from pass to pass, "" where it does not.
    """

    layers: tuple[str, ...]  # frozen, with weights that the step reads
    rows: tuple[OperationTime, ...]
    features_bytes: int | None = None
    passes: float | None = None
    batches: int | None = None  # of one pass
    differs: str = ""
    fit_at: Location | None = None

    @classmethod
    def measure(
        cls, operations: Operations, dataflow: Dataflow, program: Program, properties: DatasetProperties | None
    ) -> Self:
        """Follow the examples through the step's graph.

        Raises:
            Unavailable: the record does not say which layers train.
        """
        if all(layer.trainable is None for layer in program.layers):
            raise Unavailable("the recording does not say which layers train; record again")
        graph = ExampleGraph(dataflow)
        names = graph.repeated()
        known_rows = [(row, row.operation) for row in operations.rows if row.operation]
        ran = {operation.layer for _, operation in known_rows}
        settings, arrays = program.settings, program.input_kind == "arrays"
        known = properties.passes if properties else None
        return cls(
            layers=tuple(sorted({operation.layer for operation in graph.frozen} & ran)),
            rows=tuple(row for row, operation in known_rows if operation.name in names),
            features_bytes=graph.boundary_bytes(names),
            passes=float(settings.epochs) if arrays and settings.epochs else known,
            batches=settings.steps_per_epoch,
            differs=_assigned(operations) or ("" if arrays else why_different(properties)),
            fit_at=properties.fit_at if properties else None,
        )

    @property
    def features_total(self) -> int | None:
        """The bytes of the features of all examples; None is unknown."""
        if self.features_bytes is None or self.batches is None:
            return None
        return self.features_bytes * self.batches

    @property
    def at(self) -> Location | None:
        """The line that calls the frozen layers, or that made them where fit does."""
        for row in sorted(self.rows, key=lambda row: -row.ms):
            called = row.operation.at if row.operation else None
            at = called if called not in {None, self.fit_at} else row.at
            if at:
                return at
        return None


class ExampleGraph:
    """What each operation of the graphs depends on, in one pass over them in the order of their making."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self.operations = tuple(dataflow.program.by_name.values())
        updated = {
            operation.sources[0]
            for operation in dataflow.program.operations
            if operation.sources and UPDATES.fullmatch(operation.type)
        }
        by_name = dataflow.program.by_name
        self.trained = {by_name[name].layer for name in updated if name in by_name} - {""}
        self.updated = updated
        self.frozen = tuple(filter(self._is_frozen, self.operations))

    def repeated(self) -> frozenset[str]:
        """Return the names of the operations that could be computed once for each example."""
        fixed, after = self._dependence()
        chosen: set[str] = set()
        for operation in reversed(self.operations):
            if operation.name not in fixed or operation.type in {"Placeholder", "Const"}:
                continue
            users = [user for user in self._users(operation) if user.type not in SHAPES]
            only = bool(users) and all(user.name in chosen for user in users)
            if operation.name in after or only:
                chosen.add(operation.name)
        return frozenset(chosen)

    def boundary_bytes(self, names: frozenset[str]) -> int | None:
        """Return the bytes of the results that other operations use; None where a shape is open."""
        program = self.dataflow.program
        ends = [
            operation
            for operation in self.operations
            if operation.name in names and any(user.name not in names for user in self._users(operation))
        ]
        sizes = [program.nbytes(tensor) for end in ends for tensor in end.outputs[:1]]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def _users(self, operation: Operation) -> Iterable[Operation]:
        return self.dataflow.consumers.get(operation.name, ())

    def _is_frozen(self, operation: Operation) -> bool:
        """Say whether an operation reads a weight of a layer that is not to be trained, nor changed anywhere."""
        layer = self.dataflow.program.layer_by_name.get(operation.layer)
        return (
            bool(READS.fullmatch(operation.type) and operation.sources)
            and layer is not None
            and layer.trainable is False
            and operation.layer not in self.trained
            and operation.sources[0] not in self.updated
        )

    def _dependence(self) -> tuple[set[str], set[str]]:
        """Return the operations whose results depend on examples, constants and frozen weights alone.

        And those that use the result of a frozen weight.
        """
        frozen = {operation.name for operation in self.frozen}
        fixed: set[str] = set()
        after = set(frozen)
        for operation in self.operations:
            if any(source in after for source in operation.sources):
                after.add(operation.name)
            reads = bool(READS.fullmatch(operation.type))
            varies = RANDOM.search(operation.type) or OPAQUE.fullmatch(operation.type)
            is_input = operation.type in {"Placeholder", "Const"}
            inputs = is_input or (operation.sources and fixed.issuperset(operation.sources))
            if operation.name in frozen or (inputs and not reads and not varies):
                fixed.add(operation.name)
        return fixed, after


def _assigned(operations: Operations) -> str:
    """Return that Python assigns variables in the step, perhaps a moving average or a copy of trained ones."""
    single = (row for row in operations.rows if any(name.startswith(PYTHON) for name in row.ran))
    if any(UPDATES.fullmatch(row.type) for row in single):
        return "Python assigns variables between the steps, and those of frozen layers may be among them"
    return ""


def why_different(properties: DatasetProperties | None) -> str:
    """Return why an example may differ from pass to pass; the order of the examples does not matter."""
    if properties is None:
        return "the dataset that feeds the training is unknown"
    never = never_complete(properties)
    caches = [cache for cache in properties.chain if kind_of(cache) == "Cache" and cache != never]
    cached = {above.id for cache in caches for above in properties.upstream(cache)}
    for stage in properties.chain:
        same = True if kind_of(stage) == "Shuffle" else repeatable(stage)
        if not same:
            name = stage.function or kind_of(stage).lower()
            what = "draws random numbers" if same is False else "may give other values"
            if same is False and stage.id in cached and not properties.remade:
                return f"{name} in the pipeline {what}, {KEPT}"
            return f"{name} in the pipeline {what} in each pass"
    return ""


KEPT = (
    "and only cache() after it makes them the same in each pass (cache-order: random operations belong after "
    "cache())"
)
