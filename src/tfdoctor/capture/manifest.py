"""tfdoctor.json: begun before the run, completed after it, replaced as a whole each time."""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tfdoctor
from tfdoctor.capture import machine
from tfdoctor.capture.plan import Plan
from tfdoctor.manifest import SCHEMA, Clock, Sampling, fold
from tfdoctor.recording import GUEST, MANIFEST, PROGRAM

SECRET = re.compile(r"token|key|secret|passw|passphrase|credential|auth", re.IGNORECASE)
"""Options whose values are nobody's business; `--author` is masked too, which hurts nobody."""

MASK = "***"

IN_URL = re.compile(r"(://[^:/@\s]*:)[^/@\s]+@")
"""The password of a URL: postgres://user:password@host."""

ENVIRONMENT = [
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "KERAS_BACKEND",
    "XLA_FLAGS",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_CUDNN_DETERMINISTIC",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_COUNT",
    "TF_GPU_THREAD_MODE",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_USE_LEGACY_KERAS",
    "TF_XLA_FLAGS",
]
"""The environment is never recorded as a whole: only these, which change how TensorFlow runs."""


def begin(plan: Plan, python: str, command: Iterable[str]) -> dict[str, Any]:
    """Return the manifest of a run that is about to start."""
    return {
        "schema": SCHEMA,
        "tfdoctor": tfdoctor.__version__,
        "finished": False,
        "command": masked(list(command)),
        "cwd": str(Path.cwd()),
        "python": python,
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        "versions": {},
        "host": asdict(machine.host()),
        "plan": {
            "script": plan.script,
            "steps": plan.steps,
            "warmup": plan.warmup,
            "stop_after": plan.stop_after,
            "sample_every_ms": plan.sample_every_ms,
        },
        "window": None,
        "steps": {"source": None, "seen": 0, "candidates": [], "discarded": []},
        "outcome": {"exit_code": None, "signal": None},
        "clock": [clock()],
        "samplers": [],
        "missing": [],
        "guest_errors": [],
    }


def masked(arguments: list[str]) -> list[str]:
    """Return the arguments without passwords: of options that are called so, and in URLs."""
    shown, hide = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        secret = bool(SECRET.search(name))
        if hide and not argument.startswith("-"):
            shown.append(MASK)
        elif equals and secret:
            shown.append(f"{name}={MASK}")
        else:
            shown.append(IN_URL.sub(rf"\1{MASK}@", argument))
        hide = secret and argument.startswith("-") and not equals
    return shown


def clock() -> dict[str, int]:
    """Return this moment on both clocks."""
    return asdict(Clock(unix_ns=time.time_ns(), monotonic_ns=time.monotonic_ns()))


def write(out: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest."""
    temporary = out / f"{MANIFEST}.tmp"
    temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    temporary.replace(out / MANIFEST)


def complete(
    out: Path, manifest: Mapping[str, Any], returncode: int, samplers: tuple[Sampling, ...]
) -> dict[str, Any]:
    """Return the manifest of a run that has ended."""
    guest, fault = _guest(out)
    done = fold(manifest, guest)
    done["finished"] = True
    done["outcome"] = {
        "exit_code": exit_code(returncode),
        "signal": -returncode if returncode < 0 else None,
    }
    done["clock"] = [*manifest["clock"], clock()]
    done["samplers"] = [asdict(sampler) for sampler in samplers]
    done["missing"] = [*done["missing"], *_missing(out, done, guest, fault)]
    return done


def exit_code(returncode: int) -> int:
    """Return the exit code a shell would show: 128 + n for death by signal n."""
    return 128 - returncode if returncode < 0 else returncode


def _guest(out: Path) -> tuple[dict[str, Any], str]:
    """Return what the guest left, or why there is nothing."""
    try:
        state = json.loads((out / GUEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, "the hook did not start: --python may be no Python, or it ran with -I, -E or -S"
    except (OSError, ValueError) as error:
        return {}, f"what the hook wrote cannot be read: {error}"
    return (state, "") if isinstance(state, dict) else ({}, "what the hook wrote is damaged")


def _missing(
    out: Path, done: Mapping[str, Any], guest: Mapping[str, Any], fault: str
) -> list[dict[str, str]]:
    """Say what the recording lacks and what to do about it."""
    if fault:
        return [{"what": "steps", "why": fault}]
    known = {entry["what"] for entry in done["missing"]}
    found = {}
    if "trace" not in known and not list(out.glob("plugins/profile/*/*.xplane.pb")):
        found["trace"] = _no_trace(done, guest)
    if "tensorflow" in done["versions"] and not (out / PROGRAM).is_file():
        found["program"] = "what the script built was not described: it ended too abruptly"
    if done["plan"]["sample_every_ms"] == 0:
        found["samples"] = "sampling was switched off: leave --sample-every away"
    return [{"what": what, "why": why} for what, why in found.items()]


def _no_trace(done: Mapping[str, Any], guest: Mapping[str, Any]) -> str:
    """Return why there is no trace."""
    seen, warmup = done["steps"]["seen"], done["plan"]["warmup"]
    if done["window"]:
        return "the run ended while it was traced, too abruptly for the trace to be written"
    if not seen and "tensorflow" not in done["versions"]:
        return "the script did not import TensorFlow: give the script that trains"
    if not seen:
        return (
            "no training step was seen: the script used neither Model.fit nor a loop over a "
            "tf.data dataset that takes gradients"
        )
    if not guest.get("finished"):
        return f"the run was killed after {seen} or more steps, before the traced window"
    advice = (
        f"run with --warmup {max(0, min(seen // 2, warmup - 1))}" if seen > 1 else "train longer"
    )
    return f"the run ended after {seen} steps, during warm-up ({warmup}): {advice}"
