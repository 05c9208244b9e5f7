"""The parts of a JSON report that comparisons use; docs/reference/json.md describes the fields.

A recording is compared by the JSON of its diagnosis, so that a recording and its report give the same figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfdoctor.comparison import AmountKind
from tfdoctor.diagnosis import Conditions
from tfdoctor.recording.field_types import Count, Positive
from tfdoctor.verdict import Location, Place


@dataclass(frozen=True, slots=True)
class SubjectData:
    """The run."""

    title: str = ""
    command: tuple[str, ...] = ()
    device: str = ""
    device_name: str = ""
    devices_used: int | None = None
    framework: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepData:
    """One traced step, ms."""

    total_ms: Positive
    typical: bool = True
    parts_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepsData:
    """The traced steps, ms."""

    missing: str = ""
    step_ms: Positive | None = None
    untraced_ms: Positive | None = None
    stalled: Count = 0
    rows: tuple[StepData, ...] = ()


@dataclass(frozen=True, slots=True)
class PhaseData:
    """A phase of the run."""

    phase: str
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class RunData:
    """The account of the run; reports of earlier versions have none."""

    whole: bool = True
    phases: tuple[PhaseData, ...] = ()
    step_count: Count = 0
    epoch_count: Count = 0


@dataclass(frozen=True, slots=True)
class RunSavingData:
    """What a finding's change saves of the run."""

    ms: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class SavingData:
    """The saving of a finding's change, or the time that the finding names."""

    ms_per_step: float
    share: float


@dataclass(frozen=True, slots=True)
class RemedyData:
    """A change of a finding."""

    action: str = ""
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class ResultData:
    """A rule and its outcome."""

    rule: str
    outcome: str
    topic: str = ""
    severity: str | None = None
    summary: str = ""
    saving: SavingData | None = None
    takes: SavingData | None = None
    run: RunSavingData | None = None
    remedies: tuple[RemedyData, ...] = ()
    at: Place | None = None  # where the finding is shown; reports of earlier versions lack it

    @property
    def amount(self) -> SavingData | None:
        """What the finding is about in ms per step: the saving, or the time that it names."""
        return self.saving or self.takes

    @property
    def kind(self) -> AmountKind | None:
        """What that time is."""
        if self.saving:
            return AmountKind.SAVING
        return AmountKind.COST if self.takes else None

    @property
    def changes(self) -> Location | None:
        """The first line to change, by which findings are matched."""
        return next((remedy.at for remedy in self.remedies if remedy.at), None)

    @property
    def place(self) -> Place | None:
        """Where the finding is shown."""
        line = self.changes
        return self.at or (Place(line.path, line.line) if line else None)


@dataclass(frozen=True, slots=True)
class EntryData:
    """A finding whose change is to be made, and the rules of those that show the same fault."""

    rule: str
    symptoms: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationData:
    """Compute time of an operation type in a layer, ms per step."""

    operation: str
    self_ms: float
    layer: str = ""


@dataclass(frozen=True, slots=True)
class StageData:
    """Work of a stage of the input pipeline, ms per step."""

    name: str
    self_ms: float
    parent: int | None = None
    written: str = ""


@dataclass(frozen=True, slots=True)
class ReportData:
    """A report. Unknown numbers are None; parts are empty where the step is unknown."""

    schema: int
    tfdoctor: str
    subject: SubjectData
    steps: StepsData
    results: tuple[ResultData, ...]
    breakdown_ms: Mapping[str, float | None] = field(default_factory=dict)
    untraced_breakdown_ms: Mapping[str, float | None] = field(default_factory=dict)
    operations: tuple[OperationData, ...] = ()
    pipeline: tuple[StageData, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    entries: tuple[EntryData, ...] = ()
    run: RunData | None = None

    @property
    def step_ms(self) -> float | None:
        """The step that the report is about, without the profiler's cost where that is much."""
        return self.steps.untraced_ms or self.steps.step_ms

    @property
    def parts_ms(self) -> Mapping[str, float]:
        """The parts of that step; {} where they are not known."""
        parts = self.untraced_breakdown_ms if self.steps.untraced_ms else self.breakdown_ms
        return {part: ms for part, ms in parts.items() if ms is not None}

    @property
    def findings(self) -> tuple[ResultData, ...]:
        """The findings about the run, the most severe first."""
        return tuple(
            result
            for result in self.results
            if result.outcome == "finding" and result.topic != "recording"
        )
