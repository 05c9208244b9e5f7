"""Traces of which Python's stack was sampled, for the facts that read such samples."""

from tests.facts.kit import *

BEGAN_NS = 1_000_000_000_000


def place(number: int, *when_ms: float, **more: Any) -> dict[str, Any]:
    """A line of the script, seen at these times of the trace."""
    when = [round(1e3 * ms) for ms in when_ms]
    return {"at": ["/home/me/train.py", number], "seen": len(when), "when_us": when, **more}


def traced(*rows: Row) -> Trace:
    return replace(trace(host=[line("python", *rows)]), started_unix_ns=BEGAN_NS)


def sampled(rows: Any, *places: Any, steps: StepsSeen | None = None, program: Any = None, **python: Any) -> Chart:
    """The facts of a trace of the main thread, and of these places in it."""
    record = {"began_unix_ns": BEGAN_NS, "places": list(places), **python}
    given = replace(manifest(), steps=steps) if steps else manifest()
    recorded = rows if isinstance(rows, Trace) else traced(*rows)
    return chart(recorded, recording({"python": record, **(program or {})}, manifest=given))
