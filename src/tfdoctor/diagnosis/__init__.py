"""The diagnosis: everything a report shows, and the only input of renderers.

Times are milliseconds per training step unless a name says otherwise.
"""

# ruff: noqa: F403, F405 - its types stand in modules by their subjects, and are imported from here
from collections.abc import Mapping
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING

from tfdoctor.diagnosis.entries import Entry, entries_of
from tfdoctor.diagnosis.gates import *
from tfdoctor.diagnosis.hosts import *
from tfdoctor.diagnosis.results import *
from tfdoctor.diagnosis.savings import *
from tfdoctor.diagnosis.step import *
from tfdoctor.diagnosis.trials import *
from tfdoctor.diagnosis.work import *
from tfdoctor.terms.json_form import *
from tfdoctor.terms.kinds import DeviceKind, TrustLevel
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import MeasureForm

if TYPE_CHECKING:
    DeviceWord = DeviceKind | None
    Labelled = tuple[tuple[str, str], ...]
else:
    DeviceWord = form(
        DeviceKind,
        NoneType,
        read=lambda value: DeviceKind(value) if value != "" else None,
        write=lambda kind: kind.value if kind else "",
        schema={"enum": ["", *DeviceKind]},
    )
    Labelled = pairs("label", "value")


class Subject(Record, kw_only=True):
    """The run that was examined. Unknown text is "", unknown numbers are None."""

    title: str
    command: tuple[str, ...] = ()
    device: DeviceWord = None
    device_name: str = ""
    devices_used: Count | None = None
    devices_visible: Count | None = None
    framework: Mapping[str, str] = field(default_factory=dict)  # {"tensorflow": "2.21.0", ...}
    hosts: tuple[str, ...] = ()
    exit_code: Signed | None = None
    recorded: Sometimes[Moment] = ""  # when, ISO 8601 in UTC
    commit: Sometimes[str] = ""  # of the program in git
    committed: Sometimes[Moment] = ""  # when it was made, as `recorded`
    changed: Sometimes[bool | None] = None  # whether the program differed from the commit; None is unknown


class Conditions(Record, kw_only=True):
    """What a run used and under which conditions: what two runs must share to be compared. None is unknown."""

    cpu_model: str = ""
    cores_usable: Number | None = None  # by the run, in logical CPUs
    cores_run: Number | None = None  # used by the run, mean over the traced steps
    cores_other: Number | None = None  # used by other programs
    gpu_mhz: Number | None = None  # mean clock of the multiprocessors of busy GPUs
    batch_size: Count | None = None  # examples per step of all replicas, as recorded
    host_bytes: Amount | None = None  # the highest resident memory of the run
    device_bytes: Amount | None = None  # the most in use on one accelerator, by TensorFlow's allocator
    untraced_ms: Amount | None = None  # median step outside of the traced window
    matrix_unit: Number | None = None  # achieved share of the peak rate while the device is busy
    least_ms: Sometimes[Ms | None] = None  # that operations of a step need at the hardware's rates, where known
    open_ms: Sometimes[Ms] = 0.0  # what the other operations of the step take
    # Why a field is None, as a clause; "input": why a wait for input does not show.
    missing: Sometimes[Mapping[str, str]] = field(default_factory=dict)


class Trust(Record, kw_only=True):
    """How far the figures can be trusted, with reasons."""

    level: TrustLevel
    reasons: tuple[str, ...] = ()


class SecondOpinion(Record, kw_only=True):
    """The verdict of xprof on the same trace."""

    conclusion: str
    agrees: bool | None  # None: it has no opinion to compare
    why: str = ""


class Diagnosis(Record, kw_only=True, dict=True):
    """The result of examining one recording."""

    version: str = field(name="tfdoctor")  # of tfdoctor
    subject: Subject
    steps: StepsSummary
    trust: Trust
    results: tuple[ResultForm, ...]  # the most severe finding first; then remarks, healthy, not-applicable, errored
    together: Together | None = None
    run: RunAccount | None = None  # None: nothing is known of the run around the steps
    run_together: RunTogether | None = None
    energy: Sometimes[EnergyAccount | None] = None  # where a counter measured it
    xprof: SecondOpinion | None = None
    timeline: Timeline | None = None  # of a typical step
    profile: Profile = field(default_factory=Profile)  # of the step, by lines, operations and stages
    large: Sometimes[tuple[LargePlace, ...]] = ()  # places that no finding explains, the largest first
    pipeline: tuple[PipelineStage, ...] = ()
    pipeline_missing: str = ""
    operations: tuple[OperationRow, ...] = ()  # heaviest first
    operations_omitted: Count = 0  # lighter ones, which a page's copy of the report lacks
    operations_missing: str = ""
    rates: DeviceRates | None = None
    conditions: Conditions = field(default_factory=Conditions)
    model: tuple[MeasureForm, ...] = ()  # every number the step model uses
    machine: Labelled = ()  # ("cores the run may use", "2"), ...
    samples: tuple[MeasureForm, ...] = ()  # means over the traced window
    device_time: tuple[MeasureForm, ...] = ()  # parts of the accelerators' time in a step
    device_time_missing: str = ""  # why that is not known
    unrecorded: tuple[str, ...] = ()  # what could not be recorded, and why
    hosts: Sometimes[Hosts | None] = None  # when the job had several
    settings: Sometimes[Settings] = field(default_factory=Settings)
    order: Sometimes[Order | None] = None  # of findings that bear on each other
    accounts: tuple[Account, ...] = ()  # of the parts that take at least a tenth of the step
    trials: Sometimes[Trials | None] = None  # what `tfdoctor try` measured
    budgets: Sometimes[tuple[BudgetCheck, ...]] = ()  # in the order of the settings
    baseline: Sometimes[BaselineUse | None] = None  # None without one
    # The path in the repository of each file that findings name, as far as it is in one.
    repository: Sometimes[Mapping[str, str]] = field(default_factory=dict)
    # The hash of each line that findings name, "train.py:7", as far as the recording has it.
    lines: Sometimes[Mapping[str, str]] = field(default_factory=dict)
    link: Sometimes[WebAddress] = ""  # where the whole report can be read
    patch: Sometimes[Text] = b""  # the edits that go together, as a unified diff

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The findings by their causes, in the order of the results."""
        return entries_of(self)
