from tfdoctor.facts.run.operation_types import PASSING
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


ONE_HOT = "OneHot"
# The operation by which the gradient of some of a table's rows becomes a gradient of all of them.
DENSIFIES = "UnsortedSegmentSum"


class WholeTable(Record):
    """A table of which a step processes every row.

    ``rows`` are what need not be: a product with one-hot rows that a lookup would replace; a sum with its
    gradients; an update of rows that were not looked up.
    """

    use: str
    name: str
    at: Location | None
    entries: int  # rows of the table
    lookups: int | None  # per step, repetitions included; None when a dimension is open
    rows: tuple[OperationTime, ...]
    update: tuple[OperationTime, ...] = ()  # on all rows only because the gradient of a sum has all of them
    width: int | None = None  # of an entry, in values

    @property
    def ms(self) -> float:
        """The time of the operations, in ms per step."""
        return sum(row.ms for row in (*self.rows, *self.update))

    @property
    def used(self) -> float:
        """The share of the rows that is looked up, at most."""
        return min(1.0, (self.lookups or 0) / self.entries)


class EmbeddingTables(Record):
    """Tables in products and in updates; ``scattered`` counts those of which only the rows in use were updated.

    ``summed``: a step uses only sums over all their rows and the rows looked up; those of most time first.
    ``unseen`` says why the use of the step's one-hot rows is unknown; "" where it is known.
    """

    one_hot: tuple[WholeTable, ...]
    dense: tuple[WholeTable, ...]
    scattered: int
    unseen: str = ""
    summed: tuple[WholeTable, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow | Unavailable) -> Self:
        """Find the tables in the graph, and their time in the trace.

        Without the graph's edges there are neither ``one_hot`` nor ``summed``.
        """
        made = [(row, row.operation) for row in operations.rows if row.operation]
        sums = [(one.outputs[0][1], row, one) for row, one in made if row.type == DENSIFIES and one.outputs]
        dense = []  # tables whose optimizer updates every row
        for table in dict.fromkeys(shape for shape, _, _ in sums if shape and None not in shape):
            rows = [row for shape, row, _ in sums if shape == table]
            first, inputs = next((row, one.inputs) for shape, row, one in sums if shape == table)
            summed = inputs[0][1] if inputs else None
            on = [row for row, one in made if any(of == table for _, of in (*one.inputs, *one.outputs))]
            # rows may be gathered from a result as well
            if summed and summed[0] is not None and any(UPDATES.fullmatch(row.type) for row in on):
                own = tuple(row for row in on if row in rows or row.layer == first.layer)
                name = first.layer or first.name
                dense.append(WholeTable("update of all rows", name, first.at, table[0] or 0, summed[0], own))
        scattered = sum("Scatter" in row.type for row in operations.rows)
        if isinstance(dataflow, Unavailable):
            unseen = str(dataflow) if any(row.type == ONE_HOT for row in operations.rows) else ""
            return cls((), tuple(dense), scattered, unseen)
        lookups = defaultdict[str, list[Operation]](list)  # by the handle of the table's variable
        for one in program.by_name.values():
            if one.type in LOOKUPS and len(one.inputs) > 1 and not is_backward(one.name):
                read = dataflow.source(one, 0)
                reader = one if one.type == "ResourceGather" else read if read and read.type == READ else None
                if reader and reader.sources:
                    lookups[reader.sources[0]].append(one)
        found = (_summed(handle, gathers, operations, dataflow) for handle, gathers in lookups.items())
        by_time = tuple(sorted(filter(None, found), key=lambda one: -one.ms))
        return cls(tuple(_one_hot(operations, program, dataflow)), tuple(dense), scattered, summed=by_time)


def _one_hot(operations: Operations, program: Program, dataflow: Dataflow) -> Iterator[WholeTable]:
    """Yield the products with their gradients, and the one-hot operation where nothing else uses its rows."""
    matmuls = (one for one in program.by_name.values() if one.type in MATMULS)
    for matmul in (one for one in matmuls if not one.name.startswith("gradient")):
        factors = (dataflow.source(matmul, 0), dataflow.source(matmul, 1))
        one_hot = next((one for one in factors if one is not None and one.type == ONE_HOT), None)
        entries = (one_hot.outputs[0][1] or (None,))[-1] if one_hot and one_hot.outputs else None
        if one_hot is None or not entries:
            continue
        users = [user.name for user in dataflow.users(one_hot)]
        only_use = all(user == matmul.name or dataflow.is_gradient_of(user, matmul) for user in users)
        names = {matmul.name, one_hot.name} if only_use else {matmul.name}
        rows = [row for row in operations.rows if row.built in names or dataflow.is_gradient_of(row.name, matmul)]
        indices = one_hot.inputs[0][1] if one_hot.inputs else None
        # open for a flat list, even when the batch's size is known
        shape = None if indices == (None,) else program.shape(indices)
        table = matmul.inputs[1 - factors.index(one_hot)][1] if len(matmul.inputs) > 1 else None
        widths = [size for size in table or () if size != entries]
        width = widths[0] if table and len(table) == len(widths) + 1 == 2 else None  # noqa: PLR2004 - rank 2
        if rows:
            name, lookups = matmul.layer or "unknown", None if shape is None else prod(shape)
            yield WholeTable("one-hot matmul", name, rows[0].at, entries, lookups, tuple(rows), width=width)


