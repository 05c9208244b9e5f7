"""TensorFlow does not see the machine's GPU.

## What it checks

Whether NVML lists an NVIDIA GPU, or the process has the device file of one (`/dev/nvidia0`) and may open it, while
TensorFlow registers no GPU and the program trains, evaluates or predicts on the CPU. In that order it looks at
`CUDA_VISIBLE_DEVICES` as the process has it, at `tf.config.set_visible_devices`, at whether the package was built
with CUDA (`tf.test.is_built_with_cuda()`), at the answer of the driver (`cuInit`), and at the libraries of CUDA
that TensorFlow loads before it registers a GPU. For each that cannot be loaded the report shows the message of the
dynamic loader.

## Why it matters

TensorFlow writes a line to the log and goes on with the CPU. The program is correct, and takes many times as long
as on the GPU that is paid for. How many times cannot be computed from a run on the CPU: no saving is stated.

## How to fix

- `pip install 'tensorflow[and-cuda]'` brings the libraries of CUDA in the versions that TensorFlow was built with.
- Packages such as `tensorflow-cpu` have no CUDA; neither has any package of TensorFlow for Windows after 2.10.
- In a container, the driver's library comes from the host: `docker run --gpus all`, with NVIDIA's toolkit for
  containers.
- Remove `CUDA_VISIBLE_DEVICES=-1` (or an empty value) where it is not meant for this run.

## Holds for

Linux, NVIDIA GPUs, TensorFlow 2.5 and later, in recordings of `tfdoctor profile`. Where the process may not open
the device files and NVML lists nothing, as in a container without access to the GPU, the rule is not checked. Other
reasons, such as a GPU below the compute capability that TensorFlow needs, are in TensorFlow's log, which is not
recorded. Tested with TensorFlow 2.21 against substitutes for the driver's library and for NVML; never seen on a
machine with a GPU.

## Sources

- [Install TensorFlow with pip](https://www.tensorflow.org/install/pip)
- [CUDA C++ Programming Guide: environment variables](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
- [TensorFlow/XLA, dso_loader.cc: the libraries that are loaded](https://github.com/openxla/xla/blob/main/xla/tsl/platform/default/dso_loader.cc)
- Users' threads: [tensorflow 43785](https://github.com/tensorflow/tensorflow/issues/43785),
  [tensorflow 74459](https://github.com/tensorflow/tensorflow/issues/74459),
  [models 3366](https://github.com/tensorflow/models/issues/3366)
"""

from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.device import Device
from tfdoctor.rules.missing_gpu.boards import Boards, MissingLibrary, Obstacle
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import (
    Evidence,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "what is installed, and which devices a run may use, stands outside of the file"

DELIBERATE = (Obstacle.VARIABLE, Obstacle.PROGRAM)
"""Obstacles that somebody chose, perhaps for this run."""

WORK = (Phase.STEPS, Phase.EVALUATION, Phase.PREDICTION)


def check(boards: Boards, device: Device | None, phases: RunPhases | None) -> Verdict:
    """Compare the boards of the machine with the devices of TensorFlow."""
    if boards.usable:
        return Healthy(summary=f"TensorFlow uses {counted(boards.usable, 'accelerator')}")
    if reason := _why_not(boards, device, phases):
        return NotApplicable(reason=reason)
    obstacle = boards.obstacle or Obstacle.UNKNOWN
    evidence: tuple[Evidence, ...] = (
        Measure("GPUs of the machine", count(boards.count)),
        Measure("GPUs that TensorFlow gives to the program", count(boards.usable)),
        *_loader_table(boards.libraries),
    )
    name = boards.names[0] if boards.names else "an NVIDIA GPU"
    return Finding(
        summary=f"The run computes on the CPU beside {name}: {_said(obstacle, boards)}",
        evidence=evidence,
        remedies=(REMEDIES[obstacle],),
        severity=Severity.NOTE if obstacle in DELIBERATE else Severity.WARNING,
    )


def _why_not(boards: Boards, device: Device | None, phases: RunPhases | None) -> str:
    """Return why nothing can be said; "" where it can."""
    if device is not None and device.kind != DeviceKind.CPU:
        return f"the trace shows work on a {device.kind}"
    if boards.foreign:
        return f"Keras computes with {boards.foreign}, which needs no GPU of TensorFlow's"
    if not boards.names and boards.files and not boards.readable:
        return "there are device files of NVIDIA GPUs, which the run may not open, and NVML lists no GPU"
    if not boards.count:
        return "the machine shows no NVIDIA GPU"
    if phases is not None and not phases.of(*WORK):
        return "the run neither trains nor evaluates nor predicts"
    return ""


def _said(obstacle: Obstacle, boards: Boards) -> str:
    """Return the obstacle with its details, as a clause."""
    match obstacle:
        case Obstacle.VARIABLE:
            return f"CUDA_VISIBLE_DEVICES is '{boards.detail}', which shows none"
        case Obstacle.PROGRAM:
            return "the program hides it with tf.config.set_visible_devices"
        case Obstacle.BUILD:
            return f"{boards.detail or 'this package of TensorFlow'} is built without CUDA"
        case Obstacle.DRIVER:
            return f"the driver does not answer ({boards.detail})"
        case Obstacle.LIBRARY:
            names = ", ".join(library.name for library in boards.libraries)
            return f"TensorFlow cannot load {names}"
        case Obstacle.UNKNOWN:
            return "TensorFlow registers none, and neither the driver nor a missing library says why"


def _loader_table(libraries: tuple[MissingLibrary, ...]) -> tuple[Table, ...]:
    if not libraries:
        return ()
    return (Table.of(libraries, ("library", lambda one: one.name), ("message of the loader", lambda one: one.why)),)


AND_CUDA = """\
# in the shell
pip install 'tensorflow[and-cuda]'
python -c "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\""""

REMEDIES = {
    Obstacle.VARIABLE: Remedy(
        "Remove the variable, if the run is meant for the GPU", "# in the shell: unset CUDA_VISIBLE_DEVICES"
    ),
    Obstacle.PROGRAM: Remedy(
        "Remove the call, if the run is meant for the GPU",
        "# tf.config.set_visible_devices([], 'GPU')  # hides all GPUs",
    ),
    Obstacle.BUILD: Remedy(
        "Install a package with CUDA instead", f"# first: pip uninstall tensorflow-cpu\n{AND_CUDA}"
    ),
    Obstacle.DRIVER: Remedy(
        "Give the run access to the driver of the machine",
        "# in the shell: nvidia-smi  # has to list the GPU, in the container too\n# docker run --gpus all ...",
    ),
    Obstacle.LIBRARY: Remedy("Install the libraries that TensorFlow was built with", AND_CUDA),
    Obstacle.UNKNOWN: Remedy(
        "Read what TensorFlow logs when it looks for GPUs",
        '# in the shell: TF_CPP_MIN_LOG_LEVEL=0 python -c "import tensorflow as tf; '
        "print(tf.config.list_physical_devices('GPU'))\"",
    ),
}


CUDNN = MissingLibrary("libcudnn.so.9", "libcudnn.so.9: cannot open shared object file: No such file or directory")


def example(
    boards: Boards = Boards(
        names=("Tesla T4",), obstacle=Obstacle.LIBRARY, libraries=(CUDNN,), readable=True, files=1
    ),
    device: Device | None = None,
    phases: RunPhases | None = None,
) -> Verdict:
    """NVML lists a T4, and the loader does not find cuDNN."""
    return check(boards, device, phases)


sick = example


def healthy() -> Verdict:
    """TensorFlow registers the GPU."""
    return example(Boards(names=("Tesla T4",), usable=1))
