"""The line that is printed when a recording has ended: what was traced or recorded."""

from tfdoctor.capture.missing_data import failure
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.recording.manifest import Manifest


def sentence(done: Manifest, *, recorded: bool, what: str = "run") -> str:
    """Return what the line says before the folder: "traced 20 steps, recorded".

    ``recorded`` says whether there is an account of the whole run, or of ``what`` else was recorded.
    """
    why, window = why_no_trace(done), done.window or TracedWindow()
    if done.background or done.workers:
        return _of_several(done)
    if not traces(done):
        ended = done.outcome.error or failure(done)
        return f"recorded the {what} without a trace{f' ({ended})' if ended else ''}"
    if why and recorded and not done.steps.seen and not done.window:
        reason = done.outcome.error or (why if failure(done) else "")
        return f"no training step was seen{f' ({reason})' if reason else ''}, recorded the {what}"
    if why:
        return f"no steps traced ({why}), recorded"
    if window.steps:
        steps = "1 step" if window.steps == 1 else f"{window.steps} steps"
        cut = " (more would have cost too much of the run: see --no-trace)" if done.cut_by_cost else ""
        return f"traced {steps}{cut}, recorded"
    duration_ns = (window.stopped_unix_ns or window.started_unix_ns) - window.started_unix_ns
    return f"traced {max(0, duration_ns) / 1e9:.1f} s, recorded"


def _of_several(done: Manifest) -> str:
    if not done.background:
        return f"{len(done.workers)} processes trained, recorded"
    numbers = ", ".join(map(str, done.background))
    return (
        f"the run goes on in the background (process {numbers}) and is not waited for: once it has ended, "
        "`tfdoctor report` shows what it did; recorded"
    )


def is_poor(done: Manifest, *, recorded: bool) -> bool:
    """Whether a recording holds less than was asked for, which is said even to who wants errors only."""
    if done.background:
        return True
    if not traces(done) or (recorded and not done.steps.seen and not done.window):
        return False
    return bool(why_no_trace(done))


def traces(done: Manifest) -> bool:
    """Whether steps were to be traced."""
    return done.plan is None or done.plan.trace


def why_no_trace(done: Manifest) -> str:
    """Return why there is no trace, or "" if there is one, or several workers have their own."""
    return done.trace_gap.why if done.trace_gap and not done.workers else ""
