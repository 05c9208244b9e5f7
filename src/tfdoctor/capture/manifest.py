"""Writes tfdoctor.json before the run and again, complete, after it; the file is replaced each time."""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from msgspec import convert

import tfdoctor
from tfdoctor import own_python
from tfdoctor.capture import machine, missing_data
from tfdoctor.capture.agent.process.masking import clean, masked
from tfdoctor.capture.plan import Kind, Plan
from tfdoctor.capture.revision import revision
from tfdoctor.recording import MANIFEST
from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import fold
from tfdoctor.recording.folders import Process
from tfdoctor.recording.manifest import CapturePlan, Clock, EndedProcess, Ending, Manifest, Revision, Sampling
from tfdoctor.terms.replacement import replace_file

# The recorded environment variables: those that change how TensorFlow runs. The layout of a job (TF_CONFIG, RANK …)
# is recorded only as a worker's rank and the number of workers.
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


def begin(plan: Plan, command: Iterable[str], worker: WorkerRank | None = None) -> Manifest:
    """Return the manifest of a run that is about to start."""
    command = list(command)
    users = own_python.users(os.environ)
    environment = {name: users[name] for name in ENVIRONMENT if name in users}
    return Manifest(
        tfdoctor=tfdoctor.__version__,
        command=tuple(masked(command)),
        cwd=str(Path.cwd()),
        python="" if plan.kind is Kind.COMMAND else command[0],
        environment=dict(zip(environment, masked(environment.values()), strict=True)),
        host=machine.host(),
        plan=replace(convert(plan, CapturePlan, from_attributes=True), script=clean(plan.script)),
        clock=(clock(),),
        worker=worker,
        revision=_revision(plan),
    )


def _revision(plan: Plan) -> Revision | None:
    """Return the commit in the folder of the script, or in the current one."""
    script = Path(plan.script).resolve() if plan.kind is Kind.SCRIPT else None
    known = script if script is not None and script.is_file() else None
    return revision(known.parent if known else Path.cwd(), known, os.environ)


def clock() -> Clock:
    """Return the present time on both clocks."""
    return Clock(unix_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())


def write(out: Path, manifest: Manifest) -> None:
    """Write the manifest, so that a reader never gets half of it.

    Raises:
        OSError: it cannot be written; the one before is still there.
    """
    replace_file(out / MANIFEST, json.dumps(asdict(manifest), indent=1) + "\n")


def end(
    manifest: Manifest, returncode: int, samplers: tuple[Sampling, ...], recorded: Iterable[Process]
) -> Manifest:
    """Return the manifest of an ended run, without the data that its processes recorded."""
    return replace(
        manifest,
        finished=True,
        outcome=Ending(exit_code(returncode), -returncode if returncode < 0 else None),
        clock=(*manifest.clock, clock()),
        samplers=samplers,
        processes=tuple(map(_described, recorded)),
    )


def of_process(ended: Manifest, process: Process | None) -> Manifest:
    """Return the manifest of one process of a run (None: there was no process), with its trace and its gaps."""
    done = fold(ended, process.state if process else AgentState())
    return replace(done, missing=(*done.missing, *missing_data.missing(done, process)))


def exit_code(returncode: int) -> int:
    """Return the exit code a shell would show: 128 + n for death by signal n."""
    return 128 - returncode if returncode < 0 else returncode


def _described(process: Process) -> EndedProcess:
    """Return the manifest's entry for a process, with the reason if it is not reported on."""
    return EndedProcess(
        pid=process.state.pid,
        argv=process.state.argv,
        rank=process.worker.rank,
        steps=process.seen,
        trained=process.trained,
        why="" if process.trained else missing_data.why_not(process),
    )
