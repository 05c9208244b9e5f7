"""Which NVIDIA GPUs TensorFlow has registered, and what keeps it from those that there are."""

from __future__ import annotations

import ctypes
import re
import sys
from importlib import metadata

from ..process.kept import os, time
from . import kernel_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..process.declared import Foreign

DEVICES = "/dev"

STARTED = time.time()  # When TensorFlow was imported, and no kernel was compiled yet
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


def describe(config: Foreign) -> dict[str, object]:
    """Return what TensorFlow registered and was built for; without a GPU also why, as far as it shows.

    ``config`` is TensorFlow's module of that name; its context is in use already.
    """
    gpus = config.list_physical_devices("GPU")
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    described = {
        "registered": len(gpus),
        "cuda": build.get("is_cuda_build"),
        "rocm": build.get("is_rocm_build"),
        "targets": list(build.get("cuda_compute_capabilities") or ()),
    }
    if gpus:
        cache = kernel_cache.describe(STARTED)
        return {**described, "capabilities": list(_capabilities(config, gpus)), "cache": cache}
    files, readable = device_files()
    absent = {"files": files, "readable": readable, "shown": os.environ.get("CUDA_VISIBLE_DEVICES")}
    if not build.get("is_cuda_build"):
        return {**described, **absent, "package": _package()}
    return {**described, **absent, **loading_errors(build)}


def _capabilities(config: Foreign, gpus: list[object]) -> Iterator[str]:
    for gpu in gpus:
        capability = config.get_device_details(gpu).get("compute_capability")
        if capability:
            yield ".".join(map(str, capability))


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
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)  # as TensorFlow has loaded it from its own folders
    except OSError:
        try:
            ctypes.CDLL(name, mode=os.RTLD_LAZY)
        except OSError as error:
            return str(error)
    return ""
