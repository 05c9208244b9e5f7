"""What to patch so that a part is taken out."""

from __future__ import annotations

from . import answered_calls, kinds, metrics, ready_input, saving, silent_callbacks, summaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process.imports import Hooks
    from .taken_out import TakenOut

HOOKS: dict[str, Callable[[TakenOut], Hooks]] = {
    kinds.INPUT: ready_input.hooks,
    kinds.CALLBACK: silent_callbacks.hooks,
    kinds.METRICS: metrics.hooks,
    kinds.SAVING: saving.hooks,
    kinds.SUMMARIES: summaries.hooks,
    kinds.EVALUATION: answered_calls.of_evaluation,
    kinds.PREDICTION: answered_calls.of_prediction,
}


def hooks(out: TakenOut | None) -> Hooks:
    """Return what to patch in which module; nothing where no part is taken out."""
    return {} if out is None else HOOKS[out.part](out)
