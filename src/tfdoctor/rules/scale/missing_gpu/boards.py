"""The NVIDIA GPUs of the machine, those that TensorFlow registers, and what lies between them."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.program import GpuAccess

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
