from itertools import groupby

from tfdoctor.facts.operations.added_gradients import AddedGradients
from tfdoctor.facts.operations.dataflow import of_metric
from tfdoctor.facts.run.operation_types import READS
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


ASSIGN = "AssignVariableOp"  # What ``variable.assign`` runs, in a graph or outside of any
# The beginning of the types of writes that do not show the variable's shape: of parts of it, or by its moments.
ANY = "Resource"


def _kept_reads(dataflow: Dataflow, operations: Operations) -> Mapping[str, tuple[Operation, ...]]:
    """Return the reads of variables that operations depend on besides constants, by the operation's name.

    Of operations whose results stay the same unless Python assigns a variable between two steps: no operation of
    the program assigns one of the variables, and none is trained.
    """
    built = dataflow.program.by_name
    stays = _stays(dataflow.program, operations)
    found: dict[str, frozenset[str] | None] = {}  # in the order of the graphs; None depends on more
    for name, one in built.items():
        read = bool(READS.search(one.type))
        values = one.sources[1:] if read else one.sources
        own = stays(one) if read else dataflow.adds(name) is None
        same = [source for source in values if source in built and built[source].graph == one.graph]
        before = [reads for source in same if (reads := found.get(source)) is not None]
        known = own and len(before) == len(values)
        found[name] = frozenset([name] if read else ()).union(*before) if known else None
    # a variable has a gradient where an operation has one that depends on nothing else
    given = dataflow.gradients.keys() & found.keys()
    trained = {_handle(built[read]) for name in given for read in found[name] or ()}
    kept = {name: tuple(built[one] for one in sorted(of)) for name, of in found.items() if of}
    return {name: of for name, of in kept.items() if trained.isdisjoint(map(_handle, of))}


def _stays(program: Program, operations: Operations) -> Callable[[Operation], bool]:
    """Return what says whether nothing assigns a read variable.

    A graph that reads it by the same name at the same line was traced from the same code: TensorFlow traces a
    function twice whose first call creates variables. There, as in its own graph, its handle tells who assigns it;
    in other graphs its type and shape do.
    """
    traced: dict[object, set[int]] = defaultdict(set)
    used = set[tuple[int, str]]()  # variables that an operation takes that does not only read: it writes or calls
    for one in program.operations:
        if READS.search(one.type):
            traced[one.name, one.sources, one.at].add(one.graph)
        else:
            used.update((one.graph, source) for source in one.sources)
    # Where no graph writes, the optimizer runs between the calls of the step. Where a variable is assigned outside
    # of the graphs in the traced steps, it is not known which.
    outside = any(one.type == ASSIGN and one.name not in program.by_name for one in operations.rows)
    writes = [one for one in program.operations if UPDATES.fullmatch(one.type) and not of_metric(one)]

    def fits(shape: Shape | None, other: Shape | None) -> bool:
        if shape is None or other is None:
            return True
        sizes = zip(shape, other, strict=False)
        return len(shape) == len(other) and all(one == same or None in {one, same} for one, same in sizes)

    def stays(read: Operation) -> bool:
        graph, handle = _handle(read)
        made = program.by_name.get(handle)
        argument = made is not None and made.type == "Placeholder" and made.graph == graph
        if not argument or not read.outputs or not writes or outside:
            return False
        same = traced[read.name, read.sources, read.at]
        if not used.isdisjoint((graph, handle) for graph in same):
            return False
        dtype, shape = read.outputs[0]
        for write in (one for one in writes if one.graph not in same):
            values = [tensor for tensor in write.inputs if tensor[0] != "resource"]
            shapes = [other for own, other in values if own == dtype]
            if not values or (shapes and write.type.startswith(ANY)) or any(fits(shape, one) for one in shapes):
                return False
        return True

    return stays


def _handle(read: Operation) -> tuple[int, str]:
    """Return a read variable, as one graph knows it: the number of the graph, and the name there."""
    return read.graph, read.sources[0] if read.sources else ""


SHOWN_PAIRS = 5  # Pairs of lines that are shown: those of most time
# Operations that take no longer than reading their stored result.
FILLS = frozenset(("Fill", "ZerosLike", "OnesLike", "Const", "HostConst", "Identity"))

# Operations that only move elements, as the methods of a library do with the result that the user keeps.
MOVES = frozenset((
    "MatrixBandPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "Transpose", "Reshape",
    "ExpandDims", "Squeeze", "Slice", "StridedSlice", "GatherV2", "ConcatV2", "Pack", "Unpack", "Cast",
))  # fmt: skip


def _types(rows: Iterable[OperationTime]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.type for row in sorted(rows, key=lambda row: -row.ms)))


