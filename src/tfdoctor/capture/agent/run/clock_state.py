"""What the parts of the clock know of it: the call under way, and the times so far."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Protocol

    from .places import CallSite
    from .step_times import RunStepTimes

    class WaitingTrace(Protocol):
        """A function that a thread traces which is not followed."""

        def begin(self) -> None:
            """Have that thread followed, where the followed one waits."""

    class ClockState(Protocol):
        """The state of `CallClock`, times in ns."""

        began: int
        now: tuple[CallSite, int] | None  # the call whose time runs, and since when; None while that changes
        current: CallSite  # the call under way
        totals: dict[CallSite, int]
        entered: dict[CallSite, int]
        steps: RunStepTimes
        inside: int
        stepped: int
        running: bool
        first: bool
        profiled: bool
        trained: CallSite | None
        caller: FrameType | None

        def switch(self, place: CallSite, now: int | None = None) -> int:
            """Another call is under way from a moment on; return the time."""

        def abandon(self) -> None:
            """No call is under way."""
