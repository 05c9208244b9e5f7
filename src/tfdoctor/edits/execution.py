"""Edits of how training steps run: compiled, several in one call, not eagerly."""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.callbacks import must_see_epochs_only
from tfdoctor.edits.eager import must_compile
from tfdoctor.edits.module import SyntaxTree, dotted, last_name, named, receiver
from tfdoctor.edits.splice import Declined, Splice, in_example, insert, only
from tfdoctor.recording.program import ProgramRecord

FUNCTION = "tensorflow.function"

# Arguments of a model's compile().
COMPILED_WITH = frozenset(
    ["jit_compile", "loss", "loss_weights", "metrics", "optimizer", "run_eagerly", "steps_per_execution",
     "weighted_metrics"]
)  # fmt: skip

_STEPS = r"steps_per_execution=(\d+)"
_NOT_COMPILED = re.compile(r"\b(py_function|numpy_function|tf\.print)\b")


def jit_compile(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``jit_compile=True`` to the compile() of the model, or to the tf.function around a line."""
    models = _compiles(module)
    everywhere = [  # those that take gradients
        (function, decorator)
        for function in module.all(cst.FunctionDef)
        for decorator in function.decorators
        if module.means(undecorated(decorator), FUNCTION) and "GradientTape" in module.written(function)
    ]
    around = [pair for pair in everywhere if module.covers(pair[0], line)]
    functions = around or ([] if models else everywhere)
    if functions and not any(module.covers(call, line) for call in models):
        return [_compiled_function(module, functions)]
    call = _compile(module, line)
    if written(module, call, "run_eagerly") not in ("", "False"):
        raise Declined("the model is compiled with run_eagerly, which excludes jit_compile")
    return [setting(module, call, "jit_compile", "True", instead_of=("None", '"auto"'))]


def _compiled_function(module: SyntaxTree, functions: list[tuple[cst.FunctionDef, cst.Decorator]]) -> Splice:
    """Return the splice that compiles the only one of some functions."""
    if len(functions) > 1:
        raise Declined("the file has several tf.functions")
    function, decorator = functions[0]
    if _NOT_COMPILED.search(module.written(function)):
        raise Declined("the function has operations that XLA cannot compile")
    expression = decorator.decorator
    if isinstance(expression, cst.Call):
        return setting(module, expression, "jit_compile", "True", instead_of=("None",))
    return insert(module.span(expression)[1], "(jit_compile=True)")


def steps_per_execution(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Give compile() the number of steps that the rule's example names."""
    number = in_example(_STEPS, example, "the number of steps")
    if re.search(r"\bon_(train_)?batch_(begin|end)\b", module.text):
        raise Declined("a callback in the file runs at each batch, and would see fewer")
    must_see_epochs_only(module)
    if re.search(r"\bvalidation_steps\b|\.evaluate\([^)]*\bsteps\b", module.text):
        raise Declined("the file sets the number of evaluation steps, which Keras would round up")
    call = _compile(module, line)
    return [setting(module, call, "steps_per_execution", number[1], instead_of=("None",))]


def must_fill_epochs(program: ProgramRecord, _: SyntaxTree, example: str) -> None:
    """Decline a number of steps per call that does not divide the recorded steps of an epoch."""
    number = re.search(_STEPS, example)
    steps = program.run.steps_per_epoch
    if not steps:
        raise Declined("the recording does not contain the number of steps per epoch")
    if number is not None and steps % int(number[1]):
        raise Declined(f"{number[1]} does not divide the {steps} steps of an epoch, so Keras may train on more")


def run_eagerly_off(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write False where the file sets run_eagerly=True for a model that does not need it."""
    if "run_functions_eagerly" in module.text:
        raise Declined("the file calls run_functions_eagerly, and some functions may need it")
    must_compile(module)
    values = [value for value in _run_eagerly_values(module) if module.written(value) == "True"]
    chosen = [value for value in values if module.line(value) == line] or values
    if len(chosen) != 1:
        many = "sets run_eagerly=True in several places" if chosen else "has no run_eagerly=True"
        raise Declined(f"the file {many}")
    return [module.replaced(chosen[0], "False")]


def _run_eagerly_values(module: SyntaxTree) -> list[cst.BaseExpression]:
    """Return the values that compile() is given as run_eagerly, and that attributes of this name are set to."""
    arguments = [value for call in module.calls("compile") if (value := named(call).get("run_eagerly"))]
    attributes = [
        assignment.value
        for assignment in module.all(cst.Assign)
        if last_name(assignment.targets[0].target) == "run_eagerly"
    ]
    return arguments + attributes


def _compile(module: SyntaxTree, line: int) -> cst.Call:
    """Return the call of compile() on a line, else the only one of the file."""
    calls = _compiles(module)
    return only([call for call in calls if module.covers(call, line)] or calls, "the file has {} to compile()")


def _compiles(module: SyntaxTree) -> list[cst.Call]:
    """Return the calls of a model's compile(), by its arguments and by the other uses of the model."""
    return [
        call
        for call in module.methods("compile")
        if (model := receiver(call))
        and dotted(model).partition(".")[0] not in module.imports
        and _of_model(module, call, model)
    ]


def _of_model(module: SyntaxTree, call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """Say whether compile() is a model's and not re.compile(), which takes a pattern and flags."""
    second = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else None
    trained = rf"(?<![\w.]){re.escape(module.written(receiver))}\.(fit|evaluate|train_on_batch)\("
    return (
        bool(named(call).keys() & COMPILED_WITH)
        or any(argument.star for argument in call.args)
        or isinstance(second, cst.SimpleString | cst.Call)
        or re.search(trained, module.text) is not None
    )


def undecorated(decorator: cst.Decorator) -> cst.BaseExpression:
    """Return the name of a decorator, without arguments."""
    expression = decorator.decorator
    return expression.func if isinstance(expression, cst.Call) else expression
