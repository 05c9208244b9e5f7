"""The edits that look up the rows of a table, where the file multiplies or sums all of them."""

from collections.abc import Iterator

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, last_name, named, positional
from tfdoctor.edits.names import part_of
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

# By the function that makes one-hot rows, the one that takes rows of a table, and how it is called.
LOOKUPS = {
    "tensorflow.one_hot": ("tensorflow.gather", "{}({}, {})"),
    "keras.ops.one_hot": ("keras.ops.take", "{}({}, {}, axis=0)"),
}

MATMULS = frozenset(["tensorflow.matmul", "tensorflow.linalg.matmul", "keras.ops.matmul"])
GATHERS = frozenset(["tensorflow.gather", "tensorflow.nn.embedding_lookup", "keras.ops.take"])


def row_lookup(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write ``tf.gather(table, ids)`` for the product of one-hot rows and a table on a line."""
    values = Values(module)
    every = [
        (product, one_hot, table)
        for kind in (cst.Call, cst.BinaryOperation)
        for product in module.all(kind)
        for left, table in _factors(values, product)
        if (one_hot := _one_hot(values, left)) is not None
    ]
    # A recording may name the line that makes or calls the layer of the product.
    found = [one for one in every if module.covers(one[0], line)] or every
    if len(found) != 1:
        many = "several products" if found else "no product"
        raise Declined(f"the file has {many} of one-hot rows and a table")
    product, one_hot, table = found[0]
    given = positional(one_hot)
    rest = named(one_hot).keys() - {"depth", "num_classes", "dtype"}
    if not given or len(given) > 2 or rest or any(arg.star for arg in one_hot.args):  # noqa: PLR2004 - ids, depth
        raise Declined("the one-hot rows have other values or another axis than usual")
    origin, how = LOOKUPS[values.from_tensorflow(one_hot.func)]
    name = module.name_of(origin, product)
    if name is None:
        raise Declined("no clear import of tensorflow precedes the line")
    return [module.replaced(product, how.format(name, module.written(table), module.written(given[0])))]


def _factors(values: Values, product: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield both factors of a plain matmul."""
    match product:
        case cst.Call(func=func, args=[cst.Arg(keyword=None), cst.Arg(keyword=None)]):
            if values.from_tensorflow(func) in MATMULS:
                left, right = positional(product)
                yield left, right
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right) if not product.lpar:
            yield left, right


def _one_hot(values: Values, value: cst.BaseExpression) -> cst.Call | None:
    """Return the call that makes one-hot rows, also where a name of the same function stands for it."""
    if isinstance(value, cst.Name):
        sources = values.sources(value)
        whole = [source.value for source in sources if source.whole]
        value = whole[0] if len(sources) == len(whole) == 1 else value
        if isinstance(value, cst.Call) and not all(isinstance(ids, cst.Name) for ids in positional(value)[:1]):
            return None  # its numbers may have another value by now
    return value if isinstance(value, cst.Call) and values.from_tensorflow(value.func) in LOOKUPS else None


def row_penalty(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write the vectors that the same function has looked up in the place of tables that a penalty sums."""
    values = Values(module)
    found = [
        (table, vectors)
        for call in module.on(cst.Call, line)
        if (table := _summed(call)) is not None
        and (vectors := _looked_up(module, values, call, module.written(table)))
    ]
    if not found:
        raise Declined("the function of the line looks up no rows of the table that it sums")
    return [module.replaced(table, vectors) for table, vectors in found]


def _summed(call: cst.Call) -> cst.BaseExpression | None:
    """Return the table of ``tf.nn.l2_loss(table)`` and of ``tf.reduce_sum(tf.square(table))``."""
    if len(call.args) != 1 or last_name(call.func) not in {"l2_loss", "reduce_sum"}:
        return None
    match call.args[0].value:
        case cst.Call(func=func, args=[cst.Arg(value=table)]) if last_name(func) == "square":
            return table
        case cst.BinaryOperation(left=table, operator=cst.Power()):
            return table
        case cst.Name() | cst.Attribute() as table if last_name(call.func) == "l2_loss":
            return table
        case _:
            return None


def _looked_up(module: SyntaxTree, values: Values, call: cst.Call, table: str) -> str:
    """Return the only name that holds rows of a table above a call in the same function; "" where there is none."""
    function = next(module.around(call, cst.FunctionDef), None)
    found: list[str] = []
    for name in module.inside(cst.Name, function.body) if function else ():
        bound = module.bound(name)
        if len(bound) != 1 or bound[0] is not name or module.span(name) > module.span(call):
            continue
        (source,) = values.sources(name) or (None,)
        made = None if source is None or source.each else source.value
        if made is not None and source is not None and source.place >= 0:
            made = part_of(made, source.place)
        if isinstance(made, cst.Call) and values.from_tensorflow(made.func) in GATHERS:
            given, more = positional(made), {key: module.written(value) for key, value in named(made).items()}
            more.pop("name", None)  # and of its first axis
            if given and module.written(given[0]) == table and more in ({}, {"axis": "0"}):
                found.append(name.value)
    return found[0] if len(found) == 1 else ""


EDITS: dict[str, Kind] = {"row-lookup": row_lookup, "row-penalty": row_penalty}
