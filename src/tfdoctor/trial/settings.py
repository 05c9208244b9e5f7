"""Settings worth a try on this machine: environment variables, and what the agent sets in the program."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tfdoctor.capture import machine
from tfdoctor.capture.agent.trial.settings import NO_XLA, POOL_THREADS
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.recording.program import ProgramRecord, RunSettings
from tfdoctor.terms.record import Record
from tfdoctor.trial.program import NotTried, RecordedProgram, Variant, variables

Chosen = Iterator[Variant | NotTried]

XLA_FLAGS = "TF_XLA_FLAGS"
# Compiles clusters of operations of all graphs, on CPUs too (https://openxla.org/xla/tf2xla, auto-clustering).
CLUSTERING = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
# CPU flags with one of which TensorFlow uses oneDNN by default, from 2.9 on (tensorflow/core/util/port.cc).
ONEDNN_FLAGS = frozenset(("avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"))
ONEDNN_SINCE = (2, 9)

# By the kind of threads, the variable that TensorFlow reads; its default is the number of cores that the process
# may use, without regard to a cgroup's quota (tensorflow/core/common_runtime/process_util.cc).
THREADS = (("inter-op", "TF_NUM_INTEROP_THREADS"), ("intra-op", "TF_NUM_INTRAOP_THREADS"))

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
GPU_MODE = "TF_GPU_THREAD_MODE"
PRELOAD = "LD_PRELOAD"
POOL_OPTION = "threading.private_threadpool_size"
TCMALLOC = ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4")


class Machine(Record):
    """The cores of this machine that a process may use."""

    schedulable: int  # logical cores
    physical: int | None  # None: unknown
    usable: int  # by the cgroup's quota as well
    host: HostMachine

    @classmethod
    def this(cls) -> "Machine":
        """Return the machine that the trial runs on."""
        cores, physical = os.sched_getaffinity(0), None
        with suppress(OSError):  # they are grouped as the kernel says
            physical = len({Path(SIBLINGS.format(core)).read_text("ascii") for core in cores})
        return cls(len(cores), physical, max(1, int(machine.usable_cores())), machine.host())


def of_recording(
    recording: Recording, program: RecordedProgram, here: Machine | None = None
) -> tuple[list[Variant], list[NotTried]]:
    """Return the settings to try, each alone, and those that cannot matter here, with the reason."""
    known = recording.program or ProgramRecord()
    environment = variables(program, {})
    here = here or Machine.this()
    version = recording.manifest.versions.get("tensorflow", "") if recording.manifest else ""
    chosen = [
        *_xla(known.run, environment),
        *_threads(known, environment, here),
        *_onednn(known.run, environment, here.host, version),
        *_allocator(environment),
        *_data_threads(known, here),
        *_gpu_threads(known.run, environment),
    ]
    missing = [one for one in chosen if isinstance(one, NotTried)]
    return [one for one in chosen if isinstance(one, Variant)], missing


def _xla(run: RunSettings, environment: Mapping[str, str]) -> Chosen:
    flags = environment.get(XLA_FLAGS, "").split()
    clustering = [flag for flag in flags if flag.startswith("--tf_xla_auto_jit=")]
    if run.jit_compile is True:
        yield Variant("XLA off", runner={NO_XLA: 1})
        yield NotTried("XLA for all graphs", "the training step is compiled with XLA already")
    elif clustering:
        others = " ".join(flag for flag in flags if flag not in clustering)
        yield Variant("XLA off", environment={XLA_FLAGS: others})
        yield NotTried("XLA for all graphs", f"{XLA_FLAGS} asks for it already")
    elif run.run_eagerly:
        yield NotTried("XLA", "the program runs eagerly, without graphs to compile")
    else:
        yield Variant("XLA for all graphs", environment={XLA_FLAGS: " ".join([*flags, CLUSTERING])})
        unknown = "it is not recorded whether the program uses XLA"
        yield NotTried("XLA off", unknown if run.jit_compile is None else "the program does not use XLA")


def _threads(known: ProgramRecord, environment: Mapping[str, str], here: Machine) -> Chosen:
    run = known.run
    set_by_program = {"inter-op": run.inter_op_threads, "intra-op": run.intra_op_threads}
    for kind, variable in THREADS:
        name = f"other numbers of {kind} threads"
        if set_by_program[kind]:
            yield NotTried(name, "the program sets the number itself")
            continue
        if _on_gpu(run) and not known.datasets:
            yield NotTried(name, "the step runs on a GPU and has no tf.data pipeline")
            continue
        given = environment.get(variable, "")
        default = (int(given) if given.isdecimal() else 0) or here.schedulable
        numbers = {1, here.physical or default, here.usable} - {default}
        for number in sorted(numbers):
            plural = "" if number == 1 else "s"
            yield Variant(f"{number} {kind} thread{plural}", environment={variable: str(number)})
        if not numbers:
            yield NotTried(name, f"the default is {default} here, and so are the alternatives")


def _onednn(run: RunSettings, environment: Mapping[str, str], host: HostMachine, version: str) -> Chosen:
    if platform.machine() not in ("x86_64", "AMD64"):
        yield NotTried("oneDNN", f"TensorFlow for {platform.machine()} has another default")
    elif _on_gpu(run):
        yield NotTried("oneDNN", "the step runs on a GPU, which does not use it")
    else:
        parts = version.split(".")[:2]
        numbers = [int(part) if part.isdecimal() else 99 for part in parts]  # unknown: a present one
        capable = bool(ONEDNN_FLAGS & set(host.cpu_flags)) and tuple(numbers) >= ONEDNN_SINCE
        is_on = environment.get(ONEDNN, "1" if capable else "0").lower() in ("1", "true")
        yield Variant(f"oneDNN {'off' if is_on else 'on'}", environment={ONEDNN: str(int(not is_on))})


def _allocator(environment: Mapping[str, str]) -> Chosen:
    library, loaded = _tcmalloc(), environment.get(PRELOAD, "")
    entries = loaded.replace(":", " ").split()
    if any(Path(entry).name.startswith("libtcmalloc") for entry in entries):
        yield NotTried("tcmalloc", f"{PRELOAD} loads it already")
    elif library:
        yield Variant("tcmalloc", environment={PRELOAD: ":".join(filter(None, (library, loaded)))})
    else:
        yield NotTried("tcmalloc", "it is not installed")


def _tcmalloc() -> str:
    folders = ("/usr/lib", "/usr/lib64", *map(str, Path("/usr/lib").glob("*-linux-gnu")))
    paths = (Path(folder, name) for folder in folders for name in TCMALLOC)
    return next((str(path) for path in paths if path.exists()), "")


def _data_threads(known: ProgramRecord, here: Machine) -> Chosen:
    name = "threads of their own for tf.data"
    options = {d.id: d.options for d in known.datasets}.get(-1 if known.feeds is None else known.feeds)
    if known.feeds is None:
        yield NotTried(name, "no tf.data pipeline feeds the training")
    elif options and POOL_OPTION in options:
        yield NotTried(name, "the program sets their number itself")
    else:
        yield Variant(name, runner={POOL_THREADS: here.usable})


def _gpu_threads(run: RunSettings, environment: Mapping[str, str]) -> Chosen:
    name = "threads of their own for GPU kernels"
    if run.devices is not None and not _on_gpu(run):
        yield NotTried(name, "the training uses no GPU")
    elif GPU_MODE in environment:
        yield NotTried(name, f"{GPU_MODE} is set already")
    elif run.devices is not None:
        yield Variant(name, environment={GPU_MODE: "gpu_private"})
    else:
        yield NotTried(name, "the devices are not recorded")


def _on_gpu(run: RunSettings) -> bool:
    return any(":GPU:" in device for device in run.devices or ())
