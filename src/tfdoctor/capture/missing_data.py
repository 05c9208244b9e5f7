"""Finds out which data a recording lacks, why, and what the user can do."""

import signal
from pathlib import Path

from tfdoctor.capture.plan import Kind
from tfdoctor.recording.agent import Missing
from tfdoctor.recording.files import PROGRAM
from tfdoctor.recording.folders import Process
from tfdoctor.recording.manifest import CapturePlan, Manifest, MissingPart

NO_HOOK = "the recorder did not start: check that --python is Python, run without -I, -E and -S"
NO_HOOK_OF_COMMAND = (
    "no Python process of the command imported TensorFlow, or the recorder could not reach it: pass "
    "TFDOCTOR_PLAN and PYTHONPATH on to containers and remote hosts"
)

# Python did not exit by itself, so the agent could not write its data.
ABRUPT = "the process ended abruptly (killed, or by os._exit or os.execv)"
# Signals by which somebody stops a run; any other signal means a fault in it.
OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

OTHERS = {"jax": "JAX", "torch": "PyTorch"}

# How to record steps of other frameworks, as the end of a sentence.
TRACES = {"jax": ": trace some of them with `jax.profiler.trace(FOLDER)`, which `tfdoctor report FOLDER` reads"}

HIDING = ("tensorflow.py", "tensorflow/__init__.py")


def missing(done: Manifest, process: Process | None) -> list[Missing]:
    """Return the data that a recording lacks; `done` is its manifest without this list."""
    if process is None or process.fault:
        no_hook = NO_HOOK_OF_COMMAND if _kind(done) is Kind.COMMAND else NO_HOOK
        return [Missing(MissingPart.STEPS, process.fault if process else no_hook)]
    known = {entry.what for entry in done.missing}
    reasons = {}
    if _plan(done).trace and MissingPart.TRACE not in known and not process.traces:
        reasons[MissingPart.TRACE] = _no_trace(done, process)
    if "tensorflow" in done.versions and not (process.folder / PROGRAM).is_file():
        reasons[MissingPart.PROGRAM] = "operations and layers were not recorded: the script ended abruptly"
    if _plan(done).sample_every_ms == 0:
        reasons[MissingPart.SAMPLES] = "sampling is switched off: remove --sample-every 0"
    return [Missing(what, why) for what, why in reasons.items()]


def _plan(done: Manifest) -> CapturePlan:
    return done.plan or CapturePlan(Kind.SCRIPT.value)


def _kind(done: Manifest) -> Kind:
    return Kind(_plan(done).kind)


def why_not(process: Process) -> str:
    """Return the reason why a process does not count as training."""
    if process.fault:
        return process.fault
    if "tensorflow" in process.state.versions:
        return "it ran no training step"
    if _abrupt(process):
        return "it ended too abruptly to know whether it trained"
    return "it did not import TensorFlow"


def _no_trace(done: Manifest, process: Process) -> str:
    failed, seen = failure(done), done.steps.seen
    if done.window:
        ended = failed if done.outcome.signal else ABRUPT
        return (
            f"{ended} during tracing, so there is no trace: let it finish, trace fewer steps with --steps, "
            "or end it with --stop-after"
        )
    if seen:
        return _too_few(done, process)
    elsewhere = _other_framework(done, process)
    if elsewhere or "tensorflow" not in done.versions:
        return elsewhere or _no_tensorflow(done, process)
    if failed:
        return f"{failed} before a training step: {_cure(done)}"
    elapsed_s = (done.clock[-1].monotonic_ns - done.clock[0].monotonic_ns) / 1e9
    return (
        f"no training step was seen in {elapsed_s:.0f} s (Model.fit, gradient loops and sessions are recognized): "
        "if it trains, trace by time with --for 2s"
    )


