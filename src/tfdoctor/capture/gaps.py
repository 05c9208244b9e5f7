"""What a recording lacks, why, and what to do about it."""

import signal
from pathlib import Path

from tfdoctor.capture.plan import Kind
from tfdoctor.recording.manifest import CapturePlan, Manifest, Missing
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


def missing(done: Manifest, process: Process | None) -> list[Missing]:
    """Return what a recording lacks: `done` is its manifest but for this."""
    if process is None or process.fault:
        return [Missing("steps", process.fault if process else NO_HOOK[_kind(done)])]
    known = {entry.what for entry in done.missing}
    found = {}
    if "trace" not in known and not process.traces:
        found["trace"] = _no_trace(done, process)
    if "tensorflow" in done.versions and not process.program.is_file():
        found["program"] = "what the script built was not described: it ended too abruptly"
    if _plan(done).sample_every_ms == 0:
        found["samples"] = "sampling was switched off: leave --sample-every away"
    return [Missing(what, why) for what, why in found.items()]


def _plan(done: Manifest) -> CapturePlan:
    return done.plan or CapturePlan(Kind.SCRIPT.value)


def _kind(done: Manifest) -> Kind:
    return Kind(_plan(done).kind)


def why_not(process: Process) -> str:
    """Say why a process is none that trained."""
    if process.fault:
        return process.fault
    if "tensorflow" in process.state.versions:
        return "it took no training step"
    if _abrupt(process):
        return "it ended too abruptly to say whether it trained"
    return "it did not import TensorFlow"


def _no_trace(done: Manifest, process: Process) -> str:
    failed, seen = _failed(done), done.steps.seen
    if done.window:
        ended = failed if done.outcome.signal else ABRUPT
        return (
            f"{ended} while it was traced, which leaves no trace: let it come to its end, trace fewer "
            "steps with --steps, or end it with --stop-after"
        )
    if seen:
        return _too_few(done, process)
    if "tensorflow" not in done.versions:
        return _early(done) if _abrupt(process) else _no_tensorflow(done, process)
    return f"{failed} before a training step: {_cure(done)}" if failed else _no_steps(done)


def _too_few(done: Manifest, process: Process) -> str:
    """Say that the run ended during warm-up."""
    failed, seen, warmup = _failed(done), done.steps.seen, _plan(done).warmup
    steps = "1 step" if seen == 1 else f"{seen} steps"
    if not process.state.finished:
        return f"{failed or ABRUPT} after {steps} or more, before the traced window: {_cure(done)}"
    if failed:
        return f"{failed} after {steps}, during warm-up ({warmup}): {_cure(done)}"
    advice = (
        f"run with --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    )
    return f"the run ended after {steps}, during warm-up ({warmup}): {advice}"


def _early(done: Manifest) -> str:
    return f"{_failed(done) or ABRUPT} before the traced window: {_cure(done)}"


def _abrupt(process: Process) -> bool:
    """Say whether a process that began to import TensorFlow came to no end of its own."""
    return bool(process.state.wanted) and not process.state.finished


def _failed(done: Manifest) -> str:
    """Say that the run failed, or nothing when it did not."""
    kind, code, number = _kind(done), done.outcome.exit_code, done.outcome.signal
    if number:
        known = number in signal.valid_signals() and number < signal.SIGRTMIN
        name = signal.Signals(number).name if known else f"signal {number}"
        return f"the {kind} was ended by {name}"
    return f"the {kind} ended with exit code {code}" if code else ""


def _cure(done: Manifest) -> str:
    """Return what to do about a run that failed, or ended before its time."""
    stopped = done.outcome.signal in OUTSIDE or not _failed(done)
    return "let it come to its end" if stopped else "fix that first"


def _no_tensorflow(done: Manifest, process: Process) -> str:
    failed, wanted = _failed(done), process.state.wanted == "tensorflow"
    hiding = _hiding(done) if wanted else ""
    if hiding:
        then = f"{failed}: " if failed else ""
        return f"{then}{hiding} beside what was run hides TensorFlow: rename it first"
    if failed and wanted:
        return (
            f"{failed}, and its import of TensorFlow had failed: fix that first, as its own message says; "
            "where TensorFlow is missing, install it for that Python, or name another with --python"
        )
    if failed:
        return f"{failed} before it imported TensorFlow: {_cure(done)}"
    return NO_TENSORFLOW[_kind(done)]


def _hiding(done: Manifest) -> str:
    """Return the user's file that Python finds before TensorFlow, if there is one."""
    kind, place = _kind(done), Path(done.cwd)
    if kind is Kind.COMMAND:  # nobody knows where its Python looks first
        return ""
    if kind is Kind.SCRIPT:
        place = (place / _plan(done).script).resolve().parent
    return next((name for name in HIDING if (place / name).is_file()), "")


def _no_steps(done: Manifest) -> str:
    took = _took_s(done)
    time = f" in {took:.0f} s" if took >= _plan(done).watch_s else ""
    return (
        f"no training step was seen{time}, neither of Model.fit nor of a loop that takes gradients or runs "
        "a session: give what trains, or trace by time with --for 2s"
    )


def _took_s(done: Manifest) -> float:
    """Return how long the run took, in seconds."""
    return (done.clock[-1].monotonic_ns - done.clock[0].monotonic_ns) / 1e9
