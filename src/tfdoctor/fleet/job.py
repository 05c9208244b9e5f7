"""One recording to examine: what a worker needs to know, and what it returns. Both are sent between machines."""

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.rulebook.config import Config
from tfdoctor.terms.record import Record


class FleetPlan(Record, kw_only=True):
    """How to examine recordings, and where."""

    config: Config
    settings: str  # SHA-256 of what the diagnosis depends on besides the files: see `settings_of`
    timeout_s: float
    memory_bytes: int | None = None  # None: a fair part of the machine that the worker runs on
    scrubbed: bool = False
    pages: bool = True  # write the HTML reports
    scheduler: str = ""  # "": this machine
    workers: int = 1  # of this machine
    local: bool = True  # the table is in a folder of this machine and not at a URL: so are its pages


class RecordingJob(Record, kw_only=True):
    """A recording to examine, and how."""

    found: FoundRecording
    plan: FleetPlan
    known: tuple[str, ...] = ()  # digests that need no diagnosis again
    version: str = __version__  # of tfdoctor, where the job was made

    def row(self, digest: str = "", failure: str = "", error: str = "") -> FleetRun:
        """Return the row of the recording, without what its diagnosis says."""
        return FleetRun(
            place=self.found.shown,
            key=self.found.key,
            stamp=self.found.stamp,
            nbytes=self.found.nbytes,
            digest=digest,
            settings=self.plan.settings,
            failure=failure,
            error=error,
        )

    def failed(self, failure: Failure, error: str, digest: str = "") -> "ExaminedRecording":
        """Return the row of a recording that has no diagnosis."""
        return ExaminedRecording(self.row(digest, failure.value, error))


class ExaminedRecording(Record):
    """The row of a recording, and its page; of one whose digest is known only place and digest count."""

    run: FleetRun
    page: str = ""
    known: bool = False