class Repeat(Record):
    """Operations that compute again what the ones of another line have computed in the same step."""

    first: Location | None
    again: Location | None
    rows: tuple[OperationTime, ...]  # of the later computation, forward
    gradients: tuple[OperationTime, ...] = ()  # of these

    @property
    def ms(self) -> float:
        """Their time with that of their gradients, in ms per step."""
        return sum(row.ms for row in (*self.rows, *self.gradients))

    @property
    def title(self) -> str:
        """The layers that are called again, or the types of the operations, those of most time first."""
        layers = tuple(dict.fromkeys(row.layer for row in self.rows if row.layer))
        return ", ".join((layers or _types(self.rows))[:3])

    @property
    def effects(self) -> Iterator[Effect]:
        """What becomes shorter where it is computed once."""
        yield from (row.scaled(0.0) for row in self.rows)
        yield from (row.scaled(0.0, Bound.AT_MOST) for row in self.gradients)

    @property
    def remedy(self) -> Remedy:
        """The change at the later line."""
        first = f" of {location(self.first)}" if self.first and self.first != self.again else ""
        return Remedy(f"Compute it once and use the result{first} again", CODE["reuse"], self.again)


class Constant(Record, OperationRows):
    """The operations of a line whose results are the same in every step.

    ``reads`` are the lines that read the variables that they depend on: no operation assigns these, but Python may.
    """

    at: Location | None
    rows: tuple[OperationTime, ...]
    reads: tuple[Location, ...] = ()

    @property
    def remedy(self) -> Remedy:
        """The change at the line."""
        if not self.reads:
            return Remedy("Compute it once, before the training", CODE["once"], self.at)
        lines = " and ".join(map(location, self.reads[:SHOWN_PAIRS]))
        action = (
            f"If nothing assigns the variables read at {lines} between the steps, compute it once before the loop; "
            "otherwise after each assignment"
        )
        return Remedy(action, CODE["after-assignment"], self.at)


