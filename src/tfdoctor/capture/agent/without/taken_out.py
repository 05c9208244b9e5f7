"""The part that a trial's run goes without, and how often that was so."""

from __future__ import annotations

from ..process.stack import user_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from ..process.declared import WithoutPlan
    from ..process.journal import Journal


class TakenOut:
    """A part that is taken out; `reached` counts what was left out or answered at once."""

    def __init__(self, plan: WithoutPlan, log: Journal) -> None:
        self.log, self.part = log, plan["part"]
        self.name, self.length = plan["name"], plan["length"]
        self.at = tuple(plan["at"]) if plan["at"] else None
        self.reached, self.refused = 0, ""

    def is_at(self, frame: FrameType | None) -> bool:
        """Say whether a frame runs at the line of the part, or for it; a part without a line is everywhere."""
        return self.at is None or user_line(frame) == self.at

    def summary(self) -> dict[str, object]:
        """Return what the trial reads."""
        return {"reached": self.reached, "refused": self.refused}
