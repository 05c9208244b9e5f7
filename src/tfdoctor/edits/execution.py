"""Edits of how the steps of a training run: compiled, together, not eagerly."""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.callbacks import must_see_epochs_only
from tfdoctor.edits.eager import must_compile
from tfdoctor.edits.module import SyntaxTree, dotted, last_name
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.recording.program import ProgramRecord

FUNCTION = "tensorflow.function"

COMPILED_WITH = frozenset(
    [
        "jit_compile",
        "loss",
        "loss_weights",
        "metrics",
        "optimizer",
        "run_eagerly",
        "steps_per_execution",
        "weighted_metrics",
    ]
)
"""Arguments of a model's compile()."""

_STEPS = re.compile(r"steps_per_execution=(\d+)")


def jit_compile(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``jit_compile=True`` to the compile() of the model, or to the tf.function around a line."""
    around = [each for each in _functions(module) if module.covers(each[0], line)]
    models = _compiles(module)
    functions = around or ([] if models else _functions(module))
    if functions and not any(module.covers(call, line) for call in models):
        if len(functions) > 1:
            raise Declined("the file has several tf.functions")
        if re.search(
            r"\b(py_function|numpy_function|tf\.print)\b", module.written(functions[0][0])
        ):
            raise Declined("the function does what XLA cannot compile")
        return [_decorated(module, functions[0][1])]
    call = _compile(module, line)
    if written(module, call, "run_eagerly") not in ("", "False"):
        raise Declined("the model is told to run eagerly, which excludes it")
    return [setting(module, call, "jit_compile", "True", instead_of=("None", '"auto"'))]


def steps_per_execution(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Give compile() the number of steps that the rule's example names."""
    number = _STEPS.search(example)
    if number is None:
        raise Declined("the rule does not say how many steps")
    if re.search(r"\bon_(train_)?batch_(begin|end)\b", module.text):
        raise Declined("a callback of the file looks at each batch, and would see fewer")
    must_see_epochs_only(module)
    if re.search(r"\bvalidation_steps\b|\.evaluate\([^)]*\bsteps\b", module.text):
        raise Declined("the steps of an evaluation are told, and Keras would round them up")
    call = _compile(module, line)
    return [setting(module, call, "steps_per_execution", number[1], instead_of=("None",))]


def must_fill_epochs(program: ProgramRecord, example: str) -> None:
    """Decline steps together that do not fill the epochs of the run, as the recording tells them."""
    number = _STEPS.search(example)
    steps = program.run.steps_per_epoch
    if not steps:
        raise Declined("the recording does not tell how many steps an epoch has")
    if number is not None and steps % int(number[1]):
        raise Declined(
            f"an epoch has {steps} steps, which {number[1]} does not divide: Keras may train on more"
        )


def run_eagerly_off(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write False where the file asks for eager steps of a model that needs none."""
    if "run_functions_eagerly" in module.text:
        raise Declined("all functions of the run are told to run eagerly, and some may need to")
    must_compile(module)
    found = [
        *(value for call in module.all(cst.Call) for value in _asks(call)),
        *(
            each.value
            for each in module.all(cst.Assign)
            if last_name(each.targets[0].target) == "run_eagerly"
        ),
    ]
    asked = [value for value in found if module.written(value) == "True"]
    told = [value for value in asked if module.line(value) == line]
    chosen = told or asked
    if len(chosen) != 1:
        how = "several places that ask" if chosen else "no place that plainly asks"
        raise Declined(f"the file has {how} for eager steps")
    start, end = module.span(chosen[0])
    return [Splice(start, end, 0, "False")]


def _asks(call: cst.Call) -> list[cst.BaseExpression]:
    """Return the values by which a call may ask for eager steps."""
    named = [each for each in call.args if each.keyword and each.keyword.value == "run_eagerly"]
    return [each.value for each in named] if last_name(call.func) == "compile" else []


def _compile(module: SyntaxTree, line: int) -> cst.Call:
    """Return the call of compile() on a line, else the only one of the file."""
    calls = _compiles(module)
    told = [call for call in calls if module.covers(call, line)]
    chosen = told or calls
    if len(chosen) != 1:
        raise Declined(f"the file has {'several calls' if chosen else 'no call'} of compile()")
    return chosen[0]


def _compiles(module: SyntaxTree) -> list[cst.Call]:
    """Return the calls of a compile() that is a model's, by what it is given or is done with the thing."""
    return [
        call
        for call in module.all(cst.Call)
        if isinstance(call.func, cst.Attribute)
        and last_name(call.func) == "compile"
        and dotted(call.func.value).partition(".")[0] not in module.imports
        and _of_model(module, call, call.func.value)
    ]


def _of_model(module: SyntaxTree, call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """Say whether a compile() is no regular expression's: that takes a pattern and flags."""
    named = {each.keyword.value for each in call.args if each.keyword}
    second = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else None
    trained = rf"(?<![\w.]){re.escape(module.written(receiver))}\.(fit|evaluate|train_on_batch)\("
    return (
        bool(named & COMPILED_WITH)
        or any(each.star for each in call.args)
        or isinstance(second, cst.SimpleString | cst.Call)
        or re.search(trained, module.text) is not None
    )


def _functions(module: SyntaxTree) -> list[tuple[cst.FunctionDef, cst.Decorator]]:
    """Return the functions that take gradients and are decorated with tf.function."""
    return [
        (function, decorator)
        for function in module.all(cst.FunctionDef)
        for decorator in function.decorators
        if module.means(_undecorated(decorator), FUNCTION)
        and "GradientTape" in module.written(function)
    ]


def _undecorated(decorator: cst.Decorator) -> cst.BaseExpression:
    made = decorator.decorator
    return made.func if isinstance(made, cst.Call) else made


def _decorated(module: SyntaxTree, decorator: cst.Decorator) -> Splice:
    made = decorator.decorator
    if isinstance(made, cst.Call):
        return setting(module, made, "jit_compile", "True", instead_of=("None",))
    return insert(module.span(made)[1], "(jit_compile=True)")
