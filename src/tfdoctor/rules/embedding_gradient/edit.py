"""The edits that look up the rows of a table, where the file multiplies or sums all of them."""

from tfdoctor.edits.kit import *

# By the function that makes one-hot rows, the one that takes rows of a table, and how it is called.
LOOKUPS = {
    "tensorflow.one_hot": ("tensorflow.gather", "{}({}, {})"),
    "keras.ops.one_hot": ("keras.ops.take", "{}({}, {}, axis=0)"),
}
MATMULS = frozenset(["tensorflow.matmul", "tensorflow.linalg.matmul", "keras.ops.matmul"])
GATHERS = frozenset(["tensorflow.gather", "tensorflow.nn.embedding_lookup", "keras.ops.take"])


def row_lookup(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write ``tf.gather(table, ids)`` for the product of one-hot rows and a table on a line."""
    values, every = Values(module), list[tuple[cst.BaseExpression, cst.Call, cst.BaseExpression]]()
    for product in (*module.all(cst.Call), *module.all(cst.BinaryOperation)):
        match product:
            case cst.Call(
                func=func, args=[cst.Arg(keyword=None, value=left), cst.Arg(keyword=None, value=table)]
            ) if values.from_tensorflow(func) in MATMULS:
                pass
            case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=table, lpar=[]):
                pass
            case _:
                continue
        if isinstance(left, cst.Name):  # which may stand for a call of the same function
            sources = values.sources(left)
            left = sources[0].value if len(sources) == 1 and sources[0].whole else left
            if isinstance(left, cst.Call) and not all(isinstance(ids, cst.Name) for ids in positional(left)[:1]):
                continue  # its numbers may have another value by now
        if isinstance(left, cst.Call) and values.from_tensorflow(left.func) in LOOKUPS:
            every.append((product, left, table))
    # A recording may name the line that makes or calls the layer of the product.
    found = [one for one in every if module.covers(one[0], line)] or every
    product, one_hot, table = only(found, "the file has {} of one-hot rows and a table", "product")
    given, rest = positional(one_hot), named(one_hot).keys() - {"depth", "num_classes", "dtype"}
    if not given or len(given) > 2 or rest or any(arg.star for arg in one_hot.args):  # noqa: PLR2004 - ids, depth
        raise Declined("the one-hot rows have other values or another axis than usual")
    origin, how = LOOKUPS[values.from_tensorflow(one_hot.func)]
    name = module.imported(origin, product)
    return [module.replaced(product, how.format(name, module.written(table), module.written(given[0])))]


def row_penalty(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write the vectors that the same function has looked up in the place of tables that a penalty sums.

    The penalty is ``tf.nn.l2_loss(table)`` or ``tf.reduce_sum(tf.square(table))``.
    """
    values, found = Values(module), list[Splice]()
    for call in module.calls("l2_loss", "reduce_sum", line=line):
        match [argument.value for argument in call.args]:
            case [cst.Call(func=func, args=[cst.Arg(value=table)])] if last_name(func) == "square":
                pass
            case [cst.BinaryOperation(left=table, operator=cst.Power())]:
                pass
            case [cst.Name() | cst.Attribute() as table] if last_name(call.func) == "l2_loss":
                pass
            case _:
                continue
        function, rows = module.nearest(call, cst.FunctionDef), list[str]()
        for name in module.inside(cst.Name, function.body) if function else ():
            if module.bound(name) != [name] or module.span(name) > module.span(call):
                continue
            (source,) = values.sources(name) or (None,)
            made = source.part if source and not source.each else None
            if isinstance(made, cst.Call) and values.from_tensorflow(made.func) in GATHERS:
                given, more = positional(made), {key: module.written(value) for key, value in named(made).items()}
                more.pop("name", None)  # and of its first axis
                if given and module.written(given[0]) == module.written(table) and more in ({}, {"axis": "0"}):
                    rows.append(name.value)
        found += [module.replaced(table, rows[0])] if len(rows) == 1 else []
    if not found:
        raise Declined("the function of the line looks up no rows of the table that it sums")
    return found


EDITS = {"row-lookup": row_lookup, "row-penalty": row_penalty}
