"""The part that a trial's run goes without, and how often that was so."""

from __future__ import annotations

from ..process.stack import user_line
from . import answered_calls, kinds, metrics, ready_input, saving, silent_callbacks, summaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from ..process.declared import WithoutPlan
    from ..process.imports import Hooks
    from ..process.journal import Journal


class TakenOut:
    """A part that is taken out; `reached` counts what was left out or answered at once."""

    def __init__(self, plan: WithoutPlan, log: Journal) -> None:
        self.plan, self.log = plan, log
        self.name, self.length = plan["name"], plan["length"]
        self.at = tuple(plan["at"]) if plan["at"] else None
        self.reached, self.refused = 0, ""

    def is_at(self, frame: FrameType | None) -> bool:
        """Say whether a frame runs at the line of the part, or for it; a part without a line is everywhere."""
        return self.at is None or user_line(frame) == self.at

    def hooks(self) -> Hooks:
        """Return what to patch in which module."""
        return HOOKS[self.plan["part"]](self)

    def summary(self) -> dict[str, object]:
        """Return what the trial reads."""
        return {"reached": self.reached, "refused": self.refused}


HOOKS: dict[str, Callable[[TakenOut], Hooks]] = {
    kinds.INPUT: ready_input.hooks,
    kinds.CALLBACK: silent_callbacks.hooks,
    kinds.METRICS: metrics.hooks,
    kinds.SAVING: saving.hooks,
    kinds.SUMMARIES: summaries.hooks,
    kinds.EVALUATION: answered_calls.of_evaluation,
    kinds.PREDICTION: answered_calls.of_prediction,
}