class RepeatedResults(Record):
    """What is computed twice in a step, and what is computed in each step from constants; most time first."""

    repeats: tuple[Repeat, ...] = ()
    constants: tuple[Constant, ...] = ()
    added: AddedGradients = AddedGradients()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Number the values of each graph, and compare those of the operations that ran.

        TensorFlow merges equal operations by itself where they read no variable. Gradients that compute a forward
        result again do so to save memory (tf.recompute_grad): they are no repetition.
        """
        ran: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:  # without instructions of XLA's
            if row.name in program.by_name and not (row.operation and row.operation.compiled):
                ran[row.name].append(row)
        reads, lines = _kept_reads(dataflow, operations), defaultdict[Location | None, list[str]](list)
        constant = {name for name, sources in dataflow.computed_from().items() if not sources}
        # Of those that depend on variables only the ones count that the user's line calls itself, and that compute:
        # what a layer of Keras or an optimizer computes of its variables cannot be moved.
        for name in ran:
            made = program.by_name[name]
            if made.type not in FILLS and not READS.search(made.type) and not is_backward(name):
                own = made.direct and not made.origin and made.type not in MOVES
                if (own and name in reads) or name in constant:
                    lines[made.at].append(name)
        constants = []
        for at, names in lines.items():
            read_at = dict.fromkeys(read.at for name in names for read in reads.get(name, ()) if read.at)
            constants.append(Constant(at, tuple(row for name in names for row in ran[name]), tuple(read_at)))
        repeats = sorted(_repeats(ran, dataflow, operations), key=lambda one: -one.ms)
        added = AddedGradients.measure(operations, dataflow)
        return cls(tuple(repeats), tuple(sorted(constants, key=lambda one: -one.ms)), added)

    @property
    def ms(self) -> float:
        """The time of all of it, in ms per step."""
        again_ms = sum(one.ms for one in self.repeats) + sum(one.ms for one in self.constants)
        return again_ms + self.added.spared_ms


# The operations that ran, by their name in the graph. One that was fused with others has the name of the last.
Ran = Mapping[str, Sequence[OperationTime]]


def _repeats(ran: Ran, dataflow: Dataflow, operations: Operations) -> Iterator[Repeat]:
    """Yield the operations that compute again, by the lines of the first and the later computation.

    Operations of one line are told apart by those that call its function. Gradients of later computations go where
    the first one has such gradients, too. One gradient remains: that of a discriminator's generated images is
    needed, if only the generator's step has it.
    """
    lines: dict[tuple[Location | None, Location | None], list[tuple[str, str]]] = defaultdict(list)
    for first, *later in _equal(ran, dataflow.program):
        for one in later:
            alike = first.at == one.at
            at = (first.by or first.at, one.by or one.at) if alike else (first.at, one.at)
            lines[at].append((first.name, one.name))
    gradients: dict[str, list[OperationTime]] = defaultdict(list)  # by each scope that they are in
    for row in operations.rows:
        parts = row.name.removeprefix(GRADIENT_SCOPE).split("/") if row.name.startswith(GRADIENT_SCOPE) else []
        for end in range(1, len(parts)):
            gradients["/".join(parts[:end])].append(row)

    def named(name: str) -> set[str]:  # with those that were fused with it
        return {name, *(row.operation.name for row in ran[name] if row.operation)}

    for (first_at, again), pairs in lines.items():
        rows = tuple(row for _, name in pairs for row in ran[name])
        both = [later for one, later in pairs if not gradients.keys().isdisjoint(named(one))]
        spared = tuple(row for later in both for name in named(later) for row in gradients.get(name, ()))
        yield Repeat(first_at, again, rows, spared)


def _equal(ran: Ran, program: Program) -> Iterator[Sequence[Operation]]:
    """Yield the forward operations of one graph that ran and have equal values, in the order of the graph.

    Those that only read a variable compute nothing.
    """
    for _, graph in groupby(program.operations, key=lambda operation: operation.graph):
        members = tuple(graph)
        values = values_of(members)
        found: dict[int, list[Operation]] = defaultdict(list)
        for one in members:
            in_step = program.by_name[one.name] is one and one.name in ran
            if in_step and one.sources and not READS.search(one.type) and not is_backward(one.name):
                found[values[one.name]].append(one)
        yield from (same for same in found.values() if len(same) > 1)


def values_of(operations: Iterable[Operation]) -> dict[str, int]:
    """Number the values of a graph's operations in their order, equal ones alike.

    Values are equal if they are computed by operations of the same type and attributes from equal values, and no
    variable that they read is written in between.
    """
    numbers: dict[object, int] = {}
    values: dict[str, int] = {}
    written: Counter[str] = Counter()
    for operation in operations:
        reads = bool(READS.search(operation.type))
        written.update(() if reads else operation.sources)
        inputs = [values.get(source) for source in operation.sources]
        computed: object = operation.name  # what it is computed of is unknown, or its value may differ
        if None not in inputs and operation.computes and (inputs or operation.type in CONSTANT):
            epoch = written[operation.sources[0]] if reads else 0
            computed = operation.computes, operation.ports, tuple(inputs), epoch
        values[operation.name] = numbers.setdefault(computed, len(numbers))
    return values


PRECONDITIONS = (found(RepeatedResults, what=lambda work: work.ms),)


class Limits(RuleLimits):
    share: float = share_limit(0.03)
    part: float = share_limit(0.1)
    least_ms: float = limit(0.1)


def check(work: RepeatedResults, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Add up what is computed again, and compare it with the compute time."""
    sums, share = work.added, operations.part(work.ms).share
    least_ms = max(limits.least_ms, limits.part * work.ms)
    repeats = [one for one in work.repeats if one.ms >= least_ms]
    constants = [one for one in work.constants if one.ms >= least_ms]
    table = [
        (one.title, one.first or "unknown", one.again or "unknown", count(len(one.rows)), ms(one.ms))
        for one in repeats[:SHOWN_PAIRS]
    ]
    table += [
        (", ".join(_types(one.rows)[:3]), "every step", one.at or "unknown", count(len(one.rows)), ms(one.ms))
        for one in constants[:SHOWN_PAIRS]
    ]
    columns = ("computed", "first at", "again at", "operations", "time per step")
    remedies: dict[Location | None, Remedy] = {}  # one for each line
    shown: list[Repeat | Constant] = [*repeats[:SHOWN_PAIRS], *constants[:SHOWN_PAIRS]]
    for one in shown:
        remedies.setdefault(one.remedy.at, one.remedy)
    if sums.spared_ms:
        remedies[sums.at] = Remedy("Add the losses, and take one gradient of their sum", CODE["sum"], sums.at)
    sentences = [*_sentences(sums, repeats, constants)]
    once_added = (row.scaled(1.0 / sums.passes, Bound.AT_MOST) for row in sums.rows if sums.spared_ms)
    once = (row.scaled(0.0, Bound.AT_MOST) for constant in constants for row in constant.rows)
    return judged(
        Measure("time computing again what is known, per step", ms(work.ms)),
        Measure.share("share of the compute time computing again what is known", share, limits.share),
        healthy=f"{percent(share)} of the compute time computes again what is known",
        finding="; ".join(sentences),
        wrong=share >= limits.share and bool(sentences),
        details=[Table(columns, tuple(table))] if table else [],
        remedies=remedies.values(),
        effects=(*(effect for one in repeats for effect in one.effects), *once, *once_added),
    )


def _sentences(sums: AddedGradients, repeats: Sequence[Repeat], constants: Sequence[Constant]) -> Iterator[str]:
    if sums.spared_ms:
        added = f"Gradients of {sums.passes} losses are taken one by one and added at {location(sums.at)}"
        yield f"{added}: {milliseconds(sums.ms)} per step"
    if repeats:
        places = map(location, filter(None, (repeats[0].first, repeats[0].again)))
        at = f" at {lines}" if (lines := " and ".join(dict.fromkeys(places))) else ""
        time = milliseconds(sum(one.ms for one in repeats))
        yield f"Each step computes the same twice or more{at}: {time} per step"
    if constants:
        at = f" at {location(constants[0].at)}" if constants[0].at else ""
        read = any(one.reads for one in constants)
        when = "change only where Python assigns a variable" if read else "never change"
        time = milliseconds(sum(one.ms for one in constants))
        yield f"Results that {when} are computed in each step{at}: {time} per step"
