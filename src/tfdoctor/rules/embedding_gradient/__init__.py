from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.operation_types import BROADCASTING, MATMULS, PASSING, SHAPES, UNARY, UPDATES

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the data have to hold numbers of rows instead of one-hot rows"

ONE_HOT = "OneHot"
# The operation by which the gradient of some of a table's rows becomes a gradient of all of them.
DENSIFIES = "UnsortedSegmentSum"


class WholeTable(Record):
    """A table of which a step processes every row.

    ``rows`` are what need not be: a product with one-hot rows that a lookup would replace; a sum with its
    gradients; an update of rows that were not looked up. ``update`` is what follows a sum in the optimizer, on all
    rows, where it would change only those in use if not for this gradient.
    """

    use: str
    name: str
    at: Location | None
    entries: int  # rows of the table
    lookups: int | None  # per step, repetitions included; None when a dimension is open
    rows: tuple[OperationTime, ...]
    update: tuple[OperationTime, ...] = ()
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

    ``unseen`` says why the use of the step's one-hot rows is unknown; "" where it is known.
    """

    one_hot: tuple[WholeTable, ...]
    dense: tuple[WholeTable, ...]
    scattered: int
    unseen: str = ""

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow | Unavailable) -> Self:
        """Find the tables in the graph, and their time in the trace.

        Finding matmuls of one-hot rows needs the graph's edges: without them ``one_hot`` is empty.
        """
        groups: dict[tuple[int, ...], list[OperationTime]] = defaultdict(list)
        for row in operations.rows:  # tables whose optimizer updates every row
            made = row.operation.outputs[0][1] if row.operation and row.operation.outputs else None
            if row.type == DENSIFIES and made and None not in made:
                groups[tuple(size or 0 for size in made)].append(row)
        dense = []
        for table, sums in groups.items():  # rows may be gathered from a result as well
            first = sums[0]
            summed = first.operation.inputs[0][1] if first.operation and first.operation.inputs else None
            given = ((row, row.operation) for row in operations.rows)
            on = [row for row, one in given if one and any(of == table for _, of in (*one.inputs, *one.outputs))]
            if summed and summed[0] is not None and any(UPDATES.fullmatch(row.type) for row in on):
                rows = tuple(row for row in on if row in sums or row.layer == first.layer)
                name = first.layer or first.name
                dense.append(WholeTable("update of all rows", name, first.at, table[0], summed[0], rows))
        scattered = sum("Scatter" in row.type for row in operations.rows)
        if isinstance(dataflow, Unavailable):
            uses_one_hot = any(row.type == ONE_HOT for row in operations.rows)
            return cls((), tuple(dense), scattered, str(dataflow) if uses_one_hot else "")
        return cls(tuple(_one_hot(operations, program, dataflow)), tuple(dense), scattered)


def _one_hot(operations: Operations, program: Program, dataflow: Dataflow) -> Iterator[WholeTable]:
    """Yield the products with their gradients, and the one-hot operation where nothing else uses its rows."""
    for matmul in program.by_name.values():
        if matmul.type not in MATMULS or matmul.name.startswith("gradient"):
            continue
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


class TableSums(Record):
    """The tables of which a step uses only sums over all rows and the rows looked up, those of most time first."""

    tables: tuple[WholeTable, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow what reads each table that the step looks rows up in."""
        lookups: dict[str, list[Operation]] = {}
        for one in dataflow.program.by_name.values():
            if one.type in LOOKUPS and len(one.inputs) > 1 and not is_backward(one.name):
                read = dataflow.source(one, 0)
                reader = one if one.type == "ResourceGather" else read if read and read.type == READ else None
                if reader and reader.sources:
                    lookups.setdefault(reader.sources[0], []).append(one)
        found = (_summed(handle, gathers, operations, dataflow) for handle, gathers in lookups.items())
        return cls(tuple(sorted(filter(None, found), key=lambda one: -one.ms)))


