"""Whether the callbacks of fit() need single batches, as far as the file shows them."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name, named, positional
from tfdoctor.edits.splice import Declined

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
"""Keras' callbacks that need epochs only, where they are given no other arguments than these.

None: with any arguments (https://keras.io/api/callbacks/).
"""

_MODULES = ("keras.callbacks", "tf_keras.callbacks", "tensorflow.keras.callbacks")

_PLACE = 5  # Of ``callbacks`` among the positional arguments: fit(x, y, batch_size, epochs, verbose, ...)


def must_see_epochs_only(module: SyntaxTree) -> None:
    """Decline where a callback may need each batch: of several steps in one call it sees the last."""
    fits = module.methods("fit")
    if not fits:
        raise Declined("the file does not call fit(), so the callbacks are unknown")
    for call in fits:
        if any(argument.star for argument in call.args):
            raise Declined(".fit() is called with * or **, so the callbacks are unknown")
        if not all(_by_epoch(module, callback) for callback in _callbacks(module, call)):
            raise Declined("a callback of fit() may need every batch, and would see fewer")


def _callbacks(module: SyntaxTree, call: cst.Call) -> list[cst.BaseExpression | None]:
    """Return the callbacks that a call of fit() lists, with None for one that cannot be followed."""
    given = named(call).get("callbacks") or next(iter(positional(call)[_PLACE:]), None)
    if given is None:
        return []
    match meant(module, given):
        case cst.Name(value="None"):
            return []
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return [meant(module, element.value) for element in elements]
        case _:
            return [None]


def meant(module: SyntaxTree, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the value of a name that is assigned once and is otherwise only passed on."""
    if not isinstance(value, cst.Name) or value.value == "None":
        return value
    uses = [name for name in module.all(cst.Name) if name.value == value.value]
    around = [module.parent(name) for name in uses]
    assigned = [module.parent(node) for node in around if isinstance(node, cst.AssignTarget)]
    plain = all(isinstance(node, cst.AssignTarget | cst.Arg | cst.Element) for node in around)
    only = assigned[0] if len(assigned) == 1 and plain else None
    return only.value if isinstance(only, cst.Assign) else None


def _by_epoch(module: SyntaxTree, callback: cst.BaseExpression | None) -> bool:
    """Say whether a callback needs epochs only: it is one of Keras', or of a class of the file.

    The methods of the file's classes are checked by their names elsewhere.
    """
    if not isinstance(callback, cst.Call):
        return False
    if _derives_from_keras(module, callback):
        return True
    name = last_name(callback.func)
    from_keras = any(module.means(callback.func, f"{package}.{name}") for package in _MODULES)
    if not from_keras or name not in BY_EPOCH:
        return False
    allowed = BY_EPOCH[name]
    first, rest = callback.args[:1], callback.args[1:]
    given = {argument.keyword.value if argument.keyword else "" for argument in rest}
    given |= {argument.keyword.value for argument in first if argument.keyword}
    return allowed is None or given <= allowed


def _derives_from_keras(module: SyntaxTree, callback: cst.Call) -> bool:
    """Say whether the class of the file that is called has Keras' Callback as its only base."""
    classes = [
        definition
        for definition in module.all(cst.ClassDef)
        if definition.name.value == module.written(callback.func)
    ]
    bases = [base.value for definition in classes for base in definition.bases]
    only = len(classes) == len(bases) == 1
    return only and any(module.means(bases[0], f"{package}.Callback") for package in _MODULES)
