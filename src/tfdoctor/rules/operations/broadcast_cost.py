from tfdoctor.facts.operations.step_parts import Broadcast, Broadcasts
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Operations whose square is a sum of two squares and a product: (a - b)² = a² - 2ab + b².
LINEAR = frozenset(("Sub", "AddV2", "Add"))
# Operations whose sum is a matmul, or two sums of squares and a matmul.
PRODUCTS = frozenset(("Mul", "SquaredDifference"))

SUMS = frozenset(("Sum", "Mean"))
NORMS = frozenset(("EuclideanNorm", "L2Loss"))

SQUARE = 2.0  # The exponent of a square


class ExpandedProduct(Record, OperationRows):
    """An operation of which both operands broadcast, and all operations on tensors of its size that it leads to."""

    row: OperationTime
    shape: tuple[int, ...]
    times: float  # the size of its result over that of its larger operand, or of the sums if these are larger
    rows: tuple[OperationTime, ...]  # forward and backward
    weighted: bool = False  # differences are summed with weights, and not squared

    @property
    def at(self) -> Location | None:
        """The line that expands it."""
        return self.row.operation.at if self.row.operation else self.row.at

    @property
    def remedy(self) -> Remedy:
        """The sums without the expanded tensor."""
        if self.weighted:
            return Remedy("Sum the weighted differences with tf.einsum", CODE["weighted"], self.at)
        if self.row.type != "Mul":  # differences are squared, and not products summed
            return Remedy("Compute squared distances with a matmul", CODE["distances"], self.at)
        return Remedy("Sum the products with tf.einsum", CODE["einsum"], self.at)


