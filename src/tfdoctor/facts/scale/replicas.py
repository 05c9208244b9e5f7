"""How many replicas share a batch, and how many processes train."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.run.program import Program
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RunSettings
from tfdoctor.terms.kinds import DeviceKind

ACCELERATORS = (DeviceKind.GPU, DeviceKind.TPU)


@dataclass(frozen=True, slots=True)
class Replicas:
    """The distribution that the script requested; None is unknown."""

    strategy: str = ""  # "MirroredStrategy", "" for none or Keras' default
    count: int | None = None  # replicas in sync
    granted: int | None = (
        None  # accelerators visible to TensorFlow: the script may have hidden some
    )
    workers: int = 1  # processes that train
    batch: int | None = None  # as written in the script
    divided: bool = False  # tf.data divides the batch among the replicas; else each gets all of it

    @classmethod
    def measure(cls, recording: Recording, program: Program | None) -> Self:
        """Read the settings that the run recorded; a foreign trace contains none."""
        settings = program.settings if program else RunSettings()
        strategy = settings.strategy or ""
        return cls(
            strategy="" if strategy == "_DefaultDistributionStrategy" else strategy,
            count=settings.replicas,
            granted=_granted(settings.devices),
            workers=_workers(recording),
            batch=program.batch_size if program else None,
            divided=program is not None
            and any("Rebatch" in dataset.kind for dataset in program.datasets),
        )

    @property
    def each(self) -> float | None:
        """Examples per step and replica; None is unknown."""
        if not self.batch or not self.count:
            return None
        return self.batch / self.count if self.divided else float(self.batch)


def _granted(devices: tuple[str, ...] | None) -> int | None:
    if devices is None:
        return None
    return sum(any(kind in name for kind in ACCELERATORS) for name in devices)


def _workers(recording: Recording) -> int:
    """Return how many processes train: other workers of the job, or others on this machine."""
    manifest = recording.manifest
    if manifest is None:
        return 1
    size = manifest.worker.size if manifest.worker else None
    return max(1, size or 1, sum(process.trained for process in manifest.processes))
