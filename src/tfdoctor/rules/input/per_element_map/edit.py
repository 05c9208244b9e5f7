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
    cst.BaseNumber, cst.SimpleString, cst.Name, cst.Attribute, cst.Call, cst.BinaryOperation, cst.UnaryOperation,
    cst.Tuple, cst.List, cst.Dict, cst.Subscript, cst.ListComp, cst.Comparison,
)  # fmt: skip


def vectorized_map(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.map(f).batch(n)``, and parse whole batches in ``f``."""
    named = re.search(r"\.map\((\w+),", example)
    found = module.function(named[1]) if named else None
    function = known(found, "the mapped function is not one of the file with a name of its own")
    uses = [name for name in module.all(cst.Name) if name.value == function.name.value]
    if len(uses) != 2:  # noqa: PLR2004 - its definition and the map
        raise Declined(f"{function.name.value}() is also used elsewhere")
    for mapped in module.methods("map"):
        batch = next_call(module, mapped)
        if isinstance(module.parent(mapped), cst.Assign):  # d = d.map(f), and below d = d.batch(n)
            statement, _, below = in_block(module, mapped)
            again = below[0] if below and rebound(statement) == rebound(below[0]) != "" else None
            batch = [None, *calls_of(assigned(again))][-1]
            batch = batch if isinstance(receiver(batch), cst.Name) else None
        if batch is None or method_of(batch) != "batch" or not mapped.args:
            continue
        covered = module.covers(mapped, line) or module.covers(batch, line)
        if covered and module.written(mapped.args[0].value) == function.name.value:
            break
    else:
        raise Declined("batch() does not stand directly after the map")
    parses = _must_be_elementwise(module, function)
    # Columns are stacked along the first dimension, which is the last one of a scalar's.
    stacks = [call for call in module.inside(cst.Call, function.body) if _stacks_columns(module, call)]
    return [
        *exchanged(module, mapped, batch),
        *(module.replaced(call.func, module.written(call.func).replace(*WHOLE)) for call in parses),
        *(insert(module.span(call.args[0])[1], ", axis=-1") for call in stacks if len(call.args) == 1),
    ]


def _must_be_elementwise(module: SyntaxTree, function: cst.FunctionDef) -> list[cst.Call]:
    """Return the calls that parse one example; decline what may treat a batch in another way."""
    if _OTHER_FEATURES.search(module.text):
        raise Declined("features of variable length are parsed in another way in batches")
    if len(function.params.params) != 1 or function.decorators:
        raise Declined(f"{function.name.value}() takes more than the serialized example")
    parses = [call for call in module.inside(cst.Call, function.body) if _parses(module, call)]
    if len(parses) != 1:
        raise Declined(f"{function.name.value}() does not parse one example")
    given = [argument for call in parses for argument in call.args[1:]]
    for node in module.inside(cst.CSTNode, function.body):  # type: ignore[type-abstract] # only asked about
        checked = isinstance(node, cst.BaseExpression | cst.BaseCompoundStatement)
        skipped = not checked or any(module.within(node, argument) for argument in given)
        if not skipped and (why := _why_not(module, node)):
            raise Declined(f"line {module.line(node)} {why}")
    return parses


def _why_not(module: SyntaxTree, node: cst.CSTNode) -> str:
    """Return why a part of a function may not do the same to a batch, "" if it does."""
    sides: list[cst.BaseExpression] = []
    match node:
        case cst.Subscript(value=whole) if not (_is_key(module, node) or _are_columns(module, whole)):
            return "takes a part of a tensor, which is another one in a batch"
        case cst.BinaryOperation(left=left, right=right):
            sides = [left, right]
        case cst.Comparison(left=left, comparisons=comparisons):
            sides = [left, *(other.comparator for other in comparisons)]
        case cst.Call(func=func) if not _is_alike(module, node):
            return f"calls {last_name(func)}(), which may treat a batch in another way than one element"
        case _:
            pass
    if sides and not any(_is_number(module, side) for side in sides):
        return "computes with two tensors, which broadcast in another way in a batch"
    return "" if isinstance(node, _SYNTAX) else "may treat a batch in another way than one element"


def _is_key(module: SyntaxTree, node: cst.Subscript) -> bool:
    """Say whether an item is taken by a text, as of a dictionary, or by a name that goes through its keys."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]:
            return True
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name() as key))]:
            loop = module.nearest(node, cst.ListComp)
            through = (loop.for_in.target, loop.for_in.iter) if loop else ()
            return [*map(module.written, through)] == [key.value, f"sorted({module.written(node.value)})"]
        case _:
            return False


def _are_columns(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether an expression is the list of columns of a line of text, or a slice of it."""
    match value:
        case cst.Name():
            sources = module.sources(value)
            made = sources[0].value if len(sources) == 1 and sources[0].place < 0 else None
            return isinstance(made, cst.Call) and module.from_tensorflow(made.func) in COLUMNS
        case cst.Subscript(value=cst.Name() as whole, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return _are_columns(module, whole)
        case _:
            return False


def _stacks_columns(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a call stacks the columns of a line of text, which are scalars."""
    stacks = module.from_tensorflow(call.func) == "tensorflow.stack"
    return stacks and bool(call.args) and _are_columns(module, call.args[0].value)


def _parses(module: SyntaxTree, call: cst.Call) -> bool:
    origin = module.from_tensorflow(call.func)
    return origin in COLUMNS or (origin in PARSERS and not named(call))


def _is_alike(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a call does the same to each element of a batch."""
    name, rest = last_name(call.func), [argument.value for argument in call.args[1:]]
    if _parses(module, call):
        return True
    if module.from_tensorflow(call.func) and name == "stack":
        last = any(module.written(value) == "-1" for value in rest)
        return last or (_stacks_columns(module, call) and not rest)
    if module.from_tensorflow(call.func):  # two tensors of different ranks would broadcast in another way
        return name in ELEMENTWISE and all(_is_number(module, value) for value in rest)
    if isinstance(call.func, cst.Name):
        return name == "sorted"
    return name == "pop" and len(call.args) == 1 and isinstance(call.args[0].value, cst.SimpleString)


def _is_number(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether an expression is a Python number, or a name of TensorFlow such as tf.float32."""
    if isinstance(value, cst.Name):
        return isinstance(made_by(module, value), cst.BaseNumber)
    return isinstance(value, cst.BaseNumber) or bool(module.from_tensorflow(value))


EDITS = {"vectorized-map": vectorized_map}
