"""Which NVIDIA GPUs TensorFlow has registered, what keeps it from those that there are, and CUDA's cache."""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
from importlib import metadata

from ..process.kept import os, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..process.declared import Foreign

# When TensorFlow was imported at the latest: no kernel was compiled yet, and a source that is written later may not
# be what Python has read.
STARTED = time.time()
DEVICES = "/dev"
DRIVER = "libcuda.so.1"  # The driver's library (https://docs.nvidia.com/cuda/cuda-driver-api/)

# What TensorFlow loads before it registers a GPU, by the major version of CUDA that it is built with: the calls of
# TryDlopenCUDALibraries in xla/tsl/platform/default/dso_loader.cc, the numbers from the packages nvidia-*-cu12 and
# -cu11. cuDNN's number is its major version.
LIBRARIES = {
    "12": (
        "libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcusolver.so.11",
        "libcusparse.so.12",
    ),
    "11": (
        "libcudart.so.11.0", "libcublas.so.11", "libcublasLt.so.11", "libcufft.so.10", "libcusolver.so.11",
        "libcusparse.so.11",
    ),
}  # fmt: skip

# Distributions that bring the module tensorflow.
PACKAGES = (
    "tensorflow", "tensorflow-cpu", "intel-tensorflow", "tensorflow-intel", "tensorflow-cpu-aws",
    "tensorflow-macos", "tf-nightly", "tf-nightly-cpu",
)  # fmt: skip

CACHE = "~/.nv/ComputeCache"  # Where CUDA keeps its kernels on Linux (CUDA C++ Programming Guide, environment)
MOST_FILES = 20_000  # Files of the cache that are looked at: training waits meanwhile


def describe(config: Foreign) -> dict[str, object]:
    """Return what TensorFlow registered and was built for; without a GPU also why, as far as it shows.

    ``config`` is TensorFlow's module of that name; its context is in use already.
    """
    gpus = config.list_physical_devices("GPU")
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    described = {
        "registered": len(gpus),
        "cuda": build.get("is_cuda_build"),
        "targets": list(build.get("cuda_compute_capabilities") or ()),
    }
    if gpus:
        known = (config.get_device_details(gpu).get("compute_capability") for gpu in gpus)
        capabilities = [".".join(map(str, capability)) for capability in known if capability]
        return {**described, "capabilities": capabilities, "cache": kernel_cache(STARTED)}
    files, readable = device_files()
    absent = {"files": files, "readable": readable, "shown": os.environ.get("CUDA_VISIBLE_DEVICES")}
    if not build.get("is_cuda_build"):
        return {**described, **absent, "package": _package()}
    return {**described, **absent, **loading_errors(build)}


def device_files() -> tuple[int, bool]:
    """Return how many device files of GPUs there are, and whether this process may open one."""
    try:
        names = [name for name in os.listdir(DEVICES) if re.fullmatch(r"nvidia\d+", name)]
    except OSError:  # a container without it
        return 0, False
    paths = [os.path.join(DEVICES, name) for name in names]
    return len(paths), any(os.access(path, os.R_OK | os.W_OK) for path in paths)


def _package() -> str:
    """Return the distribution that TensorFlow is of, with its version; "" is unknown."""
    for name in PACKAGES:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""


def loading_errors(build: Mapping[str, object]) -> dict[str, object]:
    """Return the error of the driver, or else the libraries that cannot be loaded, with the loader's message.

    TensorFlow asks the driver first. Each call here repeats one of its own: a library that it has loaded is found
    in the process, and one that it has not fails again.
    """
    error = _driver_error()
    if error:
        return {"driver": error}
    cuda = str(build.get("cuda_version") or "").partition(".")[0]
    names: tuple[str, ...] = LIBRARIES.get(cuda, ())
    if names and build.get("cudnn_version"):
        names = (*names, f"libcudnn.so.{str(build['cudnn_version']).partition('.')[0]}")
    failed = ((name, _load_error(name)) for name in names)
    return {"missing": [{"name": name, "why": why} for name, why in failed if why]}


def _driver_error() -> str:
    """Return the message of the loader, or the name of the driver's error; "" where the driver shows a GPU."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as error:
        return str(error)
    code, number = driver.cuInit(0), ctypes.c_int()
    code = code or driver.cuDeviceGetCount(ctypes.byref(number))
    if not code:
        return "" if number.value else "the driver shows no GPU"
    name = ctypes.c_char_p()
    driver.cuGetErrorName(code, ctypes.byref(name))
    return f"{(name.value or b'CUDA_ERROR').decode()} ({code})"


def _load_error(name: str) -> str:
    """Return the loader's message; "" where the library is in the process, or can be loaded."""
    why = ""
    for already in (os.RTLD_NOLOAD, 0):  # as TensorFlow has loaded it from its own folders; anew
        try:
            ctypes.CDLL(name, mode=already | os.RTLD_LAZY)
        except OSError as error:
            why = str(error)
        else:
            return ""
    return why


def kernel_cache(since: float, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Return what CUDA keeps of compiled kernels: the bytes, the files written since a time in s, and how long.

    ``seconds`` is the time from ``since`` to the last of them.
    """
    if environment.get("CUDA_CACHE_DISABLE", "0") not in {"", "0"}:
        return {"disabled": True}
    folder = os.path.expanduser(environment.get("CUDA_CACHE_PATH") or CACHE)
    files = list(itertools.islice(_cached(folder), MOST_FILES))
    written = [at for _, at in files if at >= since]
    return {
        "disabled": False,
        "bytes": sum(size for size, _ in files),
        "limit": environment.get("CUDA_CACHE_MAXSIZE"),
        "written": len(written),
        "seconds": max(written) - since if written else 0.0,
    }


def _cached(folder: str) -> Iterator[tuple[int, float]]:
    """Yield the bytes of each file below a folder, and when it was written, in s since 1970."""
    for inside, _, names in os.walk(folder):
        for name in names:
            try:
                state = os.stat(os.path.join(inside, name))
            except OSError:  # another process replaces it
                continue
            yield state.st_size, state.st_mtime
