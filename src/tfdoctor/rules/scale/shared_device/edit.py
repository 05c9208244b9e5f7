"""The edit that trains without replicas, where a line makes the strategy for logical devices of one processor."""

from tfdoctor.edits.kit import *

MIRRORED = frozenset(f"tensorflow.distribute.{package}MirroredStrategy" for package in ("", "experimental."))


def one_replica(module: SyntaxTree, _: int, __: str) -> list[Splice]:
    """Write ``tf.distribute.get_strategy()`` for the only ``tf.distribute.MirroredStrategy(...)``."""
    calls = [call for call in module.all(ast.Call) if module.from_tensorflow(call.func) in MIRRORED]
    call = only(calls, "the file has {} of tf.distribute.MirroredStrategy()")
    name = module.name_of("tensorflow.distribute.get_strategy", call)
    if name is None or isinstance(module.parent(call), ast.Attribute):
        raise Declined("the file does not keep the strategy under a name")
    return [module.replaced(call, f"{name}()")]


EDITS = {"one-replica": one_replica}
