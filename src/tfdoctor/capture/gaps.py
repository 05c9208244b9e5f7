"""What a recording lacks, why, and what to do about it."""

import signal
from pathlib import Path
from typing import Any

from tfdoctor.capture.plan import Kind
from tfdoctor.recording.manifest import Json
from tfdoctor.recording.processes import Process

NO_HOOK = {
    Kind.SCRIPT: "the hook did not start: --python may be no Python, or it ran with -I, -E or -S",
    Kind.MODULE: "the hook did not start: --python may be no Python, or it ran with -I, -E or -S",
    Kind.COMMAND: (
        "no Python below the command imported TensorFlow, or the hook could not reach it: containers and "
        "remote hosts need TFDOCTOR_PLAN and PYTHONPATH passed on"
    ),
}

ABRUPT = "the process ended too abruptly (killed, or by os._exit or os.execv)"
"""Python came to no end of its own, at which the hook writes what it has."""

OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals by which somebody stops a run; any other says that something is wrong with it."""

NO_TENSORFLOW = {
    Kind.SCRIPT: "the script did not import TensorFlow: give the script that trains",
    Kind.MODULE: "the module did not import TensorFlow: give the one that trains",
    Kind.COMMAND: "the command's Python did not import TensorFlow: give the command that trains",
}

HIDING = ("tensorflow.py", "tensorflow/__init__.py")


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
    if "tensorflow" in process.state.get("versions", {}):
        return "it took no training step"
    if _abrupt(process):
        return "it ended too abruptly to say whether it trained"
    return "it did not import TensorFlow"


def _no_trace(done: Json, process: Process) -> str:
    failed, seen = _failed(done), done["steps"]["seen"]
    if done["window"]:
        ended = failed if done["outcome"]["signal"] else ABRUPT
        return (
            f"{ended} while it was traced, which leaves no trace: let it come to its end, trace fewer "
            "steps with --steps, or end it with --stop-after"
        )
    if seen:
        return _too_few(done, process)
    if "tensorflow" not in done["versions"]:
        return _early(done) if _abrupt(process) else _no_tensorflow(done, process)
    return f"{failed} before a training step: {_cure(done)}" if failed else _no_steps(done)


def _too_few(done: Json, process: Process) -> str:
    """Say that the run ended during warm-up."""
    failed, seen, warmup = _failed(done), done["steps"]["seen"], done["plan"]["warmup"]
    steps = "1 step" if seen == 1 else f"{seen} steps"
    if not process.state.get("finished"):
        return f"{failed or ABRUPT} after {steps} or more, before the traced window: {_cure(done)}"
    if failed:
        return f"{failed} after {steps}, during warm-up ({warmup}): {_cure(done)}"
    advice = (
        f"run with --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    )
    return f"the run ended after {steps}, during warm-up ({warmup}): {advice}"


def _early(done: Json) -> str:
    return f"{_failed(done) or ABRUPT} before the traced window: {_cure(done)}"


def _abrupt(process: Process) -> bool:
    """Say whether a process that began to import TensorFlow came to no end of its own."""
    return bool(process.state.get("wanted")) and not process.state.get("finished")


def _failed(done: Json) -> str:
    """Say that the run failed, or nothing when it did not."""
    kind, code, number = (
        done["plan"]["kind"],
        done["outcome"]["exit_code"],
        done["outcome"]["signal"],
    )
    if number:
        known = number in signal.valid_signals() and number < signal.SIGRTMIN
        name = signal.Signals(number).name if known else f"signal {number}"
        return f"the {kind} was ended by {name}"
    return f"the {kind} ended with exit code {code}" if code else ""


def _cure(done: Json) -> str:
    """Return what to do about a run that failed, or ended before its time."""
    stopped = done["outcome"]["signal"] in OUTSIDE or not _failed(done)
    return "let it come to its end" if stopped else "mend that first"


def _no_tensorflow(done: Json, process: Process) -> str:
    failed, wanted = _failed(done), process.state.get("wanted") == "tensorflow"
    hiding = _hiding(done) if wanted else ""
    if hiding:
        then = f"{failed}: " if failed else ""
        return f"{then}{hiding} beside what was run hides TensorFlow: rename it first"
    if failed and wanted:
        return (
            f"{failed}, and its import of TensorFlow had failed: mend that first, as its own message says; "
            "where TensorFlow is missing, install it for that Python, or name another with --python"
        )
    if failed:
        return f"{failed} before it imported TensorFlow: {_cure(done)}"
    return NO_TENSORFLOW[Kind(done["plan"]["kind"])]


def _hiding(done: Json) -> str:
    """Return the user's file that Python finds before TensorFlow, if there is one."""
    kind, place = Kind(done["plan"]["kind"]), Path(done["cwd"])
    if kind is Kind.COMMAND:  # nobody knows where its Python looks first
        return ""
    if kind is Kind.SCRIPT:
        place = (place / done["plan"]["script"]).resolve().parent
    return next((name for name in HIDING if (place / name).is_file()), "")


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
