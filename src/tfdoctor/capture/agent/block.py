"""Recording a part of a process: from here to there, and perhaps again later."""

import sys

from . import earlier, install, journal, stack
from .journal import quietly


def begin(plan, places, window=None):
    """Return the window of a new recording; `window` is that of the one before in this process.

    `places` are names for source files: a notebook's cells, or None for what is not the user's.
    """
    if window is None:
        log = journal.Journal(processes=plan["processes"])
        install({**plan, "out": log.out}, log)
        window = log.window
    else:
        window.again(plan)
    stack._known.update(places)
    _forget_fits(window)
    registry = window.registry
    before = registry.earlier.layers if registry.earlier else []
    registry.earlier = earlier.Earlier(window, [*before, *registry.layers])
    registry.layers.clear()  # the hooks have this list
    return window


def join(window, model, frame):
    """Take part in the fit of this model that is running at the frame, from its next step on."""
    for trainers in window.trainers:
        quietly("join", window.log)(trainers.join)(model, frame)


def end(window, reason, what):
    """End the recording; `what` is what was recorded, a block or a fit."""
    window.close(reason)
    missing = {entry["what"] for entry in window.log.state["missing"]}
    if window.kept is None and "trace" not in missing:
        window.log.missing("trace", why_none(window, what))
    quietly("lines", window.log)(_say_what_was_there)(window, what)
    window.over()
    _forget_fits(window)
    window.registry.release()
    window.registry.earlier.waiting.clear()


def _forget_fits(window):
    """A fit that is running is known from its next step on, and to one recording only."""
    for trainers in window.trainers:
        trainers.fit = None


def _say_what_was_there(window, what):
    """Note which parts of a trace have no lines, since they were there before."""
    window.registry.write()
    parts = window.registry.earlier.without_lines() if window.kept is not None else ()
    if parts:
        why = f"{' and '.join(parts)} were made before the {what}: make them inside it to see by which lines"
        window.log.missing("lines", why.replace("were", "was", 1) if len(parts) == 1 else why)


def why_none(window, what):
    """Return why nothing was traced, and what to do about it."""
    if "tensorflow" not in sys.modules:
        return f"TensorFlow was not imported by the end of the {what}: record what trains"
    seen = max((source.seen for source in window.sources.values()), default=0)
    if not seen:
        return (
            f"no training step was seen in the {what}, neither of Model.fit nor of a loop that takes "
            "gradients or runs a session: record what trains, or by time with record(seconds=2)"
        )
    warmup = window.plan["warmup"]
    steps = "1 step" if seen == 1 else f"{seen} steps"
    advice = (
        f"record with warmup={min(seen // 2, max(0, warmup - 1))}" if seen > 1 else "train longer"
    )
    return f"the {what} ended after {steps}, during warm-up ({warmup}): {advice}"
