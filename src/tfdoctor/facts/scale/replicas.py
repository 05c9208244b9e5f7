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
        strategy, devices = settings.strategy or "", settings.devices or ()
        granted = sum(any(kind in name for kind in ACCELERATORS) for name in devices)
        manifest = recording.manifest
        # Other workers of the job, or others on this machine.
        size = manifest.worker.size if manifest and manifest.worker else None
        trained = sum(process.trained for process in manifest.processes) if manifest else 0
        return cls(
            strategy="" if strategy == "_DefaultDistributionStrategy" else strategy,
            count=settings.replicas,
            granted=None if settings.devices is None else granted,
            workers=max(1, size or 1, trained),
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
