"""What a recording on this machine would contain, and what would be missing: found out without a run."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tfdoctor.capture import machine
from tfdoctor.capture.interpreter import asked, interpreter
from tfdoctor.capture.sampler import Sampler, SamplerUnavailable, all_samplers
from tfdoctor.terms.record import Record

OLDEST = (2, 9)  # TensorFlow in whose processes the agent works

FRAMEWORKS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "keras", "tf_keras", "jax")

# Asks the interpreter of the script for its packages, which takes a tenth of a second: none is imported.
ASK = f"""
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {{}}
for name in {FRAMEWORKS!r}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        continue
print(json.dumps({{"python": ".".join(map(str, sys.version_info[:3])), "packages": found}}))
"""

# The settings of NVIDIA's driver: ``RmProfilingAdminOnly: 1`` reserves its counters for root.
DRIVER = Path("/proc/driver/nvidia/params")

SAMPLED = {
    "host": "host samples",
    "nvml": "GPU samples",
    "rapl": "CPU energy",
    "tpu": "TPU samples",
    "tpu-sdk": "TPU matrix unit",
}

GIB = 2**30


class Ability(Record):
    """Something that a recording needs or contains."""

    name: str
    works: bool | None  # None: this machine has nothing to record there
    what: str  # what was found, or why it does not work
    remedy: str = ""
    needed: bool = False  # without it nothing is recorded


def abilities(python: str | None = None) -> Iterator[Ability]:
    """Yield what was found out; `python` is the interpreter of the script.

    Without it, this is about the one that `tfdoctor profile` would use.
    """
    yield from _frameworks(python or interpreter(None))
    yield _opinion()
    yield from _machine()
    yield from (_sampled(sampler) for sampler in all_samplers())
    if kernels := gpu_kernels():
        yield kernels


def _frameworks(python: str) -> Iterator[Ability]:
    """Yield the interpreter of the script, and its TensorFlow."""
    path = shutil.which(python)
    if path is None:
        remedy = "give the path of the interpreter that runs your script, with --python"
        yield Ability("Python", works=False, what=f"{python} was not found", remedy=remedy, needed=True)
        return
    try:
        answer = asked(path, ASK)
        answer.check_returncode()
        found = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        what = f"{path} does not run ({type(error).__name__})"
        yield Ability("Python", works=False, what=what, remedy="repair it", needed=True)
        return
    yield Ability("Python", works=True, what=f"{found['python']}, {path}")
    yield _tensorflow(found["packages"], path)


def _tensorflow(packages: dict[str, str], python: str) -> Ability:
    what = f"{python} has no TensorFlow"
    remedy = "install it there, or name the interpreter of your script with --python"
    if found := next((packages[name] for name in FRAMEWORKS[:3] if name in packages), None):
        beside = [f"{name} {packages[name]}" for name in FRAMEWORKS[3:] if name in packages]
        release = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
        old = "install TensorFlow 2.9 or later, or report on traces of its own profiler"
        what, remedy = ", ".join([found, *beside]), old if release < OLDEST else ""
    return Ability("TensorFlow", works=not remedy, what=what, remedy=remedy, needed=bool(remedy))


def _opinion() -> Ability:
    for name in ("xprof", "tensorboard-plugin-profile"):
        try:
            return Ability("second opinion", works=True, what=f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    remedy = "install tensorboard-plugin-profile beside tfdoctor"
    return Ability("second opinion", works=False, what="xprof is not installed", remedy=remedy)


def _machine() -> Iterator[Ability]:
    """Yield the cores and the memory that a run may use."""
    host = machine.host()
    cores = f"{host.cores_usable:g} of {host.cores_logical} cores usable, {host.cpu_model}"
    yield Ability("CPU", works=True, what=cores)
    whole, limit = host.memory_bytes or 0, machine.memory_limit()
    memory = f"{whole / GIB:.3g} GiB"
    if limit is not None and limit < whole:
        memory = f"{limit / GIB:.3g} of {memory}, by the limit of the control group"
    yield Ability("memory", works=True, what=memory)


def _sampled(sampler: Sampler) -> Ability:
    """Start a sampler on this process and read it once, as a recording does."""
    name = SAMPLED.get(sampler.name, sampler.name)
    try:
        sampler.start(os.getpid())
        entries = sampler.read()
        missing = sampler.stop()
    except SamplerUnavailable as why:
        return Ability(name, works=None, what=str(why))
    except Exception as error:  # noqa: BLE001 - no driver, no permission, a foreign library: as in a recording
        return Ability(name, works=False, what=f"{type(error).__name__}: {error}")
    units = [f"{len(value)} found" for value in entries.values() if isinstance(value, list)]
    return Ability(name, works=True, what="; ".join(filter(None, [*units, missing])) or "read once")


def gpu_kernels(params: Path = DRIVER) -> Ability | None:
    """Return whether the driver lets this user record GPU kernels; None without its settings."""
    try:
        text = params.read_text("ascii", errors="replace")
    except OSError:
        return None
    if "RmProfilingAdminOnly: 1" not in text or not os.geteuid():
        return Ability("GPU kernels", works=True, what="the driver permits profiling")
    return Ability(
        "GPU kernels",
        works=False,
        what="the driver permits profiling for administrators only",
        remedy="run as root, or load the module nvidia with NVreg_RestrictProfilingToAdminUsers=0",
    )
