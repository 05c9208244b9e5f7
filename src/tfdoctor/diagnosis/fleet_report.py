"""What `tfdoctor fleet` found in many recordings: a row for each, and what they have in common.

Times are milliseconds per training step unless a name says otherwise. A device is a GPU or a TPU core; of a run on
CPUs, a machine.
"""

from collections.abc import Mapping
from enum import StrEnum

from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound


class Failure(StrEnum):
    """Why a recording has no diagnosis."""

    UNREADABLE = "unreadable"  # no recording, or a damaged one
    UNREACHABLE = "unreachable"  # its files could not be fetched
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"  # the process that read it ended


class FleetFinding(Record):
    """A finding of a run: its cause, without the findings that show the same fault."""

    rule: str
    severity: str | None = None
    share: float | None = None  # of the step that its change saves alone; None where that is unknown
    bound: str = Bound.EXPECTED.value
    summary: str = ""
    at: str = ""  # "train.py:14"
    run_share: float | None = None  # the same of the whole run


class FleetCopy(Record):
    """Another place with the same files."""

    place: str
    key: str
    stamp: str


class FleetRun(Record, kw_only=True):
    """One recording. Unknown text is "", unknown numbers are None."""

    place: str  # its path or URL
    key: str  # SHA-256 of the place, by which it is found again
    stamp: str = ""  # of the sizes and times of its files: equal where none has changed
    nbytes: int = 0
    digest: str = ""  # SHA-256 of the files
    settings: str = ""  # SHA-256 of tfdoctor's version, its rules and their settings
    failure: str = ""  # of Failure, "" without one
    error: str = ""
    recorded: str = ""  # when, ISO 8601 in UTC
    job: str = ""  # the name of its program, or of its place
    script: str = ""  # "project/train.py"
    user: str = ""
    host: str = ""
    device: str = ""  # of DeviceKind
    device_name: str = ""
    devices: int | None = None  # used by all hosts of the run
    steps: int = 0  # traced
    hours: float | None = None  # of training: all its steps, or from the traced ones to its end
    step_ms: float | None = None
    parts_ms: Mapping[str, float] | None = None  # keys of PARTS
    trust: str = ""
    missing: str = ""  # why there is no step
    saving_share: float | None = None  # of the step, by all changes together; 0 where nothing is to change
    saving_bound: str = Bound.EXPECTED.value
    findings: tuple[FleetFinding, ...] = ()
    report: str = ""  # its page, beside this table
    copies: tuple[FleetCopy, ...] = ()
    run_hours: float | None = None  # of the whole process, from its start to its end
    run_saving_share: float | None = None  # of the whole run, as `saving_share` is of the step
    run_saving_bound: str = Bound.EXPECTED.value
    wasted_usd_per_hour: float | None = None  # None where no price was given for its devices
    wasted_usd: float | None = None

    @property
    def on(self) -> str:
        """The name of its devices, or of their kind."""
        return self.device_name or self.device

    @property
    def is_whole(self) -> bool:
        """Whether what it wastes is known of the whole run, and not of its training steps alone."""
        return self.run_hours is not None and self.run_saving_share is not None

    @property
    def lost_share(self) -> float | None:
        """The share of its time that all changes together save: of the whole run where that is known."""
        return self.run_saving_share if self.is_whole else self.saving_share

    @property
    def lost_hours(self) -> float | None:
        """The hours that it is the share of."""
        return self.run_hours if self.is_whole else self.hours

    @property
    def wasted_devices(self) -> float | None:
        """Devices that do nothing useful while it runs: device-hours per hour."""
        return product(self.lost_share, self.devices)

    @property
    def device_hours(self) -> float | None:
        """Devices times its hours, of training or of the whole run."""
        return product(self.devices, self.lost_hours)

    @property
    def wasted_device_hours(self) -> float | None:
        """The part of its device-hours that all changes together would save."""
        return product(self.device_hours, self.lost_share)

    @property
    def at_most(self) -> bool:
        """Whether what it wastes is a ceiling."""
        return (self.run_saving_bound if self.is_whole else self.saving_bound) == Bound.AT_MOST.value


def product(one: float | None, other: float | None) -> float | None:
    """Return a product; None where a factor is unknown."""
    return None if one is None or other is None else one * other


class Waste(Record, kw_only=True):
    """What several runs waste. Hours are of runs whose length is known, devices of all."""

    runs: int = 0
    devices: float = 0.0  # device-hours per hour of training
    device_hours: float = 0.0
    usd_per_hour: float | None = None  # None where no price was given for any of them
    usd: float | None = None
    at_most: bool = False  # for at least one of them it is a ceiling
    hours_at_most: bool = False  # for at least one of those whose length is known


class FleetFault(Record, kw_only=True):
    """A fault, and what it costs over all runs that have it."""

    rule: str
    title: str
    waste: Waste
    unknown: int = 0  # runs that have it and for which the saving is unknown
    worst: str = ""  # place of the run that loses most by it


class FleetReport(Record, kw_only=True):
    """All recordings of a fleet; the only input of its renderings."""

    version: str  # of tfdoctor
    runs: tuple[FleetRun, ...]  # diagnosed, those that waste most first
    failed: tuple[FleetRun, ...]
    waste: Waste
    devices: int  # of the runs whose saving is known
    device_hours: float  # of those among them whose length is known
    timed: int  # how many these are
    faults: tuple[FleetFault, ...]  # the most expensive first
    # Of each program on each kind of device, those whose step is known, in the order of time; the most runs first.
    jobs: tuple[tuple[FleetRun, ...], ...]
    priced: bool  # whether a price was given
    unpriced: int  # runs whose device has none
    by_hours: bool  # runs are ranked by device-hours, which nearly all have; otherwise by devices
    left: int = 0  # recordings that were not examined, because the command was interrupted