class ExpandedProducts(Record):
    """The expanded tensors of the forward pass of which only sums are used, those of most time first."""

    rows: tuple[ExpandedProduct, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow each operation whose result is larger than both operands to what uses its result.

        Sums of products over any axes are a matmul or less: it is enough that every use is such a sum. Open
        dimensions are the batch's: only such are compared with each other.
        """
        found = []
        for row in operations.rows:
            made = row.operation
            if made is None or made.type not in LINEAR | PRODUCTS or is_backward(made.name):
                continue
            tensors = (*made.outputs[:1], *made.inputs)
            shape, *operands = [_filled(shape, program.batch_size) for _, shape in tensors]
            sizes = [prod(one) for one in operands if one is not None]
            largest = max(sizes, default=0)
            if shape is None or not len(sizes) == len(operands) == len(made.inputs):
                continue
            if not 0 < largest < prod(shape) or not _only_summed(made, dataflow, squared=made.type in PRODUCTS):
                continue
            names = _of_its_size(made, dataflow)
            for one in (program.by_name[name] for name in names):
                if one.type in SUMS | NORMS and not is_backward(one.name) and one.outputs:
                    size = prod(_filled(one.outputs[0][1], program.batch_size) or (0,))
                    largest = max(largest, size)  # a sum in the forward pass may be larger than the operands
            rows = tuple(one for one in operations.rows if one.operation and one.operation.name in names)
            weighted = any(_weights(user, made, dataflow) for user in dataflow.consumers.get(made.name, ()))
            found.append(ExpandedProduct(row, shape, prod(shape) / largest, rows, weighted))
        # TensorFlow may run one operation as two: both lead to the same tensors
        known = {one.rows: one for one in reversed(found)}
        return cls(tuple(sorted(known.values(), key=lambda one: -one.ms)))


def _filled(shape: Shape | None, batch: int | None) -> tuple[int, ...] | None:
    sizes = [batch if size is None else size for size in shape or ()]
    known = tuple(size for size in sizes if size is not None)
    return known if shape is not None and len(known) == len(sizes) else None


def _only_summed(made: Operation, dataflow: Dataflow, *, squared: bool) -> bool:
    """Say whether every use of a result's values in the forward pass sums it, squared if it is no product yet."""
    users = dataflow.forward(made)
    for user in users:
        if user.type in SUMS or (user.type in NORMS and not squared):
            continue
        once = user.type in {"Identity", "Square"}
        if user.type == "Mul":
            once = all(_same(source, made, dataflow) for source in user.sources) or _weights(user, made, dataflow)
        elif user.type == "Pow":
            exponent = dataflow.program.by_name.get(user.sources[1])
            once = exponent is not None and exponent.attrs.scalar == SQUARE
        passes = user.type == "Identity"
        if not once or (squared and not passes):
            return False
        if not _only_summed(user, dataflow, squared=squared or not passes):
            return False
    return bool(users)


def _weights(user: Operation, made: Operation, dataflow: Dataflow) -> bool:
    """Say whether an operation multiplies a difference by a smaller tensor: sums of that are two products."""
    if user.type != "Mul" or not user.outputs or user.outputs[0] != made.outputs[0]:
        return False
    pairs = zip(user.sources, user.inputs, strict=False)
    others = [shape for source, (_, shape) in pairs if not _same(source, made, dataflow)]
    return len(others) == 1 and others[0] is not None and others[0] != made.outputs[0][1]


def _same(source: str, made: Operation, dataflow: Dataflow) -> bool:
    """Say whether an operand is a result, or passes it on."""
    operand = dataflow.program.by_name.get(source)
    passes = operand is not None and operand.type == "Identity" and operand.sources == (made.name,)
    return source == made.name or passes


def _of_its_size(made: Operation, dataflow: Dataflow) -> frozenset[str]:
    """Return the operations that tensors of a result's shape connect with it, backward ones included.

    Those that take a tensor of this shape, those that give one, and gradients: that of a product takes the
    operands, and not the product, so that no edge leads there.
    """
    shape, by_name = made.outputs[0][1], dataflow.program.by_name

    def near(name: str) -> Iterator[str]:
        one, gradients = by_name[name], dataflow.gradients.get(name, ())
        yield from (other.name for other in gradients if _has((*other.inputs, *other.outputs), shape))
        if _has(one.outputs, shape):
            yield from (user.name for user in dataflow.consumers.get(name, ()) if user.type not in SHAPES)
        taken = zip(one.sources, one.inputs, strict=False)
        yield from (source for source, (_, given) in taken if given == shape and source in by_name)

    return reached({made.name}, near)


def _has(tensors: Iterable[Tensor], shape: Shape | None) -> bool:
    return any(given == shape for _, given in tensors)


class Limits(RuleLimits):
    times: float = limit(4.0)
    expansion: float = limit(16.0)
    share: float = share_limit(0.02)


def check(
    broadcasts: Broadcasts, operations: Operations, dataflow: Dataflow | None, hardware: Hardware | None,
    products: ExpandedProducts | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Add up the time of repetitions that broadcasting makes unnecessary, and of expanded tensors."""
    repetitions = [repeat for repeat in broadcasts.rows if repeat.times >= limits.times]
    on_cpu = hardware is not None and hardware.kind == DeviceKind.CPU
    if repetitions:
        repeated = _repeated(repetitions, operations, dataflow, limits, on_cpu=on_cpu)
    else:
        healthy = "No small tensor is repeated in memory for an elementwise operation"
        repeated = nothing(healthy, operations.why_unnamed)
    large = [one for one in (products.rows if products else ()) if one.times >= limits.expansion]
    rows = {row.name: row for one in large for row in one.rows}
    part = operations.part(sum(row.ms for row in rows.values()))
    first_of_line = {one.at: one for one in reversed(large)}.values()
    table = Table.of(
        large,
        ("operation", lambda one: one.row.type),
        ("your line", lambda one: one.at),
        ("expanded to", lambda one: " x ".join(map(str, one.shape))),
        ("times its operands and sums", lambda one: count(one.times)),
        ("time per step", lambda one: ms(one.ms)),
    )
    expanded = spared(
        part, limits.share, "in operations on expanded tensors",
        [(row, 0.0) for row in rows.values()],
        finding=f"Tensors that are only summed are expanded by broadcasting: {milliseconds(part.ms)} per step",
        remedies=[one.remedy for one in first_of_line],
        shown=[table],
        alike=len(first_of_line) - 1,
    )  # fmt: skip
    if not isinstance(expanded, Finding):
        return repeated
    return expanded.joined(repeated) if isinstance(repeated, Finding) else expanded


def _repeated(
    repetitions: list[Broadcast], operations: Operations, dataflow: Dataflow | None, limits: Limits, *, on_cpu: bool
) -> Verdict:
    """Judge the repetitions: on a CPU broadcasting takes as long, and only computing for each copy counts."""
    repeating_ms = sum(repeat.ms for repeat in repetitions)
    recomputing_ms = sum(repeat.chain_ms for repeat in repetitions)
    share = ((0.0 if on_cpu else repeating_ms) + recomputing_ms) / operations.total_ms
    repeating, same = f"takes {milliseconds(repeating_ms)} per step", "omputing the same values for each copy"
    summary = f"Repeating small tensors in memory {repeating}"
    if not repeating_ms:
        summary = f"C{same} of a tensor takes {milliseconds(recomputing_ms)} per step"
    elif recomputing_ms:
        summary = f"{summary}, c{same} {milliseconds(recomputing_ms)}"
    at = next((repeat.row.at for repeat in repetitions if repeat.row.at), None)
    remedies = [Remedy("Move the activation before the repetition", CODE["before"], at)] if recomputing_ms else []
    if repeating_ms and not on_cpu:
        remedies.append(Remedy("Remove the repetition and let the operation broadcast", CODE["broadcast"], at))
    table = Table.of(
        repetitions,
        ("operation", lambda repeat: repeat.row.layer or repeat.row.name),
        ("your line", lambda repeat: repeat.row.at),
        ("copies", lambda repeat: count(repeat.times)),
        ("time per step", lambda repeat: ms(repeat.ms + repeat.chain_ms)),
    )
    effects = []  # on what is computed once; but on a CPU also the repetitions, and what reads the small tensor
    for repeat in repetitions:
        effects += [replace(row.scaled(1.0 / repeat.times, Bound.AT_MOST), narrows=True) for row in repeat.chain]
        if on_cpu:
            continue
        effects += [row.scaled(0.0, Bound.AT_MOST) for row in repeat.rows]
        # ``nbytes`` counts what the repetition reads and writes: this is the written part.
        written_bytes = (repeat.row.nbytes or 0.0) * repeat.times / (repeat.times + 1)
        users = dataflow.consumers.get(repeat.row.name, ()) if dataflow and written_bytes else ()
        names = {user.name for user in users} - {row.name for row in (*repeat.rows, *repeat.chain)}
        for row in operations.rows:
            if row.name in names and row.nbytes:
                effects.append(row.scaled(max(0.0, 1.0 - written_bytes / row.nbytes), Bound.AT_MOST))
    why = "; broadcasting takes about as long on a CPU" if on_cpu else ""
    return judged(
        Measure("time repeating small tensors per step", ms(repeating_ms)),
        Measure("time computing repeated values per step", ms(recomputing_ms)),
        Measure.share("share of the compute time in avoidable repetition", share, limits.share),
        healthy=f"{summary}{why}",
        finding=summary,
        details=[table],
        remedies=remedies,
        effects=effects,
    )
