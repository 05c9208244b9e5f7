"""The graphs that the run built: which operation feeds which, what it is computed from, what serves it alone."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.operation_types import CONSTANT, OPAQUE, PASSING, RANDOM, READS, SHAPES, UPDATES
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.trace.names import FRAME, GRADIENT

LONGEST = 100  # Operations in a row that only pass on values: a graph with more of them, or a circle, is damaged
GRADIENT_SCOPE = "gradient_tape/"  # The name scope of a gradient's operations, before the forward operation's name
ITERATES = "IteratorGetNext"  # The types that begin so take a batch from a pipeline: their handle is no variable's


class Source(StrEnum):
    """What a value is computed from."""

    BATCH = "batch"  # or another argument of the step
    VARIABLES = "variables"
    RANDOM = "random numbers"
    UNKNOWN = "unknown"


Sources = frozenset[Source]


class Dataflow(Record, eq=False, dict=True):
    """The edges between a program's operations, by their names."""

    program: Program

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Read the edges from the program record.

        Raises:
            Unavailable: the record is of a version that did not write them.
        """
        if not any(operation.sources for operation in program.operations):
            raise Unavailable(
                "the recording does not contain the graph's edges; record the run again with this version"
            )
        return cls(program)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in the order in which they were made; where graphs share a name, the training graph's."""
        return tuple(self.program.by_name.values())

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Operation, ...]]:
        """The operations that take an operation's results, by its name."""
        taken = by_key((name, one) for one in self.operations for name in dict.fromkeys(one.sources))
        return {name: tuple(rows) for name, rows in taken.items()}

    @cached_property
    def gradients(self) -> Mapping[str, tuple[Operation, ...]]:
        """The operations of gradients, by the forward operation that their scope names."""
        backward = (one for one in self.operations if one.name.startswith(GRADIENT_SCOPE))
        scoped = ((*one.name.removeprefix(GRADIENT_SCOPE).rpartition("/"), one) for one in backward)
        gradients = by_key((forward, one) for forward, _, own, one in scoped if forward and own)
        return {name: tuple(rows) for name, rows in gradients.items()}

    def source(self, operation: Operation, position: int) -> Operation | None:
        """Return the operation that makes an input, skipping those that only pass values on; None is unknown."""
        seen: Operation | None = operation
        for _ in range(LONGEST):
            if seen is None or position >= len(seen.sources):
                return None
            seen = self.program.by_name.get(seen.sources[position])
            if seen is None or seen.type not in PASSING:
                return seen
            position = 0
        return None

    def users(self, operation: Operation) -> Iterator[Operation]:
        """Yield the operations that take an operation's values, skipping those that only pass them on."""
        waiting, passed = [*reversed(self.consumers.get(operation.name, ()))], {operation.name}
        while waiting:
            user = waiting.pop()
            if user.type not in PASSING:
                yield user
            elif user.name not in passed:
                passed.add(user.name)
                waiting += reversed(self.consumers.get(user.name, ()))

    def forward(self, operation: Operation) -> list[Operation]:
        """Return what takes an operation's values in the forward pass; its shape is none of them."""
        users = self.consumers.get(operation.name, ())
        return [user for user in users if user.type not in SHAPES and not is_backward(user.name)]

    @staticmethod
    def is_gradient_of(name: str, operation: Operation) -> bool:
        """Say whether the operation called ``name`` computes the gradient of another one, by its scope."""
        return name.startswith(f"{GRADIENT_SCOPE}{operation.name}/")

    def only_for(
        self,
        names: Iterable[str],
        *,
        among: Container[str] | None = None,
        shapes: bool = True,
        gradients: bool = False,
    ) -> frozenset[str]:
        """Return these operations, and all ``among`` the others whose results only such operations take.

        A result that nothing takes may be one of the step's; with ``gradients``, those of gradients are dropped, as
        TensorFlow does. Without ``shapes``, it does not count what takes only the shape of a result.
        """
        chosen = set(names)
        for one in reversed(self.operations):
            users = self.consumers.get(one.name, ())
            needed = {user.name for user in users if shapes or user.type not in SHAPES}
            unused = gradients and not users and one.name.startswith(GRADIENT_SCOPE)
            if (unused or (needed and needed <= chosen)) and (among is None or one.name in among):
                chosen.add(one.name)
        return frozenset(chosen)

    def computed_from(self, fixed: Collection[str] = ()) -> dict[str, Sources]:
        """Return what operations are computed from, by one pass; without those that come before their inputs.

        The results of those that are ``fixed`` count as constants.
        """
        found, known = dict[str, Sources](), self.program.by_name
        for name in known:
            before, own = self._before(name), self.adds(name)
            if name in fixed:
                found[name] = frozenset()
            elif all(one in found or one not in known for one in before):
                inputs = (found.get(one, frozenset((Source.UNKNOWN,))) for one in before)
                found[name] = frozenset(() if own is None else (own,)).union(*inputs)
        return found

    def is_fixed(self, name: str) -> bool:
        """Say whether an operation's values are the same in every step as long as the shapes are."""
        shapes = {one.name for one in self.operations if one.type in SHAPES}
        found = reached((name,), lambda one: () if one in shapes else self._before(one))
        return all(self.adds(one) is None for one in found - shapes)

    def adds(self, name: str) -> Source | None:
        """Return what an operation's result depends on besides its inputs; None is nothing, as of a constant."""
        operation = self.program.by_name.get(name)
        if operation is None or OPAQUE.search(operation.type):
            return Source.UNKNOWN
        if operation.type.startswith(ITERATES):
            return Source.BATCH
        handle = operation.outputs and operation.outputs[0][0] == "resource"  # of a variable
        if READS.search(operation.type) or handle:
            return Source.VARIABLES
        if RANDOM.search(operation.type):
            return Source.RANDOM
        return None if operation.sources or operation.captured or operation.type in CONSTANT else Source.BATCH

    def _before(self, name: str) -> tuple[str, ...]:
        operation = self.program.by_name.get(name)
        if operation is None or READS.search(operation.type) or operation.type.startswith(ITERATES):
            return ()
        return operation.sources

    def feeds_gradients(self, name: str) -> bool:
        """Say whether gradients are computed from an operation; an optimizer's reads come after its writes."""
        return name in self._leading[0]

    def only_metrics(self, name: str) -> bool:
        """Say whether metrics take an operation's results, and no gradient does."""
        operation = self.program.by_name.get(name)
        if operation is None or is_backward(name):
            return False
        _, to_metrics, to_training = self._leading
        return of_metric(operation) or (name in to_metrics and name not in to_training)

    @cached_property
    def _leading(self) -> tuple[frozenset[str], ...]:
        """What leads to gradients, to metrics, and to gradients or updates of variables that are no metric's."""
        known = self.program.by_name
        gradients = [one.name for one in self.operations if is_backward(one.name)]
        metrics = [one.name for one in self.operations if of_metric(one)]
        updates = {one.name for one in self.operations if UPDATES.fullmatch(one.type)}.difference(metrics)
        return tuple(
            reached(ends, lambda name: known[name].sources if name in known else ())
            for ends in (gradients, metrics, updates.union(gradients))
        )


def is_backward(name: str) -> bool:
    """Say whether an operation is of a backward pass, by its name."""
    return GRADIENT.search(name) is not None


def in_body(name: str) -> str:
    """Return the name of an operation within the body of the innermost loop around it."""
    frames = list(FRAME.finditer(name))
    return name[frames[-1].end() + 1 :] if frames else name


def of_metric(operation: Operation) -> bool:
    """Say whether one of Keras's metrics made an operation."""
    return operation.origin is not None and operation.origin.kind == "metric"
