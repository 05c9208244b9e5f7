"""The diagnosis: everything a report shows, and the only input of renderers.

Times are milliseconds per training step unless a name says otherwise.
"""

from collections.abc import Mapping
from typing import Annotated

from tfdoctor.diagnosis.energy import EnergyAccount, EnergyAmount, EnergyRow, EnergySaving
from tfdoctor.diagnosis.gates import BaselineUse, BudgetCheck, BudgetState, KnownFinding, LimitSet, Off, Settings
from tfdoctor.diagnosis.hosts import HostFinding, HostRow, Hosts
from tfdoctor.diagnosis.order import Order, Relation, Relationship, Turn
from tfdoctor.diagnosis.results import Edit, Replacement, Result
from tfdoctor.diagnosis.run import LongStepTime, PhaseLine, PhaseRow, PhaseSegment, RunAccount
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving, Takes, Together
from tfdoctor.diagnosis.step import (
    PARTS,
    Account,
    AccountState,
    Parts,
    Seen,
    SlowStepsSummary,
    StepRow,
    StepsSummary,
    Timeline,
    TimelineBar,
    TimelineLane,
)
from tfdoctor.diagnosis.trials import (
    BROKEN,
    Beside,
    Difference,
    Measured,
    PartTrial,
    TrainingMatch,
    TrainingState,
    Trial,
    Trials,
)
from tfdoctor.diagnosis.work import (
    DeviceRates,
    OperationRow,
    PipelineStage,
    Profile,
    ProfileRow,
    PythonPart,
    WorkKind,
)
from tfdoctor.terms.json_form import (
    Amount,
    AsText,
    Moment,
    Ms,
    Named,
    OmitDefault,
    OrBlank,
    Pairs,
    Signed,
    WebAddress,
)
from tfdoctor.terms.kinds import DeviceKind, TrustLevel
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Measure

__all__ = [
    "BROKEN",
    "PARTS",
    "Account",
    "AccountState",
    "BaselineUse",
    "Beside",
    "BudgetCheck",
    "BudgetState",
    "Conditions",
    "DeviceRates",
    "Diagnosis",
    "Difference",
    "Edit",
    "EnergyAccount",
    "EnergyAmount",
    "EnergyRow",
    "EnergySaving",
    "HostFinding",
    "HostRow",
    "Hosts",
    "KnownFinding",
    "LimitSet",
    "LongStepTime",
    "Measured",
    "Off",
    "OperationRow",
    "Order",
    "PartTrial",
    "Parts",
    "PhaseLine",
    "PhaseRow",
    "PhaseSegment",
    "PipelineStage",
    "Profile",
    "ProfileRow",
    "PythonPart",
    "Relation",
    "Relationship",
    "Replacement",
    "Result",
    "RunAccount",
    "RunSaving",
    "RunTogether",
    "Saving",
    "SecondOpinion",
    "Seen",
    "Settings",
    "SlowStepsSummary",
    "StepRow",
    "StepsSummary",
    "Subject",
    "Takes",
    "Timeline",
    "TimelineBar",
    "TimelineLane",
    "Together",
    "TrainingMatch",
    "TrainingState",
    "Trial",
    "Trials",
    "Trust",
    "Turn",
    "WorkKind",
]


class Subject(Record, kw_only=True):
    """The run that was examined. Unknown text is "", unknown numbers are None."""

    title: str
    command: tuple[str, ...] = ()
    device: Annotated[DeviceKind | None, OrBlank(DeviceKind)] = None
    device_name: str = ""
    devices_used: int | None = None
    devices_visible: int | None = None
    framework: Mapping[str, str] = field(default_factory=dict)  # {"tensorflow": "2.21.0", ...}
    hosts: tuple[str, ...] = ()
    exit_code: Signed | None = None
    recorded: Annotated[Moment, OmitDefault()] = ""  # when, ISO 8601 in UTC
    commit: Annotated[str, OmitDefault()] = ""  # of the program in git
    committed: Annotated[Moment, OmitDefault()] = ""  # when it was made, as `recorded`
    changed: Annotated[bool | None, OmitDefault()] = (
        None  # whether the program differed from the commit; None is unknown
    )


