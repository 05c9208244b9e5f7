"""Training without summaries: what would write one does nothing, eagerly and in graphs that are traced."""

from __future__ import annotations

import functools
import sys

from ..process.frames import hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..process.imports import Hooks
    from .taken_out import TakenOut

MODULE, MODULE_1 = ("tensorflow.python.ops.summary_ops_v2", "tensorflow.python.summary.writer.writer")


def hooks(out: TakenOut) -> Hooks:
    """Return what to patch in which module."""

    def patch(module: Foreign) -> None:
        _replace(out, module, "write", _not_written)
        for name in ("_ResourceSummaryWriter", "_LegacyResourceSummaryWriter"):
            if hasattr(module, name):
                _replace(out, getattr(module, name), "flush", _done)

    def patch_1(module: Foreign) -> None:
        _replace(out, module.SummaryToEventTransformer, "add_summary", lambda: None)

    return {MODULE: [patch], MODULE_1: [patch_1]}


def _replace(out: TakenOut, owner: Foreign, name: str, answer: Foreign) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*_: object, **__: object) -> object:
        out.reached += 1
        return answer()

    setattr(owner, name, hide(call))


def _not_written() -> object:
    """Return what `write` does without a writer."""
    constants: Foreign = sys.modules["tensorflow.python.framework.constant_op"]
    return constants.constant(value=False)


def _done() -> object:
    """Return an operation that does nothing; None where operations run at once."""
    flow: Foreign = sys.modules["tensorflow.python.ops.control_flow_ops"]
    return flow.no_op()
