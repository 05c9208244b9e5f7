"""Fused batch normalization: the class of the rule's example, used in place of Keras's."""

from tfdoctor.edits.kit import *

# Keras 3 under its names; tf_keras runs the fused operation itself.
ORIGINS = ("keras.layers.BatchNormalization", "tensorflow.keras.layers.BatchNormalization")

_SAVES = re.compile(r"\bload_model\b|\bmodel_from_json\b|\bto_json\b|\.save\(|\bModelCheckpoint\b")


def fused_batch_norm(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Add the class of the example below the imports, and make every layer of the file from it.

    The class computes inputs that the fused operation does not take as Keras does.
    """
    header = known(re.match(r"class (\w+)\(([\w.]+)\):", example), "the finding does not contain the class")
    calls = [call for call in module.all(ast.Call) if _is_class(module, call.func)]
    if not any(module.covers(call, line) for call in calls):
        raise Declined("the recorded line does not create a BatchNormalization layer of keras or tf.keras")
    made = [call.func for call in calls]
    for node in (*module.all(ast.Attribute), *module.all(ast.Name)):  # a value or a base, which the edit leaves
        if _is_class(module, node) and node not in made:
            raise Declined(f"the file also uses {last_name(node)} without creating a layer at once")
    if header[1] in module.text:
        raise Declined(f"the file uses the name {header[1]} already")
    if _SAVES.search(module.text):
        raise Declined("the file saves or loads models, and loading needs the class as well")
    first = next(node for node in module.tree.body if any(module.within(call, node) for call in calls))
    at, below = imports_above(module, first)
    tensorflow = module.name_of("tensorflow", below)
    if tensorflow is None and re.search(r"\btf\b", module.text):
        raise Declined("the name tf does not stand for TensorFlow")
    # the names that the file has for Keras and TensorFlow
    code = example.replace(header[2], module.written(calls[0].func), 1).replace("tf.", f"{tensorflow or 'tf'}.")
    added = ["", "import tensorflow as tf"] if tensorflow is None else [""]
    put = insert(at, module.lines.newline.join([*added, "", "", *code.split("\n")]), rank=1)
    return [put, *(module.replaced(call.func, header[1]) for call in calls)]


def _is_class(module: SyntaxTree, node: ast.expr) -> bool:
    return any(module.means(node, origin) for origin in ORIGINS)


EDITS = {"fused-batch-norm": fused_batch_norm}
