from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Those whose shapes tell how many rows they take. GatherNd takes as many as its indices have, which is open.
SELECTS = frozenset(["StridedSlice", "Slice", "GatherV2"])

# Operations whose result in a row, along the last axis, depends on that row of their operands alone.
ROW_BY_ROW = (
    BROADCASTING
    | UNARY
    | {"BiasAdd", "Cast", "Erfc", "Identity", "LogSoftmax", "Reshape", "Softmax", "StopGradient"}
)

GIVEN = SHAPES | CONSTANT | {"ReadVariableOp"}  # Operations without a gradient of their own


class SelectedProduct(Record, OperationRows):
    """Products, and what is computed of their rows one by one, up to the selection of a part of these.

    ``rows`` are the operations that ran, those of gradients included.
    """

    product: OperationTime  # the longest
    rows: tuple[OperationTime, ...]
    kept: float  # the share of the rows that is selected, 0 to 1
    of: Shape  # of what is selected from
    to: Shape  # of what is selected
    at: Location | None = None  # the line that selects


class SelectedProducts(Record):
    """The products of which few rows are used; those of most time first."""

    rows: tuple[SelectedProduct, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Go back from each selection of rows through what is used by it alone.

        The operations of the gradients have the scope of an operation, or that around several.
        """
        children: dict[str, set[str]] = {}  # what is computed directly in a scope of the forward pass
        for one in dataflow.operations:
            if not is_backward(one.name) and one.type not in GIVEN:
                children.setdefault(one.name.rpartition("/")[0], set()).add(one.name)
        found = []
        for selection in dataflow.operations:
            kept, inside = _selected(selection, dataflow)
            names = {one.name for one in inside}
            rows = operations.of(names) if any(map(_multiplies, inside)) else ()
            products = [row for row in rows if row.operation and _multiplies(row.operation)]
            if not products:
                continue
            scopes = {name.rpartition("/")[0] for name in names} - {""}
            scopes = names | {scope for scope in scopes if children.get(scope, set()) <= names}
            backward = {one.name for scope in scopes for one in dataflow.gradients.get(scope, ())}
            product = SelectedProduct(
                max(products, key=lambda row: row.ms),
                (*rows, *operations.of(backward)),
                kept,
                selection.inputs[0][1] or (),
                selection.outputs[0][1] or (),
                dataflow.program.line_of(selection),
            )
            found.append(product)
        return cls(tuple(sorted(found, key=lambda one: -one.ms)))


def _selected(selection: Operation, dataflow: Dataflow) -> tuple[float, list[Operation]]:
    """Return the share of rows that are selected, and the operations whose results are used for it alone.

    The last operation is the first. There are none where the share is open, or columns are selected.
    """
    of, to = (tensors[0][1] if tensors else None for tensors in (selection.inputs, selection.outputs))
    if selection.type not in SELECTS or is_backward(selection.name) or not of or not to:
        return 1.0, []
    if of[-1] is None or of[-1] != to[-1] or len(to) > len(of):
        return 1.0, []
    open_rows = any(None in shape[1:] or len(shape) == 1 for shape in (of, to))
    index = dataflow.source(selection, 1)
    # An open first size is that of the batch, before as after, unless a mask says how many rows.
    if open_rows or (of[0] is None) != (to[0] is None) or (index is not None and index.type == "Where"):
        return 1.0, []
    inside, names, ahead = [], {selection.name}, [*selection.sources[:1]]
    while ahead:
        one = dataflow.program.by_name.get(ahead.pop(0))
        if one is None or one.name in names or not _by_rows(one, of[:-1], dataflow):
            continue
        users = dataflow.forward(one)
        if all(user.name in names and not (_multiplies(user) and one.name in user.sources[1:]) for user in users):
            names.add(one.name)
            inside.append(one)
            ahead += one.sources[:1] if _multiplies(one) else one.sources
    return prod(size or 1 for size in to) / prod(size or 1 for size in of), inside


def _by_rows(one: Operation, rows: Shape, dataflow: Dataflow) -> bool:
    """Say whether an operation computes each of these rows by itself."""
    shape = one.outputs[0][1] if one.outputs else None
    if shape is None or not (one.type in ROW_BY_ROW or _multiplies(one)):
        return False
    if one.type == "Reshape":  # the last axis has to stay; where it is open, by the matrix that is multiplied next
        before, after = one.inputs[0][1], shape[-1]
        if after is None:
            users = dataflow.forward(one)
            factors = [user.inputs[1][1] or (None,) for user in users if user.type == "MatMul"]
            after = factors[0][0] if len(factors) == len(users) == 1 else None
        if not before or after is None or before[-1] != after:
            return False
    size = None if None in rows else prod(one or 0 for one in rows)
    flat = len(shape) == 2 and shape[0] in {None, size}  # noqa: PLR2004 - a matrix
    return flat or shape[:-1] == rows


def _multiplies(one: Operation) -> bool:
    """Say whether an operation is a product whose rows are those of its first operand."""
    if one.type not in MATMULS or len(one.inputs) < 2 or not one.outputs:  # noqa: PLR2004
        return False
    if one.type != "Einsum":
        return not (one.attrs.transpose_a or one.attrs.adj_x)
    first, _, rest = one.attrs.equation.replace(" ", "").partition(",")
    result = rest.partition("->")[2]
    return bool(result) and set(result[:-1]) <= set(first)


PRECONDITIONS = (found(SelectedProducts, "No rows are selected from a product that nothing else uses"),)


class Limits(RuleLimits):
    kept: float = share_limit(0.5)
    share: float = share_limit(0.05)


def check(selected: SelectedProducts, operations: Operations, device: Device, limits: Limits = Limits()) -> Verdict:
    """Add up what the rows that nothing uses take, and compare it with the compute time."""
    products = [one for one in selected.rows if one.kept <= limits.kept]
    lines = [f" at {location(one.product.at)}" if one.product.at else "" for one in products]
    kept = [percent(one.kept) for one in products]
    action = "Select the {} of the rows before the product{}"
    summary = f"A product is computed for all rows{lines[0]}, and {kept[0]} of them are used" if products else ""
    table = Table.of(
        selected.rows,
        ("product", lambda one: one.product.name),
        ("product's line", lambda one: one.product.at),
        ("computed", lambda one: _sizes(one.of)),
        ("selected", lambda one: _sizes(one.to)),
        ("time of all rows per step", lambda one: ms(one.ms)),
    )
    left = [(row, one.kept) for one in products for row in one.rows if row.ms]
    part = operations.part(sum(row.ms * (1.0 - share) for row, share in left))
    return spared(
        part, limits.share, "for rows that nothing uses", left,
        healthy=f"Rows of products that nothing uses take {part}",
        finding=f"{summary}: the others take {part}",
        remedies=[
            Remedy(action.format(share, line), CODE["code"], one.at)
            for share, line, one in zip(kept, lines, products, strict=True)
        ],
        more=[table],
        bound=Bound.EXPECTED if device.kind is DeviceKind.CPU else Bound.AT_MOST,
        narrows=True,
        alike=len(products) - 1,
    )  # fmt: skip


def _sizes(shape: Shape) -> str:
    return " x ".join("batch" if size is None else str(size) for size in shape)