def _summed(handle: str, gathers: list[Operation], operations: Operations, dataflow: Dataflow) -> WholeTable | None:
    """Return the sums over the variable of a handle; None where something needs all rows, or a shape is open."""
    program = dataflow.program
    reads = [user for user in dataflow.consumers.get(handle, ()) if user.type == READ]
    tensor = next((read.outputs[0][1] for read in reads if read.outputs), None)
    shape, lookups = program.shape(tensor), [program.shape(one.inputs[1][1]) for one in gathers]
    summing = _summing(reads, dataflow)
    if not shape or None in lookups or not summing:
        return None
    connected = _connected(summing, handle, tensor, dataflow)
    back = (one for one in connected if is_backward(one.name) or one.type == "AddN")  # which adds gradients
    own = {*(one.name for one in summing), *(one.name for one in back if one.type != DENSIFIES)}
    moments = any(_reads_other(one, handle) for one in connected)  # the update needs all rows anyway
    update = set() if moments else {one.name for one in connected} - own
    layer = gathers[0].layer
    made = program.layer_by_name.get(layer)
    penalty = next((one.origin.name for one in summing if one.origin and one.origin.kind == REGULARIZER), None)
    line = next((one.at for one in summing if one.type != READ and one.at), None)
    return WholeTable(
        f"{penalty} penalty" if penalty else "sum of all rows",
        layer or handle,
        made.at if penalty is not None and made and made.at else line,
        shape[0],
        sum(prod(one or ()) for one in lookups),
        tuple(row for row in operations.rows if row.built in own),
        tuple(row for row in operations.rows if row.built in update),
    )


def _summing(reads: list[Operation], dataflow: Dataflow) -> list[Operation]:
    """Return the forward operations on all rows that lead to sums; [] where something needs the rows."""
    found: dict[str, Operation] = {}
    for read in reversed(reads):
        own, ahead = dict[str, Operation](), [read]
        while ahead:
            one = ahead.pop()
            own[one.name] = one
            users = () if one.type in SUMS else dataflow.consumers.get(one.name, ())
            forward = [user for user in users if user.type not in LOOKUPS | SHAPES and not is_backward(user.name)]
            passing = SUMS | BROADCASTING | UNARY | PASSING
            if any(user.type not in passing and not UPDATES.fullmatch(user.type) for user in forward):
                return []
            ahead += [user for user in forward if user.name not in own]
        if any(one.type in SUMS for one in own.values()):
            found |= {name: one for name, one in own.items() if name not in found}
    return list(found.values())


def _connected(first: Iterable[Operation], handle: str, shape: Shape | None, dataflow: Dataflow) -> list[Operation]:
    """Return all operations that tensors of the table's shape connect with these, but no lookups."""
    ahead = list(first)
    reached = {one.name: one for one in ahead}
    while ahead:
        one = ahead.pop()
        makes = any(given == shape for _, given in one.outputs) and not _reads_other(one, handle)
        near = list(dataflow.consumers.get(one.name, ())) if makes else []
        for source, (_, given) in zip(one.sources, one.inputs, strict=False):
            maker = dataflow.program.by_name.get(source)
            near += [maker] if given == shape and maker is not None else []
        new = {other.name: other for other in near if other.name not in reached and other.type not in LOOKUPS}
        reached |= new
        ahead += new.values()
    return list(reached.values())


def _reads_other(one: Operation, handle: str) -> bool:
    """Say whether an operation reads another variable: a moment of the optimizer's."""
    return one.type == READ and one.sources != (handle,)


ON_TPU = "on a TPU, matmuls with one-hot rows run on the matrix unit and may be faster than lookups"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=NotApplicable(reason=ON_TPU)),)

# The two calls of a lookup, gather and scatter, whatever they move (measured: 0.08 ms on a CPU with two cores, 384
# rows of 32 values, TensorFlow 2.21).
LOOKUP_MS = 0.1
# Passes over the looked-up vectors: gathering reads and writes them, scattering their gradients reads them, and
# reads and writes the table's rows.
LOOKUP_PASSES = 5


