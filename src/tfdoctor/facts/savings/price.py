"""What the machines cost per hour, as given by the user, and how many steps an epoch has."""

from dataclasses import dataclass
from typing import ClassVar, Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per hour for all machines of the job, given by the user: they differ by contract and day."""

    usd_per_hour: float

    ABSENT: ClassVar = "no price was given; pass the price of the machines with --usd-per-hour"

    def of_ms(self, ms: float) -> float:
        """Return the cost of a time, in dollars."""
        return self.usd_per_hour * ms / 3_600_000


@dataclass(frozen=True, slots=True)
class Epoch:
    """How many batches the dataset that feeds the training has."""

    steps: int

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read the cardinality of the feeding dataset.

        Raises:
            Unavailable: it was not recorded, is unknown or infinite.
        """
        record = recording.program or ProgramRecord()
        sizes = [dataset.cardinality for dataset in record.datasets if dataset.id == record.feeds]
        steps = sizes[0] if sizes else None
        if steps is None or steps <= 0:
            raise Unavailable("the number of steps per epoch was not recorded")
        return cls(steps)
