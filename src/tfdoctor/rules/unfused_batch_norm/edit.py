"""Fused batch normalization: the class of the rule's example, used in place of Keras's."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, imports_above, last_name
from tfdoctor.edits.splice import Declined, Splice, insert

# Keras 3 under its names; tf_keras runs the fused operation itself.
ORIGINS = ("keras.layers.BatchNormalization", "tensorflow.keras.layers.BatchNormalization")

_CLASS = re.compile(r"class (\w+)\(([\w.]+)\):")
_SAVES = re.compile(r"\bload_model\b|\bmodel_from_json\b|\bto_json\b|\.save\(|\bModelCheckpoint\b")


def fused_batch_norm(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Add the class of the example below the imports, and make every layer of the file from it.

    The class computes inputs that the fused operation does not take as Keras does.
    """
    header = _CLASS.match(example)
    if header is None:
        raise Declined("the finding does not contain the class")
    calls = [call for call in module.all(cst.Call) if _is_class(module, call.func)]
    if not any(module.covers(call, line) for call in calls):
        raise Declined("the recorded line does not create a BatchNormalization layer of Keras")
    if last_uses := _other_uses(module, calls):
        raise Declined(f"the file also uses {last_uses} without creating a layer at once")
    if header[1] in module.text:
        raise Declined(f"the file uses the name {header[1]} already")
    if _SAVES.search(module.text):
        raise Declined("the file saves or loads models, and loading needs the class as well")
    used = [Splice(*module.span(call.func), 0, header[1]) for call in calls]
    return [_definition(module, calls, example, header), *used]


def _is_class(module: SyntaxTree, node: cst.BaseExpression) -> bool:
    return any(module.means(node, origin) for origin in ORIGINS)


def _other_uses(module: SyntaxTree, calls: list[cst.Call]) -> str:
    """Return the class where it is used as a value or a base, which the edit does not follow; "" if never."""
    made = {module.span(call.func) for call in calls}
    for kind in (cst.Attribute, cst.Name):
        for node in module.all(kind):
            imported = any(module.around(node, cst.ImportAlias))
            if _is_class(module, node) and not imported and module.span(node) not in made:
                return last_name(node)
    return ""


def _definition(module: SyntaxTree, calls: list[cst.Call], example: str, header: re.Match[str]) -> Splice:
    """Insert the class, with the names that the file has for Keras and TensorFlow."""
    first = next(node for node in module.tree.body if any(module.within(call, node) for call in calls))
    imports, below = imports_above(module, first)
    if imports is None:
        raise Declined("no import precedes the first layer")
    tensorflow = module.name_of("tensorflow", below)
    if tensorflow is None and re.search(r"\btf\b", module.text):
        raise Declined("the name tf does not stand for TensorFlow")
    base = module.written(calls[0].func)
    code = example.replace(header[2], base, 1).replace("tf.", f"{tensorflow or 'tf'}.")
    added = ["", "import tensorflow as tf"] if tensorflow is None else [""]
    at, newline = module.lines.end(module.span(imports)[1]), module.lines.newline
    return insert(at, newline.join([*added, "", "", *code.split("\n")]), rank=1)


EDITS: dict[str, Kind] = {"fused-batch-norm": fused_batch_norm}