@dataclass(frozen=True, slots=True)
class Limits:
    touched: float = limit(0.25)
    update: float = share_limit(0.1)


def check(
    tables: EmbeddingTables,
    operations: Operations,
    hardware: Hardware,
    sums: TableSums | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Price one-hot matmuls at the bytes of a lookup, updates of whole tables at the rows in use."""

    def sparse(
        work: Iterable[WholeTable], least_ms: float = limits.update * operations.total_ms
    ) -> list[WholeTable]:
        few = [one for one in work if one.lookups is not None and one.lookups <= limits.touched * one.entries]
        return few if sum(one.ms for one in few) >= least_ms else []

    summed = sparse(sums.tables if sums else ())
    named = {row.name for one in summed for row in (*one.rows, *one.update)}  # which explains these updates
    apart = [replace(one, rows=tuple(row for row in one.rows if row.name not in named)) for one in tables.dense]
    updates = sparse(one for one in apart if any(row.type == DENSIFIES for row in one.rows))
    kinds = {"one-hot matmuls": tables.one_hot, "optimizer updates": updates, "penalties and sums": summed}
    found = [table for used in kinds.values() for table in used]
    if not found:
        healthy = "No gradient processes a whole embedding table"
        if few := sparse(tables.dense, 0.0):
            spent = milliseconds(sum(update.ms for update in few))
            healthy = f"Whole updates of embedding tables with few rows in use take only {spent} per step"
        elif tables.dense:
            in_use = f"more than {percent(limits.touched)} of their rows in use"
            healthy = f"Embedding tables that are updated as a whole have {in_use}"
        elif tables.scattered:
            healthy = "The optimizer updates only the embedding rows that were looked up"
        return nothing(healthy, operations.why_unnamed, tables.unseen)
    total_ms = sum(one.ms for one in found)
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
    lookups = (effect for table in tables.one_hot for effect in _lookup(table, operations, hardware))
    # the update of the rows in use remains; without sums the optimizer updates those alone
    updating = (
        Effect(Stage.DEVICE, one.used, f"{one.name} (rows in use)", ms(one.ms), bound=Bound.AT_MOST)
        for one in updates
    )
    parts = (part for one in summed for part in ((one.rows, 0.0), (one.update, one.used)))
    effects = (row.scaled(left, Bound.AT_MOST) for rows, left in parts for row in rows)
    return spared(
        operations.part(total_ms),
        None,
        "processing whole embedding tables",
        (*lookups, *updating, *effects),
        finding=f"{names} process every row of an embedding table: {milliseconds(total_ms)} per step",
        remedies=_remedies(tables.one_hot, updates, summed),
        shown=[shown],
    )


def _lookup(table: WholeTable, operations: Operations, hardware: Hardware) -> Iterator[Effect]:
    """Remove all operations but the shortest one that can stand for the lookup.

    That takes the time of the calls to gather and scatter, and of float32 bytes at the rate that wrote the one-hot
    rows, else at that of this run.
    """
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


def _remedies(
    one_hot: Iterable[WholeTable], updates: Iterable[WholeTable], summed: Iterable[WholeTable]
) -> Iterator[Remedy]:
    if one_hot:
        yield Remedy(
            "Look up the rows instead of multiplying one-hot rows",
            CODE["look-up"],
            next((table.at for table in one_hot if table.at), None),
            "row-lookup",
            changes="a number outside of the table becomes an error instead of a row of zeros",
        )
    for line in dict.fromkeys(one.at for one in summed):
        yield Remedy(
            "Penalize the looked-up vectors instead of the whole table",
            CODE["penalize"],
            line,
            "row-penalty",
            changes="rows are penalized when they are looked up, so the factor has to be chosen again",
        )
    if updates:
        at = next((update.at for update in updates if update.at), None)
        action = "Train the table with an optimizer that updates only the rows in use"
        yield Remedy(action, CODE["sparse"], at)