REGULARIZER = "regularizer"  # The kind of origin of operations that Keras's regularizers made
SUMS = frozenset(("Sum", "Mean", "L2Loss", "EuclideanNorm", "Max", "Prod"))
LOOKUPS = frozenset(("GatherV2", "Gather", "ResourceGather"))
READ = "ReadVariableOp"
PASSED = SUMS | BROADCASTING | UNARY | PASSING  # Types on the way from a table to its sums


def _summed(handle: str, gathers: list[Operation], operations: Operations, dataflow: Dataflow) -> WholeTable | None:
    """Return the sums over the variable of a handle; None where something needs all rows, or a shape is open."""
    program, by_name = dataflow.program, dataflow.program.by_name
    reads = [user for user in dataflow.consumers.get(handle, ()) if user.type == READ]
    tensor = next((read.outputs[0][1] for read in reads if read.outputs), None)
    shape, lookups = program.shape(tensor), [program.shape(one.inputs[1][1]) for one in gathers]
    summing: dict[str, Operation] = {}  # forward operations on all rows that lead to sums
    for read in reversed(reads):
        own, ahead = dict[str, Operation](), [read]
        while ahead:
            one = ahead.pop()
            own[one.name] = one
            users = () if one.type in SUMS else [o for o in dataflow.forward(one) if o.type not in LOOKUPS]
            if any(user.type not in PASSED and not UPDATES.fullmatch(user.type) for user in users):
                return None
            ahead += [user for user in users if user.name not in own]
        if any(one.type in SUMS for one in own.values()):
            summing |= {name: one for name, one in own.items() if name not in summing}
    if not shape or None in lookups or not summing:
        return None
    # what reads other variables, moments of the optimizer's, with which the update needs all rows anyway
    moments = {o.name for o in by_name.values() if o.type == READ and o.sources != (handle,)}

    def near(name: str) -> Iterator[str]:  # what tensors of the table's shape connect with it, but no lookups
        one = by_name[name]
        others = [by_name.get(at) for at, (_, of) in zip(one.sources, one.inputs, strict=False) if of == tensor]
        if any(of == tensor for _, of in one.outputs) and name not in moments:
            others += dataflow.consumers.get(name, ())
        yield from (other.name for other in others if other and other.type not in LOOKUPS)

    connected = reached(summing, near)  # where an AddN adds gradients
    back = (name for name in connected if is_backward(name) or by_name[name].type == "AddN")
    own_names = {*summing, *(name for name in back if by_name[name].type != DENSIFIES)}
    update = connected - own_names if connected.isdisjoint(moments) else frozenset[str]()
    penalty = [one.origin.name for one in summing.values() if one.origin and one.origin.kind == REGULARIZER]
    made = program.layer_by_name.get(gathers[0].layer) if penalty else None
    lines = [made.at if made else None, *(one.at for one in summing.values() if one.type != READ)]
    return WholeTable(
        f"{penalty[0]} penalty" if penalty and penalty[0] else "sum of all rows",
        gathers[0].layer or handle,
        next(filter(None, lines), None),
        shape[0],
        sum(prod(one or ()) for one in lookups),
        tuple(row for row in operations.rows if row.built in own_names),
        tuple(row for row in operations.rows if row.built in update),
    )


ON_TPU = "on a TPU, matmuls with one-hot rows run on the matrix unit and may be faster than lookups"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=NotApplicable(reason=ON_TPU)),)

# The two calls of a lookup, gather and scatter, whatever they move (measured: 0.08 ms on a CPU with two cores, 384
# rows of 32 values, TensorFlow 2.21).
LOOKUP_MS = 0.1
# Passes over the looked-up vectors: gathering reads and writes them, scattering their gradients reads them, and
# reads and writes the table's rows.
LOOKUP_PASSES = 5

HOT, UPDATED, PENALTIES = "one-hot matmuls", "optimizer updates", "penalties and sums"
REMEDIES = {  # what to do, the code, and what that changes
    HOT: ("Look up the rows instead of multiplying one-hot rows", "look-up",
          "a number outside of the table becomes an error instead of a row of zeros"),
    PENALTIES: ("Penalize the looked-up vectors instead of the whole table", "penalize",
                "rows are penalized when they are looked up, so the factor has to be chosen again"),
    UPDATED: ("Train the table with an optimizer that updates only the rows in use", "sparse", ""),
}  # fmt: skip


