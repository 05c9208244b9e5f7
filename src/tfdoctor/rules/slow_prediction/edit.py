"""The edit that predicts all examples before a loop, where the loop calls predict() on one after another."""

from tfdoctor.edits.calls_per_batch import must_be_of_keras
from tfdoctor.edits.kit import *
from tfdoctor.terms.record import Record

# What makes a prediction depend on the one before, or predict() another function.
_STATE = re.compile(r"\bstateful\b|\.reset_states?\b|\bdef predict\b")

_NEW_AXIS = re.compile(r"(?:None|(?:np|numpy|tf)\.newaxis)(?:, ?(?:\.\.\.|:))*")

NOT_AS_IT_IS = "predict() does not get the example of the loop as it is"

_LEAVES = (cst.Break, cst.Return, cst.Continue, cst.Raise)

# Methods of arrays, and of tables, whose result is an array.
METHODS = frozenset({"astype", "reshape", "copy", "to_numpy", "clip", "round", "transpose"})
# Functions of NumPy that return something else than one array of numbers.
LISTS = frozenset({"split", "array_split", "meshgrid", "where", "nonzero", "load", "broadcast_arrays"})
# Data sets of Keras whose examples all have one shape.
SETS = frozenset({"mnist", "fashion_mnist", "cifar10", "cifar100", "california_housing", "boston_housing"})


class PredictCall(Record):
    """A call of predict() on one example: ``example`` is how it is written, ``outer`` the call or its item [0]."""

    call: cst.Call
    model: str
    example: cst.BaseExpression
    row: cst.BaseExpression | None  # ``x`` of ``x[None]``, ``np.expand_dims(x, 0)`` and ``np.array([x])``
    outer: cst.CSTNode
    first: bool  # only the first row of the result is used

    def must_get(self, name: str) -> None:
        """Decline where it does not get the row of a name."""
        if not isinstance(self.row, cst.Name) or self.row.value != name:
            raise Declined(NOT_AS_IT_IS)

    def once(self, module: SyntaxTree, through: str) -> str:
        """Return the call of all examples; a batch size that was chosen for one is left out."""
        verbose = written(module, self.call, "verbose")
        return f"{self.model}.predict({through}{f', verbose={verbose}' if verbose else ''})"


def predict_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Call predict() once, on the array that the loop around a line goes through."""
    call = only(module.methods("predict", line=line), f"line {line} does not have exactly one call of predict()")
    model, outer, given = receiver(call), module.parent(call), [one for one in call.args if one.keyword is None]
    if len(given) != 1 or given[0].star or not named(call).keys() <= {"verbose", "batch_size"}:
        raise Declined("predict() has other arguments than the example")
    if not isinstance(model, cst.Name):
        raise Declined("the model is no plain name")
    row, example = None, given[0].value
    match example:
        case cst.Subscript(value=of) if _NEW_AXIS.fullmatch(_item(module, example)):
            row = of
        case cst.Call(func=func, args=[cst.Arg(value=of), cst.Arg(value=cst.Integer(value="0"))]):
            row = of if last_name(func) == "expand_dims" else None
        case cst.Call(func=func, args=[cst.Arg(value=cst.List(elements=[cst.Element(value=of)]))]):
            row = of if last_name(func) in {"array", "asarray", "stack"} else None
        case _:
            pass
    first = isinstance(outer, cst.Subscript) and module.written(outer) == f"{module.written(call)}[0]"
    predicted = PredictCall(call, model.value, example, row, outer if first and outer else call, first)
    must_be_of_keras(module, Values(module), call)
    if found := _STATE.search(module.text):
        raise Declined(f"the file has `{found[0]}`: a prediction may depend on the one before")
    for loop in module.outward(call, cst.FunctionDef, cst.Lambda, cst.While):
        if isinstance(loop, cst.ListComp):
            return _in_list(module, predicted, loop)
        if isinstance(loop, cst.For):
            return _in_loop(module, predicted, loop)
    raise Declined("the loop around predict() is not in the same function, or goes through no array")


def _item(module: SyntaxTree, node: cst.Subscript) -> str:
    return module.written(node)[len(module.written(node.value)) + 1 : -1]


def _in_list(module: SyntaxTree, call: PredictCall, made: cst.ListComp) -> list[Splice]:
    """Replace ``[model.predict(x[None])[0] for x in xs]`` by ``list(model.predict(xs))``."""
    part = made.for_in
    if part.ifs or part.inner_for_in or made.elt is not call.outer:
        raise Declined("the list is made of more than the predictions for one array")
    if not isinstance(part.iter, cst.Name) or not isinstance(part.target, cst.Name):
        raise Declined("the loop around predict() does not go through one array")
    call.must_get(part.target.value)
    _must_be_array(module, part.iter)
    once = call.once(module, part.iter.value)
    return [module.replaced(made, f"list({once})" if call.first else f"[row[None] for row in {once}]")]


def _in_loop(module: SyntaxTree, call: PredictCall, loop: cst.For) -> list[Splice]:
    """Predict before the loop, and take each example's prediction from the result."""
    statement = module.nearest(call.call, cst.SimpleStatementLine)
    if statement is None or module.parent(statement) is not loop.body:
        raise Declined("the loop does not call predict() at each turn")
    if loop.asynchronous or any(module.inside(kind, loop) for kind in _LEAVES):
        raise Declined("the loop may end, or skip examples, before it has predicted all of them")
    through, rows, at = _through(module, call, loop)
    _must_be_array(module, through)
    names = module.inside(cst.Name, loop.body)
    others = [node for node in names if not module.within(node, call.outer)]
    if any(node.value in {call.model, through.value} for node in others):
        raise Declined(f"the loop uses `{call.model}` or `{through.value}` otherwise, and may change it")
    used = {node.value for node in names if module.within(node, call.example)}
    rowed = used & {node.value for node in module.inside(cst.Name, loop.target)}
    if any(node.value in rowed and module.span(node)[0] < module.span(statement)[0] for node in others):
        raise Declined("the loop may change the example before it is predicted")
    name, start, lines = unused_name(module, "predictions"), module.span(loop)[0], module.lines
    put = insert(start, f"{name} = {call.once(module, rows)}{lines.newline}{lines.indent(start)}")
    if at:
        return [put, module.replaced(call.outer, f"{name}[{at}]" if call.first else f"{name}[{at} : {at} + 1]")]
    row = unused_name(module, "prediction")
    # The loop goes through the predictions as well.
    target, zipped = module.written(loop.target), f"zip({module.written(loop.iter)}, {name})"
    splice = module.replaced(loop.iter, zipped)
    if isinstance(loop.iter, cst.Call):  # zip(xs, ys)
        target, splice = target.rstrip(", "), insert(module.span(loop.iter)[1] - 1, f", {name}")
    taken = module.replaced(call.outer, row if call.first else f"{row}[None]")
    return [put, module.replaced(loop.target, f"{target}, {row}"), splice, taken]