class Conditions(Record, kw_only=True):
    """What a run used and under which conditions: what two runs must share to be compared. None is unknown."""

    cpu_model: str = ""
    cores_usable: float | None = None  # by the run, in logical CPUs
    cores_run: float | None = None  # used by the run, mean over the traced steps
    cores_other: float | None = None  # used by other programs
    gpu_mhz: float | None = None  # mean clock of the multiprocessors of busy GPUs
    batch_size: int | None = None  # examples per step of all replicas, as recorded
    host_bytes: Amount | None = None  # the highest resident memory of the run
    device_bytes: Amount | None = None  # the most in use on one accelerator, by TensorFlow's allocator
    untraced_ms: Amount | None = None  # median step outside of the traced window
    matrix_unit: float | None = None  # achieved share of the peak rate while the device is busy
    least_ms: Annotated[Ms | None, OmitDefault()] = (
        None  # that operations of a step need at the hardware's rates, of those for which it is known
    )
    open_ms: Annotated[Ms, OmitDefault()] = 0.0  # what the other operations of the step take
    missing: Annotated[Mapping[str, str], OmitDefault()] = field(
        default_factory=dict
    )  # why a field is None, as a clause; "input": why a wait for input does not show


class Trust(Record, kw_only=True):
    """How far the figures can be trusted, with reasons."""

    level: TrustLevel
    reasons: tuple[str, ...] = ()


class SecondOpinion(Record, kw_only=True):
    """The verdict of xprof on the same trace."""

    conclusion: str
    agrees: bool | None  # None: it has no opinion to compare
    why: str = ""


class Diagnosis(Record, kw_only=True):
    """The result of examining one recording."""

    version: Annotated[str, Named("tfdoctor")]  # of tfdoctor
    subject: Subject
    steps: StepsSummary
    trust: Trust
    results: tuple[Result, ...]  # the most severe finding first; then remarks, healthy, not-applicable, errored
    together: Together | None = None
    run: RunAccount | None = None  # None: nothing is known of the run around the steps
    run_together: RunTogether | None = None
    energy: Annotated[EnergyAccount | None, OmitDefault()] = None  # where a counter measured it
    xprof: SecondOpinion | None = None
    timeline: Timeline | None = None  # of a typical step
    profile: Profile = field(default_factory=Profile)  # of the step, by lines, operations and stages
    pipeline: tuple[PipelineStage, ...] = ()
    pipeline_missing: str = ""
    operations: tuple[OperationRow, ...] = ()  # heaviest first
    operations_omitted: int = 0  # lighter ones, which a page's copy of the report lacks
    operations_missing: str = ""
    rates: DeviceRates | None = None
    conditions: Conditions = field(default_factory=Conditions)
    model: tuple[Measure, ...] = ()  # every number the step model uses
    machine: Annotated[
        tuple[tuple[str, str], ...], Pairs("label", "value")
    ] = ()  # ("cores the run may use", "2"), ...
    samples: tuple[Measure, ...] = ()  # means over the traced window
    device_time: tuple[Measure, ...] = ()  # parts of the accelerators' time in a step
    device_time_missing: str = ""  # why that is not known
    unrecorded: tuple[str, ...] = ()  # what could not be recorded, and why
    hosts: Annotated[Hosts | None, OmitDefault()] = None  # when the job had several
    settings: Annotated[Settings, OmitDefault()] = field(default_factory=Settings)
    order: Annotated[Order | None, OmitDefault()] = None  # of findings that bear on each other
    accounts: tuple[Account, ...] = ()  # of the parts that take at least a tenth of the step
    trials: Annotated[Trials | None, OmitDefault()] = None  # what `tfdoctor try` measured
    budgets: Annotated[tuple[BudgetCheck, ...], OmitDefault()] = ()  # in the order of the settings
    baseline: Annotated[BaselineUse | None, OmitDefault()] = None  # None without one
    repository: Annotated[Mapping[str, str], OmitDefault()] = field(
        default_factory=dict
    )  # the path in the repository of each file that findings name, as far as it is in one
    lines: Annotated[Mapping[str, str], OmitDefault()] = field(
        default_factory=dict
    )  # the hash of each line that findings name, "train.py:7", as far as the recording has it
    link: Annotated[WebAddress, OmitDefault()] = ""  # where the whole report can be read
    patch: Annotated[bytes, AsText(), OmitDefault()] = b""  # the edits that go together, as a unified diff
