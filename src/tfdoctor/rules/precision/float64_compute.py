from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


FLOAT64 = "float64"


class Origin(Enum):
    """What makes a value float64 in a graph, and the change; the page has its code under the name."""

    ARGUMENT = "Convert the arrays to float32 before they are given to the step"  # or captured by it
    VARIABLE = "Create the variables in float32"
    CAST = "Cast to float32 instead of float64"
    FLOATX = (  # Keras' type for all layers: set_floatx, or a global policy
        'Let Keras compute in float32: remove set_floatx("float64") before the first layer, or the float64 policy'
    )
    LAYER = "Create the layers in float32"  # a Keras layer's own dtype
    OTHER = "Create constants and random numbers in float32"
    UNKNOWN = "Create arrays, variables and constants in float32"  # the graph's edges are not recorded


# Operations without a float64 input whose result is float64; all others are OTHER.
ORIGINS = {
    "Placeholder": Origin.ARGUMENT,
    "_Arg": Origin.ARGUMENT,
    "IteratorGetNext": Origin.ARGUMENT,
    "ReadVariableOp": Origin.VARIABLE,
    "ResourceGather": Origin.VARIABLE,
    "Cast": Origin.CAST,
}


class Float64Work(Record):
    """The operations on float64 values, the heaviest first, and where those of the heaviest come from.

    ``casts`` are the conversions between float64 and other types: a step in float32 needs none of them.
    """

    rows: tuple[OperationTime, ...]
    casts: tuple[OperationTime, ...] = ()
    origin: Origin = Origin.UNKNOWN
    at: Location | None = None

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow | Unavailable) -> Self:
        """Select the operations by the types that the program recorded.

        Raises:
            Unavailable: the program was not recorded.
        """
        own = [row for row in operations.rows if not row.of_summary]  # tf.summary chooses its types itself
        rows = tuple(row for row in own if row.precision == FLOAT64 and row.type != "Cast")
        built = ((row, row.operation) for row in own if row.type == "Cast")
        typed = ((row, {dtype for dtype, _ in (*one.inputs, *one.outputs)}) for row, one in built if one)
        # to or from float64, and not from or to whole numbers
        casts = tuple(row for row, of in typed if FLOAT64 in of and all("float" in dtype for dtype in of))
        # Of the layer of the heaviest operation of one: it casts what it is given to its own type, so that the type
        # of the arrays does not matter.
        names = (name for row in rows if (name := row.layer or (row.operation and row.operation.layer)))
        layer = next((layer for name in names if (layer := program.layer_by_name.get(name))), None)
        if layer and layer.compute_dtype == FLOAT64:
            if program.settings.policy != FLOAT64:
                return cls(rows, casts, Origin.LAYER, layer.at)
            set_wide = (one for one in program.layers if one.compute_dtype == FLOAT64 and one.at)
            return cls(rows, casts, Origin.FLOATX, next(set_wide, layer).at)
        at = next((row.at for row in rows if row.at), None)
        heaviest = next((row.operation for row in rows if row.operation), None)
        if heaviest is None or isinstance(dataflow, Unavailable):
            return cls(rows, casts, Origin.UNKNOWN, at)
        # what makes the first float64 value upstream of the heaviest operation, in the graph's order
        known = {**dataflow.program.by_name, heaviest.name: heaviest}
        wide = {name for name, one in known.items() if any(dtype == FLOAT64 for dtype, _ in one.outputs)}
        upstream = reached([heaviest.name], lambda name: wide.intersection(known[name].sources)) & wide
        makers = [known[name] for name in upstream if not wide.intersection(known[name].sources)]
        if not makers:
            return cls(rows, casts, Origin.UNKNOWN, at)
        first = min(makers, key=lambda operation: dataflow.program.position[operation.name])
        layer = program.layer_by_name.get(first.layer)
        where = first.at or (layer.at if layer else None) or at
        return cls(rows, casts, ORIGINS.get(first.type, Origin.OTHER), where)


PRECONDITIONS = (found(Float64Work),)


class Limits(RuleLimits):
    share: float = share_limit(0.03)


def check(work: Float64Work, operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price float64 operations at the time of float32 ones."""
    part, single = operations.part(sum(row.ms for row in (*work.rows, *work.casts))), hardware.float32
    doing = "in float64 operations"
    if not work.rows:
        unused = "The step computes nothing in float64"
        return Healthy(summary=unused, evidence=part.measures(doing, limits.share))
    wide = (
        row.scaled(single.matmuls if row.is_matrix else single.others, single.bound) for row in work.rows if row.ms
    )
    return spared(
        part,
        limits.share,
        doing,
        (*wide, *(row.scaled(0.0) for row in work.casts if row.ms)),
        finding=f"Operations in float64 take {part}",
        remedies=[Remedy(work.origin.value, CODE[work.origin.name.lower()], work.at)],
        shown=[layer_table((*work.rows, *work.casts), most=10)],
    )