def _through(module: SyntaxTree, call: PredictCall, loop: cst.For) -> tuple[cst.Name, str, str]:
    """Return the array whose rows a loop goes through, or whose places it counts: range(len(xs)), or range(n).

    With it are what of it the loop goes through, as written, and the name of the place in it, or "".
    A counted example is ``xs[i : i + 1]``, ``xs[[i]]`` or ``xs[i][None]``.
    """
    match loop.target, loop.iter:
        case cst.Name(value=at), cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=until)]):
            size, plain = module.written(until), isinstance(until, cst.Name | cst.Integer)
            for part, items in ((call.example, {f"{at}:{at}+1", f"[{at}]"}), (call.row, {at})):
                array = part.value if isinstance(part, cst.Subscript) else None
                item = re.sub(r"\s", "", _item(module, part)) if isinstance(part, cst.Subscript) else ""
                whole = isinstance(array, cst.Name) and size == f"len({array.value})"
                if isinstance(array, cst.Name) and item in items and (whole or plain):
                    return array, array.value if whole else f"{array.value}[:{size}]", at
            raise Declined(NOT_AS_IT_IS)
        case cst.Name(value=x), cst.Name() as through:
            at = ""
        case (
            cst.Tuple(elements=[cst.Element(value=cst.Name(value=at)), cst.Element(value=cst.Name(value=x))]),
            cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=cst.Name() as through)]),
        ):
            pass
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=x)), *_]), cst.Call(
            func=cst.Name(value="zip"), args=[cst.Arg(value=cst.Name() as through, star=""), *_]
        ):
            at = ""
        case _:
            raise Declined(NOT_AS_IT_IS)
    call.must_get(x)
    return through, through.value, at


def _must_be_array(module: SyntaxTree, through: cst.Name) -> None:
    if not _is_array(Values(module), through):
        raise Declined(f"the file does not show that `{through.value}` is an array")


def _is_array(  # noqa: PLR0911 - one case a kind
    values: Values, value: cst.BaseExpression, seen: frozenset[int] = frozenset()
) -> bool:
    """Say whether an expression is an array of NumPy beyond doubt, whose rows all have one shape."""
    if id(value) in seen:
        return True  # x = x / 255: what else it stands for decides
    seen |= {id(value)}
    match value:
        case cst.Name():
            if values.sources(value):
                return values.always(value, lambda source: _is_array(values, source, seen))
            bound = values.module.bound(value)  # (x, y), _ = mnist.load_data()
            made = values.module.nearest(bound[0], cst.Assign) if len(bound) == 1 else None
            parts = dotted(made.value.func).split(".") if made and isinstance(made.value, cst.Call) else [""]
            return parts[-1] == "load_data" and not SETS.isdisjoint(parts)
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(value=name)), args=args):
            origins = values.module.imports.get(dotted(of).partition(".")[0], set())
            if {origin.partition(".")[0] for origin in origins} != {"numpy"}:
                return name == "to_numpy" or (name in METHODS and _is_array(values, of, seen))
            # np.random and others; an array may hold objects: lists of different lengths
            given = args[0].value if args else None
            typed = len(args) > 1 or any(argument.keyword for argument in args)
            told = typed or name not in {"array", "asarray"} or isinstance(given, cst.List | cst.ListComp)
            return name not in LISTS and told and "object" not in {last_name(one.value) for one in args}
        case cst.Subscript(value=rows, slice=[cst.SubscriptElement(slice=cst.Slice()), *_]):
            return _is_array(values, rows, seen)
        case cst.BinaryOperation(left=left, right=right):
            return _is_array(values, left, seen) or _is_array(values, right, seen)
        case _:
            return False


EDITS = {"predict-once": predict_once}
