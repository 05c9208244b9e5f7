"""The edit that trains without replicas, where a line makes the strategy for logical devices of one processor."""

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

MIRRORED = frozenset(f"tensorflow.distribute.{package}MirroredStrategy" for package in ("", "experimental."))

DEFAULT = "tensorflow.distribute.get_strategy"


def one_replica(module: SyntaxTree, _: int, __: str) -> list[Splice]:
    """Write ``tf.distribute.get_strategy()`` for the only ``tf.distribute.MirroredStrategy(...)``."""
    values = Values(module)
    calls = [call for call in module.all(cst.Call) if values.from_tensorflow(call.func) in MIRRORED]
    if len(calls) != 1:
        many = "several calls" if calls else "no call"
        raise Declined(f"the file has {many} of tf.distribute.MirroredStrategy()")
    name = module.name_of(DEFAULT, calls[0])
    if name is None or isinstance(module.parent(calls[0]), cst.Attribute):
        raise Declined("the file does not keep the strategy under a name")
    return [module.replaced(calls[0], f"{name}()")]


EDITS: dict[str, Kind] = {"one-replica": one_replica}
