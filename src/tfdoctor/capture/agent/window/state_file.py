"""What the state file says of a window: which loop was traced, why that one, and which others there were."""

from __future__ import annotations

from ..process.versions import versions
from .captures import USERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .captures import Capture
    from .steps import StepCounter
    from .tracing import Tracing


def save(window: Tracing) -> None:
    """Bring the state file up to date."""
    capture, state = window.kept or window.capture, window.log.state
    state["state"] = window.state.value
    state["steps"] = _steps(window, capture)
    if capture is not None:
        state["window"] = capture.record
    state["versions"] = versions()
    window.log.write()


def _steps(window: Tracing, capture: Capture | None) -> dict[str, object]:
    """Return which loop was traced, or is the likeliest to be, and all candidates."""
    chosen = capture.source if capture else None
    if chosen is None:
        chosen = max(window.sources.values(), key=lambda source: source.seen, default=None)
    loops = [loop for loop in window.sources.values() if loop is chosen or loop.calls > 1]
    return {
        "source": chosen.kind.value if chosen else None,
        "at": chosen.at if chosen else None,
        "why": why(capture, loops, interrupted=window.interrupted) if capture else "",
        "seen": chosen.seen if chosen else 0,
        "rounds": chosen.rounds if chosen else 0,
        "seen_all": not window.quiet,
        "candidates": [loop.summary() for loop in loops],
        "discarded": capture.discarded if capture else [],
        "untraced": chosen.untraced() if chosen else None,
        "functions": window.traces.describe(),
        "zero_rates": window.registry.choices.zero_rates(),
        "gradients": window.registry.unused_gradients.describe(),
    }


def why(capture: Capture, loops: Sequence[StepCounter], *, interrupted: bool) -> str:
    """Return why this loop was traced and no other; nothing when there was no other."""
    if capture.record["profiler"] == USERS:
        return "the script's own profiler recorded these steps: this is a copy of its trace"
    reasons = []
    if len(loops) > 1:
        reasons.append(f"of {len(loops)} training loops, {_reason(capture, loops)}")
    if interrupted:
        reasons.append("an earlier trace ended early because the script started its own profiler")
    return "; ".join(reasons)


def _reason(capture: Capture, loops: Sequence[StepCounter]) -> str:
    if any(loop.outer is capture.source for loop in loops):
        return "tfdoctor traced the one that contains the others"
    if capture.record["stopped_by"] == "steps" and not capture.record["contains_warmup"]:
        return f"tfdoctor traced the first with all its traced steps after the warm-up ({capture.warmup} steps)"
    return f"tfdoctor traced the one with the most traced steps after the warm-up ({capture.warmup} steps)"
