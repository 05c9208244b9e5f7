from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.missing_gpu.boards import Boards, MissingLibrary, Obstacle

__doc__, CODE = page(__file__)

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
