"""The edit that batches before a map, where the mapped function does the same to a batch as to each element."""

from tfdoctor.edits.kit import *

WHOLE = ("parse_single_example", "parse_example")  # What parses one record, and what parses a batch of them

# Functions that parse one example by a dictionary of features, and those that make a list of columns of a line of
# text, and of many lines.
PARSERS = frozenset(["tensorflow.io.parse_single_example", "tensorflow.parse_single_example"])
COLUMNS = frozenset(["tensorflow.io.decode_csv", "tensorflow.compat.v1.decode_csv"])

# Functions of TensorFlow that compute each element alone (one_hot adds a dimension at the end).
ELEMENTWISE = frozenset(
    ["abs", "add", "cast", "clip_by_value", "cos", "divide", "equal", "exp", "greater", "less", "log", "log1p",
     "maximum", "minimum", "multiply", "one_hot", "round", "sigmoid", "sign", "sin", "sqrt", "square", "subtract",
     "tanh"]
)  # fmt: skip

_OTHER_FEATURES = re.compile(r"\b(VarLen|Ragged|Sparse|FixedLenSequence)Feature\b")

_SYNTAX = (
    ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict,
    ast.Subscript, ast.Slice, ast.ListComp, ast.Compare,
)  # fmt: skip


def vectorized_map(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.map(f).batch(n)``, and parse whole batches in ``f``."""
    named = re.search(r"\.map\((\w+),", example)
    function = module.function(named[1]) if named else None
    if function is None:
        raise Declined("the mapped function is not one of the file with a name of its own")
    if len(module.mentions(function.name)) != 2:  # noqa: PLR2004 - its definition and the map
        raise Declined(f"{function.name}() is also used elsewhere")
    for mapped in module.methods("map"):
        batch = next_call(module, mapped)
        if isinstance(module.parent(mapped), ast.Assign):  # d = d.map(f), and below d = d.batch(n)
            statement, _, below = in_block(module, mapped)
            again = below[0] if below and rebound(statement) == rebound(below[0]) != "" else None
            batch = [None, *calls_of(assigned(again)[1])][-1]
            batch = batch if isinstance(receiver(batch), ast.Name) else None
        if batch is None or method_of(batch) != "batch" or not mapped.args:
            continue
        covered = module.covers(mapped, line) or module.covers(batch, line)
        if covered and module.written(mapped.args[0]) == function.name:
            break
    else:
        raise Declined("batch() does not stand directly after the map")
    parses = _must_be_elementwise(module, function)
    # Columns are stacked along the first dimension, which is the last one of a scalar's.
    stacks = [call for call in module.inside(ast.Call, *function.body) if _stacks_columns(module, call)]
    return [
        *exchanged(module, mapped, batch),
        *(module.replaced(call.func, module.written(call.func).replace(*WHOLE)) for call in parses),
        *(setting(module, call, "axis", "-1", instead_of=()) for call in stacks if len(arguments(call)) == 1),
    ]


def _must_be_elementwise(module: SyntaxTree, function: Function) -> list[ast.Call]:
    """Return the calls that parse one example; decline what may treat a batch in another way."""
    if _OTHER_FEATURES.search(module.text):
        raise Declined("features of variable length are parsed in another way in batches")
    if len(function.args.args) != 1 or function.decorator_list:
        raise Declined(f"{function.name}() takes more than the serialized example")
    parses = [call for call in module.inside(ast.Call, *function.body) if _parses(module, call)]
    if len(parses) != 1:
        raise Declined(f"{function.name}() does not parse one example")
    given = [argument for call in parses for argument in arguments(call)[1:]]
    checked: list[ast.expr | ast.stmt] = [
        *(node for node in module.inside(ast.stmt, *function.body) if isinstance(node, COMPOUND)),
        *module.inside(ast.expr, *function.body),
    ]
    for node in sorted(checked, key=place):
        skipped = any(module.within(node, argument) for argument in given)
        if not skipped and (why := _why_not(module, node)):
            raise Declined(f"line {node.lineno} {why}")
    return parses


def _why_not(module: SyntaxTree, node: ast.AST) -> str:
    """Return why a part of a function may not do the same to a batch, "" if it does."""
    sides: list[ast.expr] = []
    match node:
        case ast.Subscript(value=whole) if not (_is_key(module, node) or _are_columns(module, whole)):
            return "takes a part of a tensor, which is another one in a batch"
        case ast.BinOp(left=left, right=right):
            sides = [left, right]
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
        case ast.Call() if not _is_alike(module, node):
            return f"calls {tail(node)}(), which may treat a batch in another way than one element"
        case _:
            pass
    if sides and not any(_is_plain(module, side) for side in sides):
        return "computes with two tensors, which broadcast in another way in a batch"
    return "" if isinstance(node, _SYNTAX) else "may treat a batch in another way than one element"


def _is_key(module: SyntaxTree, node: ast.Subscript) -> bool:
    """Say whether an item is taken by a text, as of a dictionary, or by a name that goes through its keys."""
    loop, key = module.nearest(node, ast.ListComp), node.slice
    if not loop or not isinstance(key, ast.Name):
        return is_text(key)
    through = (loop.generators[0].target, loop.generators[0].iter)
    return [*map(module.written, through)] == [key.id, f"sorted({module.written(node.value)})"]


def _are_columns(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether an expression is the list of columns of a line of text, or a slice of it."""
    match value:
        case ast.Name():
            sources = module.sources(value)
            made = sources[0].value if len(sources) == 1 and sources[0].place < 0 else None
            return isinstance(made, ast.Call) and module.from_tensorflow(made.func) in COLUMNS
        case ast.Subscript(value=ast.Name() as whole, slice=ast.Slice()):
            return _are_columns(module, whole)
        case _:
            return False


def _stacks_columns(module: SyntaxTree, call: ast.Call) -> bool:
    """Say whether a call stacks the columns of a line of text, which are scalars."""
    stacks = module.from_tensorflow(call.func) == "tensorflow.stack"
    return stacks and bool(call.args) and _are_columns(module, call.args[0])


def _parses(module: SyntaxTree, call: ast.Call) -> bool:
    origin = module.from_tensorflow(call.func)
    return origin in COLUMNS or (origin in PARSERS and not named(call))


def _is_alike(module: SyntaxTree, call: ast.Call) -> bool:
    """Say whether a call does the same to each element of a batch."""
    name, given = tail(call), arguments(call)
    if _parses(module, call):
        return True
    if module.from_tensorflow(call.func) and name == "stack":
        last = any(module.written(value) == "-1" for value in given[1:])
        return last or (_stacks_columns(module, call) and len(given) == 1)
    if module.from_tensorflow(call.func):  # two tensors of different ranks would broadcast in another way
        return name in ELEMENTWISE and all(_is_plain(module, value) for value in given[1:])
    if isinstance(call.func, ast.Name):
        return name == "sorted"
    return name == "pop" and len(given) == 1 and is_text(given[0])


def _is_plain(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether an expression is a Python number, or a name of TensorFlow such as tf.float32."""
    if isinstance(value, ast.Name):
        return is_number(made_by(module, value))
    return is_number(value) or bool(module.from_tensorflow(value))


EDITS = {"vectorized-map": vectorized_map}
