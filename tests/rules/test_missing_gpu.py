"""missing-gpu: what is told of each obstacle, and when nothing can be said."""

from tests.rules.kit import *
from tfdoctor.rules.scale.missing_gpu import check
from tfdoctor.rules.scale.missing_gpu.boards import Boards

CUDNN = MissingLibrary("libcudnn.so.9", "libcudnn.so.9: cannot open shared object file: No such file or directory")
NO_DRIVER = GpuAccess(driver="no driver")
MACHINE = [{"unix_ns": 1, "gpu": [{"index": 0, "name": "Tesla T4"}]}]


def example(
    boards: Boards = Boards(("Tesla T4",), GpuAccess(missing=(CUDNN,), readable=True, files=1)),
    device: Device | None = None, phases: RunPhases | None = None,
) -> Verdict:  # fmt: skip
    """NVML lists a T4, and the loader does not find cuDNN."""
    return check(boards, device, phases)


def boards(samples: Any = MACHINE, devices: Any = ("/device:CPU:0",), **gpus: Any) -> Boards:
    """The fact of a recording with these samples and this record of the run."""
    run = {"devices": list(devices), "gpus": {"registered": 0, "cuda": True, **gpus}}
    return chart(trace([]), recording({"run": run}, samples)).fact(Boards)


sick = example
healthy = described("TensorFlow registers the GPU.", example, Boards(names=("Tesla T4",), usable=1))


@golden_cases
def test_verdicts(told: Cases) -> None:
    gpus: dict[str, dict[str, Any]] = {
        "a variable hides all GPUs": {"shown": "-1"},
        "a variable is empty": {"shown": ""},
        "the program registers a GPU, and uses none": {"registered": 1},
        "a build without CUDA": {"cuda": False, "package": "tensorflow-cpu 2.21.0"},
        "a variable comes before a build": {"shown": "-1", "cuda": False},
        "the driver fails": {"driver": "CUDA_ERROR_NO_DEVICE (100)"},
        "a library is missing": {"missing": [{"name": "libcudnn.so.9", "why": "not found"}]},
        "nothing is known": {"shown": "0"},
    }
    for name, given in gpus.items():
        told[name] = example(boards(**given))
    for kind in ("GPU", "TPU"):
        told[f"a {kind} in use"] = example(boards(devices=("/device:CPU:0", f"/device:{kind}:0")))
    told["no GPU"] = example(Boards(access=NO_DRIVER))
    told["trap: device files of the host that are in a container which may not use them"] = example(
        Boards(access=GpuAccess(files=8, readable=False, driver="no driver"))
    )
    told["another framework"] = example(Boards(("T4",), NO_DRIVER, foreign="jax"))
    told["device files alone"] = example(boards((), files=2, readable=True, driver="libcuda.so.1: cannot open"))
    told["a program that uses a GPU"] = example(boards(), device=Device(DeviceKind.GPU, 1, 1))
    told["a program that prepares data"] = example(boards(), phases=divided_run(1000.0, {Phase.PREPARING: 1000.0}))
    record = {"run": {"devices": ["/device:CPU:0"]}}
    told["a recording that does not tell"] = lambda: chart(trace([]), recording(record, MACHINE)).fact(Boards)
