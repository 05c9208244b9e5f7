"""The edit that calls a model's own function of one batch, where a loop calls predict() or fit() on one batch.

``predict`` and ``fit`` build a dataset, an iterator and callbacks at each call. For a single batch
``predict_on_batch`` and ``train_on_batch`` compute the same (https://keras.io/api/models/model_training_apis/).
"""

import re
from collections.abc import Iterable

import libcst as cst

from tfdoctor.edits.batch_rows import Rows
from tfdoctor.edits.module import SyntaxTree, last_name, named, positional
from tfdoctor.edits.splice import Declined, Elsewhere, Splice, only
from tfdoctor.edits.values import Values, given

# Rows that fit into one batch wherever predict() takes 32 at a time (its default) beside a training step.
MOST_ROWS = 128
DEFAULT_ROWS = "32"  # The batch size of fit() and predict() without one

_TRAINED_OTHERWISE = re.compile(
    r"\buse_ema\b|\bsteps_per_execution\b|\.history\b|\bdef (?:fit|predict|train_on_batch)\b"
)


def calls_per_batch(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Replace predict() or fit() on a line, which get a single batch."""
    calls = module.methods("fit", "predict", line=line)
    if len(calls) != 1:
        many = "several calls" if calls else "no call"
        raise Elsewhere(f"line {line} has {many} of predict() or fit()")
    if found := _TRAINED_OTHERWISE.search(module.text):
        raise Declined(f"the file has `{found[0].strip()}`, which depends on how the model is called")
    call, rows = calls[0], Rows(module)
    must_be_of_keras(module, rows.values, call)
    return _predicted(module, rows, call) if last_name(call.func) == "predict" else _trained(module, rows, call)


def predict_on_batch(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Replace predict() on a line, whose rows then go through the model at once, however many they are."""
    call = only(module.methods("predict", line=line), f"line {line} has {{}} of predict()")
    if found := _TRAINED_OTHERWISE.search(module.text):
        raise Declined(f"the file has `{found[0].strip()}`, which depends on how the model is called")
    must_be_of_keras(module, Values(module), call)
    inputs, _options = _arguments(call, 1, {"batch_size", "verbose"})
    return _renamed(module, call, "predict_on_batch", inputs)


def _predicted(module: SyntaxTree, rows: Rows, call: cst.Call) -> list[Splice]:
    inputs, options = _arguments(call, 1, {"batch_size", "verbose"})
    number = rows.of(inputs[0])
    same = number == rows.number(options.get("batch_size")) != ""
    few = number.isdecimal() and int(number) <= MOST_ROWS
    if not few and not same:
        raise Declined("the file does not show that predict() gets a single batch")
    return _renamed(module, call, "predict_on_batch", inputs)


def _trained(module: SyntaxTree, rows: Rows, call: cst.Call) -> list[Splice]:
    """Return the edit of fit() on one batch, whose result nobody reads."""
    inputs, options = _arguments(call, 2, {"batch_size", "epochs", "shuffle", "verbose"})
    if not isinstance(module.parent(call), cst.Expr):
        raise Declined("the file uses the result of fit()")
    if not _is(options.get("epochs"), "1") or not _is(options.get("verbose"), "0", absent=False):
        raise Declined("fit() trains for several epochs, or prints its progress")
    size = rows.number(options["batch_size"]) if "batch_size" in options else DEFAULT_ROWS
    number = rows.of(inputs[0])
    known = number.isdecimal() and size.isdecimal()
    if not (int(number) <= int(size) if known else number == size != ""):
        raise Declined("the file does not show that fit() gets a single batch")
    return _renamed(module, call, "train_on_batch", inputs)


def _is(value: cst.BaseExpression | None, written: str, *, absent: bool = True) -> bool:
    return absent if value is None else isinstance(value, cst.Integer) and value.value == written


def _arguments(
    call: cst.Call, count: int, allowed: Iterable[str]
) -> tuple[list[cst.BaseExpression], dict[str, cst.BaseExpression]]:
    """Return the positional and the named arguments; decline others than some."""
    inputs, options = positional(call), named(call)
    starred = any(argument.star for argument in call.args)
    if starred or len(inputs) != count or not set(options) <= set(allowed):
        raise Declined(f"{last_name(call.func)}() has arguments that one batch has not")
    return inputs, options


def _renamed(module: SyntaxTree, call: cst.Call, name: str, inputs: list[cst.BaseExpression]) -> list[Splice]:
    """Return the splices: the method's new name, and only the arguments that it has."""
    method = call.func
    if not isinstance(method, cst.Attribute):
        raise Declined("the call is not one of a method")
    start, end = module.span(call.args[0])[0], module.span(call)[1] - 1
    if "#" in module.text[start:end]:
        raise Declined("a comment stands between the arguments of the call")
    given = ", ".join(module.written(value) for value in inputs)
    return [module.replaced(method.attr, name), Splice(start, end, 0, given)]


def must_be_of_keras(module: SyntaxTree, values: Values, call: cst.Call) -> None:
    """Decline where the object may be no Keras model: other libraries have fit() and predict() as well."""
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    if receiver is not None and _of_callback(module, values, receiver):
        return
    made: cst.BaseExpression | None = None
    match receiver:
        case cst.Name() if arguments := _given(module, values, receiver):
            objects = [values.object(value) if isinstance(value, cst.Name) else None for value in arguments]
            known = [one for one in objects if isinstance(one, cst.Call) and values.makes_model(one)]
            made = known[0] if len(known) == len(objects) else None
        case cst.Name():
            made = values.object(receiver)
        case cst.Attribute(value=cst.Name(value="self")):
            written = module.written(receiver)
            found = [
                node.value
                for node in module.all(cst.Assign)
                if any(module.written(target.target) == written for target in node.targets)
            ]
            made = found[0] if len(found) == 1 else None
        case _:
            pass
    if not isinstance(made, cst.Call) or not values.makes_model(made):
        raise Declined("the file does not show that the call is one of a Keras model")


def _of_callback(module: SyntaxTree, values: Values, receiver: cst.BaseExpression) -> bool:
    """Say whether an expression is ``self.model`` of a callback of Keras, which Keras sets."""
    owner = module.nearest(receiver, cst.ClassDef)
    if owner is None or module.written(receiver) != "self.model" or len(owner.bases) != 1:
        return False
    base = values.from_tensorflow(owner.bases[0].value)
    assigned = [module.written(node.target) for node in module.all(cst.AssignTarget)]
    return base.endswith(".callbacks.Callback") and "self.model" not in assigned


def _given(module: SyntaxTree, values: Values, name: cst.Name) -> list[cst.BaseExpression | None]:
    """Return what all calls of a function of the file give one of its parameters; [] of any other name."""
    bound, function = module.bound(name), module.nearest(name, cst.FunctionDef)
    if function is None or len(bound) != 1 or not isinstance(bound[0], cst.Param):
        return []
    return [given(function, call, name.value) for call in values.callers(name)]
