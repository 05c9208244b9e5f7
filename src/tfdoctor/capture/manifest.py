"""Writes tfdoctor.json before the run, once it has begun and, complete, after it, in place of what it was."""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

from msgspec import convert

import tfdoctor
from tfdoctor import own_python
from tfdoctor.capture import machine, missing_data
from tfdoctor.capture.agent.process.masking import clean, masked
from tfdoctor.capture.plan import Kind, Plan
from tfdoctor.capture.user_folder import revision
from tfdoctor.recording import MANIFEST
from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import fold
from tfdoctor.recording.folders import Process
from tfdoctor.recording.manifest import CapturePlan, Clock, EndedProcess, Ending, Manifest, RunTimes, Sampling
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import replace_file

# The recorded environment variables: those that change how TensorFlow runs. The layout of a job (TF_CONFIG, RANK …)
# is recorded only as a worker's rank and the number of workers.
ENVIRONMENT = (
    *("CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("KERAS_BACKEND", "XLA_FLAGS", "KMP_AFFINITY", "KMP_BLOCKTIME", "LD_PRELOAD", "MALLOC_ARENA_MAX"),
    *("MKL_NUM_THREADS", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "OMP_NUM_THREADS", "OMP_PROC_BIND"),
    *("ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "PYTHONOPTIMIZE", "TF_CPP_MIN_LOG_LEVEL"),
    *("TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "TF_DETERMINISTIC_OPS"),
    *("TF_ENABLE_AUTO_MIXED_PRECISION", "TF_ENABLE_ONEDNN_OPTS", "TF_FORCE_GPU_ALLOW_GROWTH"),
    *("TF_GPU_ALLOCATOR", "TF_GPU_THREAD_COUNT", "TF_GPU_THREAD_MODE", "TF_NUM_INTEROP_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_USE_LEGACY_KERAS", "TF_XLA_FLAGS", "TPU_VISIBLE_CHIPS"),
)

# Ns. Linux slews the wall clock and the monotonic one together, so they part only where the first is set; NTP sets
# it for 128 ms and more, and half a second of a run can be seen.
SMALLEST_JUMP_NS = 500_000_000
# Ns. The clocks are read one after the other, some microseconds apart; no machine sleeps so shortly.
SHORTEST_SLEEP_NS = 1_000_000


def begin(plan: Plan, command: Iterable[str], worker: WorkerRank | None = None) -> Manifest:
    """Return the manifest of a run that is about to start."""
    command = list(command)
    users = own_python.users(os.environ)
    environment = {name: users[name] for name in ENVIRONMENT if name in users}
    script = Path(plan.script).resolve()
    known = plan.kind is Kind.SCRIPT and script.is_file()
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
        revision=revision(script.parent if known else Path.cwd(), script if known else None, os.environ),
    )


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
        processes=tuple(
            EndedProcess(
                pid=process.state.pid,
                argv=process.state.argv,
                rank=process.worker.rank,
                steps=process.seen,
                trained=process.trained,
                why="" if process.trained else missing_data.why_not(process),
            )
            for process in recorded
            if not process.is_part
        ),
    )


def of_process(ended: Manifest, process: Process | None) -> Manifest:
    """Return the manifest of one process of a run (None: there was no process), with its trace and its gaps."""
    done = fold(ended, process.state if process else AgentState())
    return replace(done, missing=(*done.missing, *missing_data.missing(done, process)))


def exit_code(returncode: int) -> int:
    """Return the exit code a shell would show: 128 + n for death by signal n."""
    return 128 - returncode if returncode < 0 else returncode


class Moment(Record):
    """A moment on the clocks of the system, in ns; ``slept_ns`` is how long the machine had slept by then."""

    monotonic_ns: int
    unix_ns: int
    slept_ns: int
    oom_kills: int | None

    @classmethod
    def now(cls) -> Self:
        """Return the present moment."""
        kills = machine.oom_kills()  # first: reading files takes longer than reading clocks
        now_ns, unix_ns = time.monotonic_ns(), time.time_ns()
        since_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)  # with the time that it slept
        return cls(now_ns, unix_ns, since_boot_ns - time.monotonic_ns(), kills)


def times_begun(at: Moment, pid: int) -> RunTimes:
    """Return the times of a run whose process was started at a moment, and the memory that it may use."""
    memory, limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), machine.memory_limit()
    return RunTimes(
        started_ns=at.monotonic_ns,
        started_unix_ns=at.unix_ns,
        pid=pid,
        limit_bytes=memory if limit is None else min(memory, limit),
    )


def times_ended(times: RunTimes, since: Moment, at: Moment) -> RunTimes:
    """Return the times of a run that began at one moment and ended at another."""
    lasted_ns = at.monotonic_ns - since.monotonic_ns
    slept_ns = at.slept_ns - since.slept_ns
    slept_ns = slept_ns if slept_ns >= SHORTEST_SLEEP_NS else 0
    jump_ns = at.unix_ns - since.unix_ns - lasted_ns - slept_ns
    known = at.oom_kills is not None and since.oom_kills is not None
    return replace(
        times,
        ended_ns=at.monotonic_ns,
        oom_kills=max(0, (at.oom_kills or 0) - (since.oom_kills or 0)) if known else None,
        suspended_ns=slept_ns,
        clock_jump_ns=jump_ns if abs(jump_ns) >= SMALLEST_JUMP_NS else 0,
    )
