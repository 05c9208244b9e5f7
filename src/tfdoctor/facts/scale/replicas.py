"""How many replicas share a batch, how many processes train, and by how much the slowest device is behind."""

from statistics import median

from tfdoctor.facts.gpu.idle_gaps import GpuUtilization
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Places, Program
from tfdoctor.facts.steps.steps import RoundUnit
from tfdoctor.facts.tpu.time import COLLECTIVE, COMPUTE, TpuTime

ACCELERATORS = (DeviceKind.GPU, DeviceKind.TPU)
ONE_PROCESS = "MirroredStrategy"  # The strategy whose replicas are all in this process
WORKS = 0.01  # Share of the busiest device's computing time below which a device is idle, not fast


class Replicas(Record):
    """The distribution that the script requested; None is unknown."""

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
        on_cpu = bool(devices) and all(DeviceKind.CPU in one for one in devices)
        if sharing is None and strategy == ONE_PROCESS and on_cpu:
            sharing = settings.replicas  # TensorFlow has one physical CPU, whatever its logical ones
        return cls(
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


class DeviceSkew(Record):
    """The working devices of one host; ms per training step, by device."""

    computing_ms: dict[str, float]  # no collectives, no copies
    exchanging_ms: dict[str, float]  # in collectives, where the fast ones wait
    shown: str = ""  # the device whose stages are in Breakdown

    @classmethod
    def measure(cls, device: Device, gpus: GpuUtilization | Unavailable, tpus: TpuTime | Unavailable) -> Self:
        """Collect the devices' times."""
        if device.kind == DeviceKind.CPU:
            raise Unavailable("the run used no accelerator")
        devices = gpus if device.kind == DeviceKind.GPU else tpus
        if isinstance(devices, Unavailable):
            raise devices
        if devices.unit is not RoundUnit.STEP:
            raise Unavailable("the trace marks no steps in which to compare devices")
        if isinstance(devices, GpuUtilization):
            times = {gpu.name: (gpu.kernel_ms, gpu.collective_ms) for gpu in devices.gpus}
        else:
            times = {core.name: (core.parts[COMPUTE], core.parts[COLLECTIVE]) for core in devices.cores}
        most = max((computing for computing, _ in times.values()), default=0.0)
        times = {name: row for name, row in times.items() if row[0] > WORKS * most}  # the others are idle
        if len(times) < 2:  # noqa: PLR2004 - two to compare
            raise Unavailable("fewer than two accelerators of this host work in the traced steps")
        computing, exchanging = ({name: row[at] for name, row in times.items()} for at in (0, 1))
        return cls(computing, exchanging, device.busiest.name if device.busiest else "")

    @property
    def slowest(self) -> str:
        """The device that computes longest."""
        return max(self.computing_ms, key=lambda name: self.computing_ms[name])

    @property
    def lag_ms(self) -> float:
        """How much longer the slowest computes than the median of the others, in ms."""
        return self.computing_ms[self.slowest] - median(self._others(self.computing_ms))

    @property
    def gain_ms(self) -> float:
        """The time saved per step if the slowest were as fast as the second slowest, in ms."""
        return self.computing_ms[self.slowest] - max(self._others(self.computing_ms))

    @property
    def waited_ms(self) -> float:
        """How much longer the median of the others is in collectives than the slowest, in ms."""
        return median(self._others(self.exchanging_ms)) - self.exchanging_ms[self.slowest]

    def _others(self, times: dict[str, float]) -> list[float]:
        return [ms for name, ms in times.items() if name != self.slowest]