def _too_few(done: Manifest, process: Process) -> str:
    """Return the reason for a run that ended before tracing started, usually during warm-up."""
    failed, seen, warmup = failure(done), done.steps.seen, _plan(done).warmup
    steps = "1 step" if seen == 1 else f"{seen} steps"
    if not process.state.finished:
        return f"{failed or ABRUPT} after at least {steps}, before tracing started: {_cure(done, early=True)}"
    if failed:
        return f"{failed} after {steps}, during warm-up ({warmup}): {_cure(done)}"
    advice = f"use --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    place = (done.steps.source, done.steps.at)
    if sum((loop.source, loop.at) == place for loop in done.steps.candidates) > 1:
        return f"no loop trained for more than {steps}, and the warm-up has {warmup}: {advice}"
    return f"the run ended after {steps}, during warm-up ({warmup}): {advice}"


def _abrupt(process: Process) -> bool:
    """Return whether a process that imported TensorFlow did not exit by itself."""
    return bool(process.state.wanted) and not process.state.finished


def failure(done: Manifest) -> str:
    """Return how the run failed, or "" if it did not: "the script was ended by SIGTERM"."""
    kind, code, number = _kind(done), done.outcome.exit_code, done.outcome.signal
    if number == signal.SIGKILL and done.times and done.times.oom_kills:
        return f"the {kind} was killed by the kernel, which was out of memory (SIGKILL)"
    if number:
        named = number in signal.valid_signals() and number < signal.SIGRTMIN
        name = signal.Signals(number).name if named else f"signal {number}"
        return f"the {kind} was ended by {name}"
    return f"the {kind} ended with exit code {code}" if code else ""


def _cure(done: Manifest, *, early: bool = False) -> str:
    """Return the advice for a run that was ended, or that failed; `early`: perhaps because its steps are long."""
    if failure(done) and done.outcome.signal not in OUTSIDE:
        return "fix that first"
    fewer = ", or trace fewer steps and earlier with --warmup 1 --steps 5"
    return f"let it finish{fewer if early and _plan(done).warmup > 1 else ''}"


def _no_tensorflow(done: Manifest, process: Process) -> str:
    failed, attempted = failure(done), process.state.wanted == "tensorflow"
    if _abrupt(process):
        return f"{failed or ABRUPT} before tracing started: {_cure(done, early=True)}"
    hiding = _hiding(done) if attempted else ""
    if hiding:
        prefix = f"{failed}: " if failed else ""
        return f"{prefix}{hiding} in the folder of the script hides TensorFlow: rename it"
    if failed and attempted and not done.outcome.signal:
        return (
            f"{failed}: importing TensorFlow failed; install it for that Python, or name another "
            "interpreter with --python"
        )
    if failed:
        return f"{failed} before it imported TensorFlow: {_cure(done)}"
    kind = _kind(done)
    who = "no Python process of the command imported" if kind is Kind.COMMAND else f"the {kind} did not import"
    return f"{who} TensorFlow: if another {kind} trains, name that one"


def _other_framework(done: Manifest, process: Process) -> str:
    """Return the reason for a program that trains by another framework, as far as it trains; "" for any other."""
    backend, what = process.state.backend, "Keras runs on"
    name = backend
    if not backend and "tensorflow" not in (*done.versions, process.state.wanted):
        name = next(filter(done.versions.get, OTHERS), "")
        what = "this is no TensorFlow program but one of"
    unseen = "whose training steps tfdoctor does not record"
    return f"{what} {OTHERS.get(name, name)}, {unseen}{TRACES.get(name, '')}" if name else ""


def _hiding(done: Manifest) -> str:
    """Return the user's file that Python would import in place of TensorFlow, or ""."""
    kind, folder = _kind(done), Path(done.cwd)
    if kind is Kind.COMMAND:  # its import path is unknown
        return ""
    if kind is Kind.SCRIPT:
        folder = (folder / _plan(done).script).resolve().parent
    return next((name for name in HIDING if (folder / name).is_file()), "")
