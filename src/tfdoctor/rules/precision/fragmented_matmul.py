from tfdoctor.facts.operations.matmuls import repeated
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Siblings(Record, OperationRows):
    """Matmuls of one tensor with weights of one shape, and their gradients."""

    source: str
    weights: Shape
    matmuls: int  # forward
    rows: tuple[OperationTime, ...]  # and their gradients

    @property
    def each_ms(self) -> float:
        """The mean time of a call, in ms."""
        return self.ms / self.calls


class SiblingMatmuls(Record):
    """The groups of two or more, the most expensive first."""

    groups: tuple[Siblings, ...]

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Group the forward matmuls by the operation that makes their first factor, and the shape of the weights.

        Which of several results of one shape is taken is not recorded: an unrolled recurrent layer multiplies one
        time step after another of ``unstack``, which are different tensors.
        """
        groups: dict[tuple[str, Shape | None], list[Operation]] = defaultdict(list)
        for operation in dataflow.program.by_name.values():
            if operation.type in MATMULS and not operation.name.startswith("gradient"):
                source = dataflow.source(operation, 0)
                distinct = source is not None and len(set(source.outputs)) == len(source.outputs)
                if source is not None and distinct and len(operation.inputs) > 1:
                    groups[source.name, operation.inputs[1][1]].append(operation)
        found = []
        for (source_name, weights), members in groups.items():
            # A matmul may run under the name of its bias or activation.
            names = {one.name for one in members}
            ran = [row for row in operations.rows if row.operation is not None and row.operation.name in names]
            if weights and len(members) > 1 and len(ran) > 1:
                back = (
                    row
                    for row in operations.matrix
                    if any(dataflow.is_gradient_of(row.name, member) for member in members)
                )
                found.append(Siblings(source_name, weights, len(ran), (*ran, *back)))
        return cls(tuple(sorted(found, key=lambda group: -group.ms)))


class Limits(RuleLimits):
    products: float = limit(4.0)
    each_ms: float = limit(0.2)
    unseen: float = share_limit(0.05)


def check(siblings: SiblingMatmuls, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Keep the time of one call of each group of small matmuls, forward and backward."""
    groups = [group for group in siblings.groups if group.matmuls >= limits.products]
    small = [group for group in groups if group.each_ms <= limits.each_ms]
    if not small and groups:
        longest = milliseconds(max(group.each_ms for group in groups))
        large = f"The matmuls that share a tensor are large enough: up to {longest} per call"
        return nothing(large, operations.why_unnamed)
    if not small:
        unseen = repeated(operations, limits.products, limits.each_ms, limits.unseen)
        none = "No tensor is multiplied by many weights of the same shape"
        return nothing(none, operations.why_unnamed, f"{unseen}: {LOOP}" if unseen else "")
    part, rows = operations.part(sum(group.ms for group in small)), [row for group in small for row in group.rows]
    table = Table.of(
        small,
        ("tensor", lambda group: group.source),
        ("your line", lambda group: next((row.at for row in group.rows if row.at), None)),
        ("matmuls", lambda group: count(group.matmuls)),
        ("weights", lambda group: " x ".join(str(size or "?") for size in group.weights)),
        ("time per step with gradients", lambda group: ms(group.ms)),
    )
    at = next((row.at for row in rows if row.at), None)
    return spared(
        part,
        None,
        "in small matmuls of shared tensors",
        [(row, 1.0 / group.matmuls) for group in small for row in group.rows],
        finding=f"{counted(len(rows), 'small matmul')} take {milliseconds(part.ms)} per step; "
        f"{counted(len(small), 'larger matmul')} (gradients included) could replace them",
        remedies=[Remedy("Run one larger matmul and split its result", CODE["one-matmul"], at)],
        more=[Measure("time per call of a small matmul", ms(part.ms / len(rows)), ms(limits.each_ms))],
        shown=[table],
    )


LOOP = (
    "whether they share an input is unknown. The loop over time of a recurrent layer also takes host time: "
    "try `unroll=True` (for short sequences) or jit_compile=True and measure"
)
