from enum import StrEnum

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.program import GpuAccess

__doc__, CODE = page(__file__)

NONE_SHOWN = ("", "-1", "NoDevFiles")  # show no GPU: an invalid index ends the list (CUDA C++ Programming Guide)


class Obstacle(StrEnum):
    """What keeps TensorFlow from the GPUs, as a clause with its details; the first that applies."""

    VARIABLE = "CUDA_VISIBLE_DEVICES is '{shown}', which shows none"
    PROGRAM = "the program hides it with tf.config.set_visible_devices"
    BUILD = "{package} is built without CUDA"
    DRIVER = "the driver does not answer ({driver})"
    LIBRARY = "TensorFlow cannot load {libraries}"
    UNKNOWN = "TensorFlow registers none, and neither the driver nor a missing library says why"


class Boards(Record):
    """The boards that NVML lists, by name, and what TensorFlow makes of them."""

    names: tuple[str, ...] = ()
    access: GpuAccess = GpuAccess()
    usable: int = 0  # that the program gets
    foreign: str = ""  # the backend of Keras where that is not TensorFlow

    @property
    def count(self) -> int:
        """The number of boards, or of device files."""
        return len(self.names) or self.access.files or 0

    @property
    def obstacle(self) -> Obstacle:
        """What comes first between TensorFlow and the GPUs."""
        access, shown = self.access, self.access.shown
        obstacles = (
            (access.registered, Obstacle.PROGRAM),
            (shown is not None and shown.split(",")[0].strip() in NONE_SHOWN, Obstacle.VARIABLE),
            (access.cuda is False, Obstacle.BUILD),
            (access.driver, Obstacle.DRIVER),
            (access.missing, Obstacle.LIBRARY),
        )
        return next((obstacle for applies, obstacle in obstacles if applies), Obstacle.UNKNOWN)

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Compare the samples with the devices of TensorFlow."""
        run = recording.program.run if recording.program else None
        if run is None or run.gpus is None or run.devices is None:
            raise Unavailable("which GPUs TensorFlow registers was not recorded")
        boards = {gpu.index: gpu.name for sample in recording.samples for gpu in sample.gpu}
        usable = sum(any(kind in name for kind in (DeviceKind.GPU, DeviceKind.TPU)) for name in run.devices)
        foreign = "" if run.backend in {None, "tensorflow"} else run.backend or ""
        return cls(tuple(name or "GPU" for _, name in sorted(boards.items())), run.gpus, usable, foreign)


DELIBERATE = (Obstacle.VARIABLE, Obstacle.PROGRAM)  # Obstacles that somebody chose, perhaps for this run
WORK = (Phase.STEPS, Phase.EVALUATION, Phase.PREDICTION)
REMEDIES = {
    Obstacle.VARIABLE: Remedy("Remove the variable, if the run is meant for the GPU", CODE["shown"]),
    Obstacle.PROGRAM: Remedy("Remove the call, if the run is meant for the GPU", CODE["hidden"]),
    Obstacle.BUILD: Remedy("Install a package with CUDA instead", CODE["another"]),
    Obstacle.DRIVER: Remedy("Give the run access to the driver of the machine", CODE["driver"]),
    Obstacle.LIBRARY: Remedy("Install the libraries that TensorFlow was built with", CODE["libraries"]),
    Obstacle.UNKNOWN: Remedy("Read what TensorFlow logs when it looks for GPUs", CODE["log"]),
}


def check(boards: Boards, device: Device | None, phases: RunPhases | None) -> Verdict:
    """Compare the boards of the machine with the devices of TensorFlow."""
    if boards.usable:
        return Healthy(summary=f"TensorFlow uses {counted(boards.usable, 'accelerator')}")
    access, kind = boards.access, device.kind if device else DeviceKind.CPU
    closed = "there are device files of NVIDIA GPUs, which the run may not open, and NVML lists no GPU"
    reason = why_not(
        (kind != DeviceKind.CPU, f"the trace shows work on a {kind}"),
        (boards.foreign, f"Keras computes with {boards.foreign}, which needs no GPU of TensorFlow's"),
        (not boards.names and access.files and not access.readable, closed),
        (not boards.count, "the machine shows no NVIDIA GPU"),
        (phases and not phases.of(*WORK), "the run neither trains nor evaluates nor predicts"),
    )
    if reason:
        return NotApplicable(reason=reason)
    obstacle, name = boards.obstacle, boards.names[0] if boards.names else "an NVIDIA GPU"
    package, libraries = (
        access.package or "this package of TensorFlow",
        ", ".join(one.name for one in access.missing),
    )
    said = obstacle.format(shown=access.shown, package=package, driver=access.driver, libraries=libraries)
    loader = Table(("library", "message of the loader"), tuple((one.name, one.why) for one in access.missing))
    return Finding(
        summary=f"The run computes on the CPU beside {name}: {said}",
        evidence=(
            Measure("GPUs of the machine", count(boards.count)),
            Measure("GPUs that TensorFlow gives to the program", count(boards.usable)),
            *([loader] if access.missing else []),
        ),
        remedies=(REMEDIES[obstacle],),
        severity=Severity.NOTE if obstacle in DELIBERATE else Severity.WARNING,
    )
