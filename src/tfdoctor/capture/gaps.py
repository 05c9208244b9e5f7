"""What a recording lacks, why, and what to do about it."""

import signal
from pathlib import Path

from tfdoctor.capture.plan import Kind
from tfdoctor.recording.manifest import CapturePlan, Manifest, Missing
from tfdoctor.recording.processes import Process

NO_HOOK = {
    Kind.SCRIPT: "the recorder did not start: check that --python is Python, run without -I, -E and -S",
    Kind.MODULE: "the recorder did not start: check that --python is Python, run without -I, -E and -S",
    Kind.COMMAND: (
        "no Python process of the command imported TensorFlow, or the recorder could not reach it: pass "
        "TFDOCTOR_PLAN and PYTHONPATH on to containers and remote hosts"
    ),
}

ABRUPT = "the process ended abruptly (killed, or by os._exit or os.execv)"
"""Python did not exit by itself, so the agent could not write its data."""

OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals by which somebody stops a run; any other says that something is wrong with it."""

NO_TENSORFLOW = {
    Kind.SCRIPT: "the script did not import TensorFlow: name the training script",
    Kind.MODULE: "the module did not import TensorFlow: name the training module",
    Kind.COMMAND: "no Python process of the command imported TensorFlow: name the training command",
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
        found["program"] = "operations and layers were not recorded: the script ended abruptly"
    if _plan(done).sample_every_ms == 0:
        found["samples"] = "sampling is switched off: remove --sample-every 0"
    return [Missing(what, why) for what, why in found.items()]


def _plan(done: Manifest) -> CapturePlan:
    return done.plan or CapturePlan(Kind.SCRIPT.value)


def _kind(done: Manifest) -> Kind:
    return Kind(_plan(done).kind)


def why_not(process: Process) -> str:
    """Say why a process does not count as training."""
    if process.fault:
        return process.fault
    if "tensorflow" in process.state.versions:
        return "it ran no training step"
    if _abrupt(process):
        return "it ended too abruptly to know whether it trained"
    return "it did not import TensorFlow"


def _no_trace(done: Manifest, process: Process) -> str:
    failed, seen = _failed(done), done.steps.seen
    if done.window:
        ended = failed if done.outcome.signal else ABRUPT
        return (
            f"{ended} during tracing, so there is no trace: let it finish, trace fewer steps with --steps, "
            "or end it with --stop-after"
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
        return f"{failed or ABRUPT} after at least {steps}, before tracing started: {_cure(done)}"
    if failed:
        return f"{failed} after {steps}, during warm-up ({warmup}): {_cure(done)}"
    advice = f"use --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    return f"the run ended after {steps}, during warm-up ({warmup}): {advice}"


def _early(done: Manifest) -> str:
    return f"{_failed(done) or ABRUPT} before tracing started: {_cure(done)}"


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
    return "let it finish" if stopped else "fix that first"


def _no_tensorflow(done: Manifest, process: Process) -> str:
    failed, wanted = _failed(done), process.state.wanted == "tensorflow"
    hiding = _hiding(done) if wanted else ""
    if hiding:
        then = f"{failed}: " if failed else ""
        return f"{then}{hiding} in the folder of the script hides TensorFlow: rename it"
    if failed and wanted:
        return (
            f"{failed}: importing TensorFlow failed; install it for that Python, or name another "
            "interpreter with --python"
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
        f"no training step was seen{time} (Model.fit, gradient loops and sessions are recognized): name the "
        "training script, or trace by time with --for 2s"
    )


def _took_s(done: Manifest) -> float:
    """Return how long the run took, in seconds."""
    return (done.clock[-1].monotonic_ns - done.clock[0].monotonic_ns) / 1e9
