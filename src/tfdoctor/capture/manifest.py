"""tfdoctor.json: begun before the run, completed after it, replaced as a whole each time."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tfdoctor
from tfdoctor.capture import gaps, machine
from tfdoctor.capture.agent.masking import masked
from tfdoctor.capture.plan import Kind, Plan
from tfdoctor.recording import MANIFEST
from tfdoctor.recording.manifest import SCHEMA, Clock, Json, Sampling, fold
from tfdoctor.recording.processes import Process

ENVIRONMENT = [
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "KERAS_BACKEND",
    "XLA_FLAGS",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MKL_NUM_THREADS",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "PYTHONOPTIMIZE",
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
    "TPU_VISIBLE_CHIPS",
]
"""The environment is never recorded as a whole: only these, which change how TensorFlow runs. A job's
layout (TF_CONFIG, RANK …) is recorded as a worker's rank and the number of workers alone."""


def begin(plan: Plan, command: Iterable[str], worker: Json | None = None) -> dict[str, Any]:
    """Return the manifest of a run that is about to start."""
    command = list(command)
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {
        "schema": SCHEMA,
        "tfdoctor": tfdoctor.__version__,
        "finished": False,
        "command": masked(command),
        "cwd": str(Path.cwd()),
        "python": "" if plan.kind is Kind.COMMAND else command[0],
        "environment": dict(zip(environment, masked(environment.values()), strict=True)),
        "versions": {},
        "host": asdict(machine.host()),
        "plan": {
            "kind": plan.kind.value,
            "script": plan.script,
            "steps": plan.steps,
            "warmup": plan.warmup,
            "seconds": plan.seconds,
            "stop_after": plan.stop_after,
            "sample_every_ms": plan.sample_every_ms,
            "watch_s": plan.watch_s,
        },
        "window": None,
        "steps": {"source": None, "seen": 0, "candidates": [], "discarded": []},
        "outcome": {"exit_code": None, "signal": None},
        "clock": [clock()],
        "samplers": [],
        "missing": [],
        "agent_errors": [],
        "processes": [],
        "worker": worker,
        "workers": [],
    }


def clock() -> dict[str, int]:
    """Return this moment on both clocks."""
    return asdict(Clock(unix_ns=time.time_ns(), monotonic_ns=time.monotonic_ns()))


def write(out: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest."""
    temporary = out / f"{MANIFEST}.tmp"
    temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    temporary.replace(out / MANIFEST)


def end(
    manifest: Json, returncode: int, samplers: tuple[Sampling, ...], left: Iterable[Process]
) -> dict[str, Any]:
    """Return the manifest of a run that has ended, without what its processes have recorded."""
    return {
        **manifest,
        "finished": True,
        "outcome": {
            "exit_code": exit_code(returncode),
            "signal": -returncode if returncode < 0 else None,
        },
        "clock": [*manifest["clock"], clock()],
        "samplers": [asdict(sampler) for sampler in samplers],
        "processes": [_described(process) for process in left],
    }


def of_process(ended: Json, process: Process | None) -> dict[str, Any]:
    """Return the manifest of a run's process, which may be none: what was traced, and what is missing."""
    done = fold(ended, process.state if process else {})
    done["missing"] = [*done["missing"], *gaps.missing(done, process)]
    return done


def exit_code(returncode: int) -> int:
    """Return the exit code a shell would show: 128 + n for death by signal n."""
    return 128 - returncode if returncode < 0 else returncode


def _described(process: Process) -> dict[str, Any]:
    """Say in the manifest which process this was, and why it is not reported on."""
    state = process.state
    return {
        "pid": state.get("pid"),
        "argv": state.get("argv", []),
        "rank": process.worker["rank"],
        "steps": process.seen,
        "trained": process.trained,
        "why": "" if process.trained else gaps.why_not(process),
    }
