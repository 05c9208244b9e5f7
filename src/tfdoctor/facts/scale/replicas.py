"""How many replicas share a batch, and how many processes train."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.run.program import Places, Program
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RunSettings
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Location

ACCELERATORS = (DeviceKind.GPU, DeviceKind.TPU)

ONE_PROCESS = "MirroredStrategy"  # The strategy whose replicas are all in this process


@dataclass(frozen=True, slots=True)
class Replicas:
    """The distribution that the script requested; None is unknown."""

    strategy: str = ""  # "MirroredStrategy", "" for none or Keras' default
    count: int | None = None  # replicas in sync
    granted: int | None = None  # accelerators visible to TensorFlow: the script may have hidden some
    workers: int = 1  # processes that train
    batch: int | None = None  # as written in the script
    divided: bool = False  # tf.data divides the batch among the replicas; else each gets all of it
    sharing: int | None = None  # the most replicas of this process on one physical device
    at: Location | None = None  # the line that made the strategy

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
        sharing = max(Counter(settings.replica_devices).values(), default=None)
        if (
            sharing is None
            and strategy == ONE_PROCESS
            and devices
            and all(DeviceKind.CPU in one for one in devices)
        ):
            sharing = settings.replicas  # TensorFlow has one physical CPU, whatever its logical ones
        return cls(
            strategy="" if strategy == "_DefaultDistributionStrategy" else strategy,
            count=settings.replicas,
            granted=None if settings.devices is None else granted,
            workers=max(1, size or 1, trained),
            batch=program.batch_size if program else None,
            divided=program is not None and any("Rebatch" in dataset.kind for dataset in program.datasets),
            sharing=sharing,
            at=Places.of(recording)(settings.strategy_at),
        )

    @property
    def each(self) -> float | None:
        """Examples per step and replica; None is unknown."""
        if not self.batch or not self.count:
            return None
        return self.batch / self.count if self.divided else float(self.batch)

    @property
    def share_a_device(self) -> bool:
        """Whether one device computes for several replicas."""
        return (self.sharing or 0) > 1
