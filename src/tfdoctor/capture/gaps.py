"""What a recording lacks, why, and what to do about it."""

import signal
from typing import Any

from tfdoctor.capture.plan import Kind
from tfdoctor.manifest import Json
from tfdoctor.recording.processes import Process

NO_HOOK = {
    Kind.SCRIPT: "the hook did not start: --python may be no Python, or it ran with -I, -E or -S",
    Kind.MODULE: "the hook did not start: --python may be no Python, or it ran with -I, -E or -S",
    Kind.COMMAND: (
        "no Python below the command imported TensorFlow, or the hook could not reach it: containers and "
        "remote hosts need TFDOCTOR_PLAN and PYTHONPATH passed on"
    ),
}

ABRUPT = (
    "the process ended too abruptly while it was traced (killed, or replaced by another program), so that its "
    "trace was not written: let it come to its end, or trace fewer steps"
)

NO_TENSORFLOW = {
    Kind.SCRIPT: "the script did not import TensorFlow: give the script that trains",
    Kind.MODULE: "the module did not import TensorFlow: give the one that trains",
    Kind.COMMAND: "the command's Python did not import TensorFlow: give the command that trains",
}


def missing(done: Json, process: Process | None) -> list[dict[str, str]]:
    """Return what a recording lacks: `done` is its manifest but for this."""
    if process is None or process.fault:
        why = process.fault if process else NO_HOOK[Kind(done["plan"]["kind"])]
        return [{"what": "steps", "why": why}]
    known = {entry["what"] for entry in done["missing"]}
    found = {}
    if "trace" not in known and not process.traces:
        found["trace"] = _no_trace(done, process)
    if "tensorflow" in done["versions"] and not process.program.is_file():
        found["program"] = "what the script built was not described: it ended too abruptly"
    if done["plan"]["sample_every_ms"] == 0:
        found["samples"] = "sampling was switched off: leave --sample-every away"
    return [{"what": what, "why": why} for what, why in found.items()]


def why_not(process: Process) -> str:
    """Say why a process is none that trained."""
    if process.fault:
        return process.fault
    if "tensorflow" not in process.state.get("versions", {}):
        return "it did not import TensorFlow"
    return "it took no training step"


def _no_trace(done: Json, process: Process) -> str:
    seen, warmup = done["steps"]["seen"], done["plan"]["warmup"]
    if done["window"]:
        return ABRUPT
    if not seen and "tensorflow" not in done["versions"]:
        return _no_tensorflow(done, process)
    failed = _failed(done)
    if not seen:
        return f"{failed} before a training step: mend that first" if failed else _no_steps(done)
    steps = f"{seen} step{'s' if seen > 1 else ''}"
    if not process.state.get("finished"):
        return f"{failed or 'the run was killed'} after {steps} or more, before the traced window"
    if failed:
        return f"{failed} after {steps}, during warm-up ({warmup}): mend that first"
    advice = (
        f"run with --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    )
    return f"the run ended after {steps}, during warm-up ({warmup}): {advice}"


def _failed(done: Json) -> str:
    """Say that the run failed, or nothing when it did not."""
    code, number = done["outcome"]["exit_code"], done["outcome"]["signal"]
    if number:
        return f"the {done['plan']['kind']} was ended by {signal.Signals(number).name}"
    return f"the {done['plan']['kind']} ended with exit code {code}" if code else ""


def _no_tensorflow(done: Json, process: Process) -> str:
    failed = _failed(done)
    if failed and process.state.get("wanted") == "tensorflow":
        return (
            f"{failed} while it imported TensorFlow: mend that first, as its own message says; where "
            "TensorFlow is missing, install it for that Python, or name another with --python"
        )
    if failed:
        return f"{failed} before it imported TensorFlow: mend that first"
    return NO_TENSORFLOW[Kind(done["plan"]["kind"])]


def _no_steps(done: Json) -> str:
    took = _took_s(done)
    time = f" in {took:.0f} s" if took >= done["plan"]["watch_s"] else ""
    return (
        f"no training step was seen{time}, neither of Model.fit nor of a loop that takes gradients or runs "
        "a session: give what trains, or trace by time with --for 2s"
    )


def _took_s(done: Json) -> float:
    """Return how long the run took, in seconds."""
    clock: Any = done["clock"]
    return float(clock[-1]["monotonic_ns"] - clock[0]["monotonic_ns"]) / 1e9
