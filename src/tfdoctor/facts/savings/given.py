"""What a diagnosis is given and does not measure: what the user says of costs, and what findings explain."""

from tfdoctor.facts.kit import *
from tfdoctor.recording.program import ProgramRecord


class Price(Record):
    """US dollars per hour for all machines of the job, given by the user: they differ by contract and day."""

    usd_per_hour: float

    ABSENT: ClassVar = "no price was given; pass the price of the machines with --usd-per-hour"

    def of_ms(self, ms: float) -> float:
        """Return the cost of a time, in dollars."""
        return self.usd_per_hour * ms / 3_600_000


J_PER_KWH = 3.6e6


class EnergyPrices(Record):
    """US dollars and grams of CO2 for a kWh, where the user gave them: they differ by contract, grid and hour."""

    usd_per_kwh: float | None = None
    gco2_per_kwh: float | None = None

    ABSENT: ClassVar = "no price of energy was given; pass it with --usd-per-kwh or --gco2-per-kwh"

    def usd(self, joules: float) -> float | None:
        """Return the cost of an energy, in dollars."""
        return None if self.usd_per_kwh is None else self.usd_per_kwh * joules / J_PER_KWH

    def gco2(self, joules: float) -> float | None:
        """Return the greenhouse gases of an energy, in grams of CO2."""
        return None if self.gco2_per_kwh is None else self.gco2_per_kwh * joules / J_PER_KWH


class Epoch(Record):
    """How many batches the dataset that feeds the training has."""

    steps: int

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read the cardinality of the feeding dataset.

        Raises:
            Unavailable: it was not recorded, is unknown or infinite.
        """
        record = recording.program or ProgramRecord()
        steps = next((dataset.cardinality for dataset in record.datasets if dataset.id == record.feeds), None)
        if steps is None or steps <= 0:
            raise Unavailable("the number of steps per epoch was not recorded")
        return cls(steps)


SHARE = 0.10  # Share of the step from which a part needs an explanation


class Unexplained(Record):
    """The time of a step that no specific finding names, which the general rules are given.

    ``parts_ms`` maps each part of the breakdown (see Breakdown) to the ms per training step that no
    finding names, as traced; only parts of which at least ``SHARE`` of the step is unexplained. ``subjects`` are
    the subjects of the specific findings' effects (operations, layers, datasets, StepWork), so that the general
    rules do not repeat them.
    """

    parts_ms: Mapping[str, float] = field(default_factory=dict)
    subjects: frozenset[str] = frozenset()

    ABSENT: ClassVar = "the parts of a step are unknown, so it is unknown which of them findings explain"