class Limits(RuleLimits):
    touched: float = limit(0.25)
    update: float = share_limit(0.1)


def check(
    tables: EmbeddingTables, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Price one-hot matmuls at the bytes of a lookup, updates of whole tables at the rows in use."""

    def sparse(work: Iterable[WholeTable], least_ms: float) -> list[WholeTable]:
        few = [one for one in work if one.lookups is not None and one.lookups <= limits.touched * one.entries]
        return few if sum(one.ms for one in few) >= least_ms else []

    least_ms = limits.update * operations.total_ms
    summed = sparse(tables.summed, least_ms)
    named = {row.name for one in summed for row in (*one.rows, *one.update)}  # which explains these updates
    apart = [replace(one, rows=tuple(row for row in one.rows if row.name not in named)) for one in tables.dense]
    updates = sparse((one for one in apart if any(row.type == DENSIFIES for row in one.rows)), least_ms)
    kinds = {HOT: tables.one_hot, UPDATED: updates, PENALTIES: summed}
    found = [table for used in kinds.values() for table in used]
    if not found:
        few = sparse(tables.dense, 0.0)
        spent = milliseconds(sum(update.ms for update in few))
        in_use = f"more than {percent(limits.touched)} of their rows in use"
        healthy = why_not(
            (few, f"Whole updates of embedding tables with few rows in use take only {spent} per step"),
            (tables.dense, f"Embedding tables that are updated as a whole have {in_use}"),
            (tables.scattered, "The optimizer updates only the embedding rows that were looked up"),
            (True, "No gradient processes a whole embedding table"),
        )
        return nothing(healthy, operations.why_unnamed, tables.unseen)
    names = " and ".join(name for name, used in kinds.items() if used).capitalize()
    shown = Table.of(
        found,
        ("layer", lambda one: one.name),
        ("your line", lambda one: one.at),
        ("operation", lambda one: one.use),
        ("table rows", lambda one: count(one.entries)),
        ("rows looked up", lambda one: None if one.lookups is None else count(one.lookups)),
        ("time per step", lambda one: ms(one.ms)),
    )
    remedies = []
    for kind, (action, code, altered) in REMEDIES.items():
        every = dict.fromkeys(one.at for one in kinds[kind])
        lines = [*every] if kind == PENALTIES else sorted(every, key=lambda at: at is None)[:1]  # a known one
        remedies += [Remedy(action, CODE[code], at, changes=altered) for at in lines]
    lookups = (effect for table in tables.one_hot for effect in _lookup(table, operations, hardware))
    # the update of the rows in use remains; without sums the optimizer updates those alone
    updating = (
        Effect(Stage.DEVICE, one.used, f"{one.name} (rows in use)", ms(one.ms), bound=Bound.AT_MOST)
        for one in updates
    )
    parts = (part for one in summed for part in ((one.rows, 0.0), (one.update, one.used)))
    effects = (row.scaled(left, Bound.AT_MOST) for rows, left in parts for row in rows)
    total_ms = sum(one.ms for one in found)
    return spared(
        operations.part(total_ms),
        None,
        "processing whole embedding tables",
        (*lookups, *updating, *effects),
        finding=f"{names} process every row of an embedding table: {milliseconds(total_ms)} per step",
        remedies=remedies,
        shown=[shown],
    )


def _lookup(table: WholeTable, operations: Operations, hardware: Hardware) -> Iterator[Effect]:
    """Remove all operations but the shortest one that can stand for the lookup."""
    # Bytes move at the rate that wrote the one-hot rows, else at that of this run.
    wrote = [row for row in table.rows if row.type == ONE_HOT and row.nbytes and row.ms]
    seconds = sum(row.ms for row in wrote) * 1e-3
    rate = sum((row.nbytes or 0) * row.calls for row in wrote) / seconds if seconds else operations.streaming_rate
    if hardware.kind != DeviceKind.CPU or table.lookups is None or table.width is None or not rate:
        return (row.scaled(0.0, Bound.AT_MOST) for row in table.rows)
    lookup_ms = LOOKUP_MS + LOOKUP_PASSES * table.lookups * table.width * 4 / rate * 1e3
    longer = [row for row in table.rows if row.ms >= lookup_ms]
    if not longer:
        return (row.scaled(1.0) for row in table.rows)
    stays = min(longer, key=lambda row: row.ms)
    return (row.scaled(lookup_ms / row.ms if row is stays else 0.0) for row in table.rows)
