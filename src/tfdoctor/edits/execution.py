"""Edits of how training steps run: compiled, several in one call, not eagerly."""

from tfdoctor.edits.graph import must_compile
from tfdoctor.edits.kit import *

# Arguments of a model's compile().
COMPILED_WITH = frozenset(
    ["jit_compile", "loss", "loss_weights", "metrics", "optimizer", "run_eagerly", "steps_per_execution",
     "weighted_metrics"]
)  # fmt: skip

# Keras' callbacks that need epochs only, where they are given no other arguments than these; None: with any
# arguments (https://keras.io/api/callbacks/).
BY_EPOCH: dict[str, frozenset[str] | None] = {
    "BackupAndRestore": frozenset(["backup_dir"]),
    "CSVLogger": None,
    "EarlyStopping": None,
    "LambdaCallback": frozenset(["on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end"]),
    "LearningRateScheduler": None,
    "ModelCheckpoint": frozenset(["filepath", "mode", "monitor", "save_best_only", "save_weights_only", "verbose"]),
    "ReduceLROnPlateau": None,
    "TensorBoard": frozenset(["histogram_freq", "log_dir", "write_graph", "write_images"]),
}

_CALLBACKS = ("keras.callbacks", "tf_keras.callbacks", "tensorflow.keras.callbacks")
_PLACE = 5  # Of ``callbacks`` among the positional arguments: fit(x, y, batch_size, epochs, verbose, ...)

_STEPS = r"steps_per_execution=(\d+)"


def jit_compile(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``jit_compile=True`` to the compile() of the model."""
    call = _compile(module, line)
    if written(module, call, "run_eagerly") not in ("", "False"):
        raise Declined("the model is compiled with run_eagerly, which excludes jit_compile")
    return [setting(module, call, "jit_compile", "True", instead_of=("None", '"auto"'))]


def steps_per_execution(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Give compile() the number of steps that the rule's example names."""
    number = in_example(_STEPS, example, "the number of steps")
    if re.search(r"\bon_(train_)?batch_(begin|end)\b", module.text):
        raise Declined("a callback in the file runs at each batch, and would see fewer")
    _must_see_epochs_only(module)
    if re.search(r"\bvalidation_steps\b|\.evaluate\([^)]*\bsteps\b", module.text):
        raise Declined("the file sets the number of evaluation steps, which Keras would round up")
    call = _compile(module, line)
    return [setting(module, call, "steps_per_execution", number[1], instead_of=("None",))]


def must_fill_epochs(program: ProgramRecord, _: SyntaxTree, __: int, example: str) -> None:
    """Decline a number of steps per call that does not divide the recorded steps of an epoch."""
    number, steps = in_example(_STEPS, example, "the number of steps")[1], program.run.steps_per_epoch
    if not steps:
        raise Declined("the recording does not contain the number of steps per epoch")
    if steps % int(number):
        raise Declined(f"{number} does not divide the {steps} steps of an epoch, so Keras may train on more")


def _must_see_epochs_only(module: SyntaxTree) -> None:
    """Decline where a callback may need each batch: of several steps in one call it sees the last."""
    fits = module.methods("fit")
    if not fits:
        raise Declined("the file does not call fit(), so the callbacks are unknown")
    for call in fits:
        if spread(call):
            raise Declined(".fit() is called with * or **, so the callbacks are unknown")
        given = named(call).get("callbacks") or next(iter(call.args[_PLACE:]), ast.Constant(None))
        match module.passed_on(given):
            case ast.Constant(value=None):
                continue
            case ast.List(elts=parts) | ast.Tuple(elts=parts) if all(
                _by_epoch(module, module.passed_on(part)) for part in parts
            ):
                continue
            case _:
                raise Declined("a callback of fit() may need every batch, and would see fewer")


def _by_epoch(module: SyntaxTree, callback: ast.expr | None) -> bool:
    """Say whether a callback needs epochs only: it is one of Keras', or of a class of the file.

    The methods of the file's classes are checked by their names elsewhere.
    """
    if not isinstance(callback, ast.Call):
        return False
    classes = [one for one in module.all(ast.ClassDef) if one.name == module.written(callback.func)]
    bases = [base for definition in classes for base in definition.bases]
    if len(classes) == len(bases) == 1 and any(module.means(bases[0], f"{one}.Callback") for one in _CALLBACKS):
        return True
    name = tail(callback)
    if name not in BY_EPOCH or not any(module.means(callback.func, f"{one}.{name}") for one in _CALLBACKS):
        return False
    allowed = BY_EPOCH[name]
    by_place = len(callback.args) > 1 or spread(callback)
    return allowed is None or (not by_place and named(callback).keys() <= allowed)


def run_eagerly_off(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write False where the file sets run_eagerly=True for a model that does not need it."""
    if "run_functions_eagerly" in module.text:
        raise Declined("the file calls run_functions_eagerly, and some functions may need it")
    arguments = [value for call in module.calls("compile") if (value := named(call).get("run_eagerly"))]
    attributes = [one.value for one in module.all(ast.Assign) if last_name(one.targets[0]) == "run_eagerly"]
    values = [value for value in (*arguments, *attributes) if module.written(value) == "True"]
    chosen = [value for value in values if value.lineno == line] or values
    if len(chosen) != 1:
        many = "sets run_eagerly=True in several places" if chosen else "has no run_eagerly=True"
        raise Declined(f"the file {many}")
    must_compile(module)
    return [module.replaced(chosen[0], "False")]


def _compile(module: SyntaxTree, line: int) -> ast.Call:
    """Return the call of compile() on a line, else the only one of the file."""
    compiles = module.methods("compile")  # re.compile(), which takes a pattern and flags, is none of a model
    calls = [one for one in compiles if (model := receiver(one)) and _is_models(module, one, model)]
    here = [call for call in calls if module.covers(call, line)]
    return only(here or calls, "the file has {} to a model's compile()")


def _is_models(module: SyntaxTree, call: ast.Call, model: ast.expr) -> bool:
    """Say whether compile() is a model's by its arguments, or by the other uses of the model."""
    second = next(iter(call.args[1:]), None)
    trained = rf"(?<![\w.]){re.escape(module.written(model))}\.(fit|evaluate|train_on_batch)\("
    return dotted(model).partition(".")[0] not in module.imports and (
        bool(named(call).keys() & COMPILED_WITH)
        or spread(call)
        or isinstance(second, ast.Call)
        or is_text(second)
        or re.search(trained, module.text) is not None
    )
