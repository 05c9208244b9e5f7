"""Whether what fit() is given looks at single batches, by what the file shows of it."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined

BY_EPOCH: dict[str, frozenset[str] | None] = {
    "BackupAndRestore": frozenset(["backup_dir"]),
    "CSVLogger": None,
    "EarlyStopping": None,
    "LambdaCallback": frozenset(
        ["on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end"]
    ),
    "LearningRateScheduler": None,
    "ModelCheckpoint": frozenset(
        ["filepath", "mode", "monitor", "save_best_only", "save_weights_only", "verbose"]
    ),
    "ReduceLROnPlateau": None,
    "TensorBoard": frozenset(["histogram_freq", "log_dir", "write_graph", "write_images"]),
}
"""Keras' callbacks that look at epochs only, where they are given no other arguments than these.

None: whatever they are given (https://keras.io/api/callbacks/).
"""

_MODULES = ("keras.callbacks", "tf_keras.callbacks", "tensorflow.keras.callbacks")
_PLACE = (
    5  # of callbacks among the positional arguments of fit(x, y, batch_size, epochs, verbose, ...)
)


def must_see_epochs_only(module: SyntaxTree) -> None:
    """Decline where a callback may look at each batch: of several steps in one call it sees the last."""
    fits = [
        call
        for call in module.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and last_name(call.func) == "fit"
    ]
    if not fits:
        raise Declined("the file does not show which callbacks fit() is given")
    for call in fits:
        if any(argument.star for argument in call.args):
            raise Declined("what .fit() is given is not written out (* or **)")
        if not all(_by_epoch(module, each) for each in _given(module, call)):
            raise Declined("a callback of fit() may look at each batch, and would see fewer")


def _given(module: SyntaxTree, call: cst.Call) -> list[cst.BaseExpression | None]:
    """Return the callbacks that a call of fit() lists; None among them cannot be told."""
    named = [each.value for each in call.args if each.keyword and each.keyword.value == "callbacks"]
    positional = [each.value for each in call.args if each.keyword is None][_PLACE:]
    if not (named or positional):
        return []
    match meant(module, (named or positional)[0]):
        case cst.Name(value="None"):
            return []
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return [meant(module, each.value) for each in elements]
        case _:
            return [None]


def meant(module: SyntaxTree, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return what a name was given, where that happens once and nothing else is done with it."""
    if not isinstance(value, cst.Name) or value.value == "None":
        return value
    uses = [each for each in module.all(cst.Name) if each.value == value.value]
    around = [module.parent(each) for each in uses]
    given = [module.parent(each) for each in around if isinstance(each, cst.AssignTarget)]
    plain = all(isinstance(each, cst.AssignTarget | cst.Arg | cst.Element) for each in around)
    first = given[0] if len(given) == 1 and plain else None
    return first.value if isinstance(first, cst.Assign) else None


def _by_epoch(module: SyntaxTree, callback: cst.BaseExpression | None) -> bool:
    """Say whether a callback is one of Keras' that look at epochs only, or of a class of the file.

    Whether classes of the file look at batches is told by their methods' names.
    """
    if not isinstance(callback, cst.Call):
        return False
    if any(
        module.means(base, f"{each}.Callback")
        for base in _bases(module, callback)
        for each in _MODULES
    ):
        return True
    name = last_name(callback.func)
    keras = any(module.means(callback.func, f"{each}.{name}") for each in _MODULES)
    if not keras or name not in BY_EPOCH:
        return False
    allowed = BY_EPOCH[name]
    given = {each.keyword.value if each.keyword else "" for each in callback.args[1:]}
    given |= {each.keyword.value for each in callback.args[:1] if each.keyword}
    return allowed is None or given <= allowed


def _bases(module: SyntaxTree, callback: cst.Call) -> list[cst.BaseExpression]:
    """Return the only base of the class of the file that is called, or []."""
    classes = [
        each
        for each in module.all(cst.ClassDef)
        if each.name.value == module.written(callback.func)
    ]
    bases = [base.value for each in classes for base in each.bases]
    return bases if len(classes) == len(bases) == 1 else []
