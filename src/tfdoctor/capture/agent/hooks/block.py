"""Recording a part of a process: from here to there, and perhaps again later."""

from __future__ import annotations

import sys

from .. import install
from ..process import journal, stack
from ..process.journal import guarded
from .earlier_objects import Earlier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from ..process.declared import AgentPlan


class Block:
    """The recordings of parts of this process: the one under way, and those that will follow it."""

    def __init__(self, plan: AgentPlan) -> None:
        self.log = journal.Journal(processes=plan["processes"])
        self.installed = install({**plan, "out": self.log.out}, self.log)
        self.installed.recorder.watch_forks()
        self.earlier = Earlier(self.installed)
        self.installed.program.before.append(self.earlier.complete)

    def begin(self, places: Mapping[str, str | None]) -> None:
        """Begin to record; `places` are names for source files: a notebook's cells, or None for others'."""
        stack.name_files(places)
        self._forget_fits()
        self.earlier.begin()
        self.installed.recorder.begin()

    @guarded("join")
    def join(self, model: object, frame: FrameType) -> None:
        """Take part in the fit of this model that is running at the frame, from its next step on."""
        for trainers in self.installed.trainers:
            trainers.join(model, frame)

    def end(self, reason: str, what: str, error: BaseException | None = None) -> None:
        """End the recording; `what` is what was recorded, a block or a fit, and `error` what it raised."""
        self.installed.recorder.end(error)  # first: the rest is our own work
        window = self.installed.window
        window.close(reason)
        lacking = {entry["what"] for entry in self.log.lacking}
        if window.wanted and window.kept is None and "trace" not in lacking:
            self.log.missing("trace", self._why_no_trace(what))
        self._note_missing_lines(what)
        self.installed.end()
        self._forget_fits()
        self.installed.registry.release()
        self.earlier.waiting.clear()

    def _forget_fits(self) -> None:
        """A fit that is running is known from its next step on, and to one recording only."""
        for trainers in self.installed.trainers:
            trainers.fit = None

    @guarded("lines")
    def _note_missing_lines(self, what: str) -> None:
        """Note which parts of a trace have no lines, since they were there before."""
        self.installed.program.end()
        parts = self.earlier.without_lines() if self.installed.window.kept is not None else []
        if parts:
            were = "was" if len(parts) == 1 else "were"
            why = f"{' and '.join(parts)} {were} made before the {what}"
            self.log.missing("lines", f"{why}: move this code inside the {what} to see its lines")

    def _why_no_trace(self, what: str) -> str:
        """Return why nothing was traced, and what to do about it."""
        if "tensorflow" not in sys.modules:
            return f"TensorFlow was not imported by the end of the {what}: if other code trains, record that"
        window = self.installed.window
        seen = max((source.seen for source in window.sources.values()), default=0)
        if not seen:
            return (
                f"no training step was seen in the {what}, neither of Model.fit nor of a loop that computes "
                "gradients or runs a session: if other code trains, record that, or trace by time with "
                "record(seconds=2)"
            )
        warmup = window.plan["warmup"]
        if seen == 1:
            return f"the {what} ended after 1 step, during warm-up ({warmup}): train longer"
        advice = f"record with warmup={min(seen // 2, max(0, warmup - 1))}"
        return f"the {what} ended after {seen} steps, during warm-up ({warmup}): {advice}"


def begin(plan: AgentPlan, places: Mapping[str, str | None], block: Block | None = None) -> Block:
    """Begin a recording and return what ends it; `block` is that of the one before in this process."""
    if block is None:
        block = Block(plan)
    else:
        block.installed.again(plan)
    block.begin(places)
    return block
