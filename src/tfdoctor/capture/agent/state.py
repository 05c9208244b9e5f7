"""What the state file says of a window: which loop was traced, why that one, and what else there was."""

import sys

from .collectives import UnsafeError


def fill(window):
    """Put the window's present state into the journal."""
    take, found = window.kept or window.take, window.log.state
    chosen = take.source if take else None
    if chosen is None:
        chosen = max(window.sources.values(), key=lambda source: source.seen, default=None)
    loops = [each for each in window.sources.values() if each is chosen or each.calls > 1]
    found["state"] = window.state
    found["steps"] = {
        "source": chosen.name if chosen else None,
        "at": chosen.at if chosen else None,
        "why": why(take, loops, interrupted=window.interrupted) if take else "",
        "seen": chosen.seen if chosen else 0,
        "seen_all": not window.quiet,
        "candidates": [each.summary() for each in loops],
        "discarded": take.discarded if take else [],
        "untraced": chosen.untraced() if chosen else None,
    }
    if take is not None:
        found["window"] = take.record
    found["versions"] = versions()


def why(take, loops, *, interrupted):
    """Return why this loop was traced and no other; nothing when there was no other."""
    if take.record["profiler"] == "user":
        return "the script's own profiler recorded these steps: the trace is a copy of its own"
    said = []
    if len(loops) > 1:
        said.append(f"of {len(loops)} loops that trained, {_reason(take, loops)}")
    if interrupted:
        said.append("an earlier window was cut short when the script's own profiler began")
    return "; ".join(said)


def _reason(take, loops):
    if any(each.outer is take.source for each in loops):
        return "the one that goes round least often: its rounds hold the others"
    if take.record["stopped_by"] == "steps" and not take.record["contains_warmup"]:
        return f"the first to have all its steps traced after {take.warmup} of warm-up"
    return f"the one with the most steps to trace after {take.warmup} of warm-up"


def refusal(error):
    """Return why there is no trace when the profiler was refused."""
    if isinstance(error, UnsafeError):
        return str(error)
    return (
        "the profiler could not be started, most likely because another one was recording: "
        "let only one profile at a time "
        f"({type(error).__name__}: {str(error)[:200]})"
    )


def versions():
    """Return the versions of what the script has imported."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("tensorflow", "keras", "tf_keras", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found[name] = version
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    for name in ("cuda", "cudnn"):
        if build.get(f"{name}_version"):
            found[name] = str(build[f"{name}_version"])
    return found
