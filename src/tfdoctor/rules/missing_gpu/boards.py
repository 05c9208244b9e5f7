"""The NVIDIA GPUs of the machine, those that TensorFlow registers, and what lies between them."""

from enum import StrEnum

from tfdoctor.diagnosis.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.program import GpuAccess, MissingLibrary

# Values of CUDA_VISIBLE_DEVICES that show no GPU (CUDA C++ Programming Guide: an invalid index ends the list).
NONE_SHOWN = ("", "-1", "NoDevFiles")

TENSORFLOW = "tensorflow"


class Obstacle(StrEnum):
    """What keeps TensorFlow from the GPUs, as a clause with its details; the first that applies."""

    VARIABLE = "CUDA_VISIBLE_DEVICES is '{detail}', which shows none"
    PROGRAM = "the program hides it with tf.config.set_visible_devices"
    BUILD = "{package} is built without CUDA"
    DRIVER = "the driver does not answer ({detail})"
    LIBRARY = "TensorFlow cannot load {libraries}"
    UNKNOWN = "TensorFlow registers none, and neither the driver nor a missing library says why"

    @classmethod
    def of(cls, access: GpuAccess) -> tuple[Self, str]:
        """Return what comes first between TensorFlow and the GPUs, and its details."""
        if access.registered:
            return cls.PROGRAM, ""
        if access.shown is not None and access.shown.split(",")[0].strip() in NONE_SHOWN:
            return cls.VARIABLE, access.shown
        if access.cuda is False:
            return cls.BUILD, access.package
        if access.driver:
            return cls.DRIVER, access.driver
        return (cls.LIBRARY, "") if access.missing else (cls.UNKNOWN, "")


@dataclass(frozen=True, slots=True)
class Boards:
    """The boards that NVML lists, by name, or the device files; ``usable`` are those that the program gets.

    ``readable`` says whether the process may open a device file, None where it has none. ``obstacle`` is None
    where a GPU is usable. ``foreign`` is the backend of Keras where that is not TensorFlow.
    """

    names: tuple[str, ...] = ()
    files: int = 0
    readable: bool | None = None
    usable: int = 0
    obstacle: Obstacle | None = None
    detail: str = ""  # of the obstacle: the variable's value, the package, the driver's error
    libraries: tuple[MissingLibrary, ...] = ()
    foreign: str = ""

    @property
    def count(self) -> int:
        """The number of boards."""
        return len(self.names) or self.files

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Compare the samples and the device files with the devices of TensorFlow."""
        run = recording.program.run if recording.program else None
        if run is None or run.gpus is None or run.devices is None:
            raise Unavailable("which GPUs TensorFlow registers was not recorded")
        access = run.gpus
        boards = {gpu.index: gpu.name for sample in recording.samples for gpu in sample.gpu}
        usable = sum(any(kind in name for kind in (DeviceKind.GPU, DeviceKind.TPU)) for name in run.devices)
        obstacle, detail = (None, "") if usable else Obstacle.of(access)
        return cls(
            names=tuple(name or "GPU" for _, name in sorted(boards.items())),
            files=access.files or 0,
            readable=access.readable if access.files else None,
            usable=usable,
            obstacle=obstacle,
            detail=detail,
            libraries=access.missing,
            foreign="" if run.backend in {None, TENSORFLOW} else run.backend or "",
        )
