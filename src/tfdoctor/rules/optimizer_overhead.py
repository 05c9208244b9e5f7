from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.compute_part import ComputePart
from tfdoctor.facts.operations.operation_time import OperationRows
from tfdoctor.facts.operations.optimizer_work import OptimizerWork

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=Healthy(summary="XLA compiles the optimizer's update on a TPU")),)
BY_HAND = "fewer and larger variables change the model"


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a small operation, and how many are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in the optimizer's small operations that is reported"
    )
    values: float = limit(
        10_000.0,
        "Largest number of values in the tensors of a small operation: 40 kB of float32, which fits in every cache",
    )
    each_ms: float = limit(
        0.005,
        "Longest call, in ms, that is small when the tensors' size is unknown: an empty GPU kernel takes 2 to 3 us",
    )
    on_cpu: float = limit(
        1000.0,
        "Smallest number of small operations per step that is reported on a CPU: including scheduling they "
        "take about 2 ms there, and a network of 30 layers has fewer",
    )


def check(
    work: OptimizerWork, operations: Operations, hardware: Hardware, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Add up the optimizer's small operations."""
    if not work.rows:
        return NotApplicable(reason=UNNAMED)
    small = Small(work.small(limits.values, limits.each_ms), operations)
    evidence = (
        *small.part.measures("in the optimizer's small operations", limits.share),
        Measure("small optimizer operations per step", count(small.calls)),
        Measure("time in all optimizer operations per step", ms(work.ms)),
    )
    on_cpu = hardware.kind == DeviceKind.CPU
    if small.part.share < limits.share or (on_cpu and small.calls < limits.on_cpu):
        summary = f"The optimizer's operations on small tensors take {small.part}"
        return Healthy(summary=summary, evidence=evidence)
    effects = tuple(row.scaled(0.0, Bound.AT_MOST) for row in small.rows)
    fewer = Remedy("Use fewer and larger variables", CODE["fewer"], small.at)
    fused = Remedy("Compile the step so that XLA fuses the update", FUSE, small.at, "jit-compile")
    return Finding(
        summary=f"The optimizer runs {counted(round(small.calls), 'small operation')}: {small.part}",
        evidence=evidence,
        remedies=(fewer,) if on_cpu else (fused, fewer),
        effects=(*effects, small.scheduling(breakdown)) if on_cpu else effects,
    )


@dataclass(frozen=True, slots=True)
class Small(OperationRows):
    """The optimizer's operations on small tensors."""

    rows: tuple[OperationTime, ...]
    operations: Operations  # of the whole step

    @property
    def part(self) -> ComputePart:
        """Their part of the compute time."""
        return self.operations.part(sum(row.ms for row in self.rows))

    @property
    def at(self) -> Location | None:
        """The first known line of one."""
        return next((row.at for row in self.rows if row.at), None)

    def scheduling(self, breakdown: Breakdown) -> Effect:
        """Return the time between these operations on a CPU: their part, by number, of the host's time."""
        part = self.calls / sum(row.calls for row in self.operations.rows)
        between = ms(part * breakdown[Stage.HOST])
        return Effect(Stage.HOST, 0.0, StepWork.OPTIMIZER, between, bound=Bound.AT_MOST)


UNNAMED = "the trace names no operation of an optimizer: XLA compiled them, or they are outside a Keras optimizer"


FUSE = "model.compile(optimizer, loss, jit_compile=True)"
