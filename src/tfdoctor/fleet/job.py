"""One recording to examine: what a worker needs to know, and what it returns. Both are sent between machines."""

from tfdoctor import __version__
from tfdoctor.diagnosis.fleet_report import Failure, FleetRun
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.rulebook.config import Config
from tfdoctor.terms.record import Record


class RecordingJob(Record, kw_only=True):
    """A recording to examine, and how."""

    found: FoundRecording
    config: Config
    settings: str  # SHA-256 of what the diagnosis depends on besides the files
    timeout_s: float
    memory_bytes: int | None = None  # None: a fair part of the machine that the worker runs on
    scrubbed: bool = False
    page: bool = True  # write the HTML report
    known: tuple[str, ...] = ()  # digests that need no diagnosis again
    version: str = __version__  # of tfdoctor, where the job was made

    def failed(self, failure: Failure, error: str, digest: str = "") -> "ExaminedRecording":
        """Return the row of a recording that has no diagnosis."""
        return ExaminedRecording(
            FleetRun(
                place=self.found.shown,
                key=self.found.key,
                stamp=self.found.stamp,
                nbytes=self.found.nbytes,
                digest=digest,
                settings=self.settings,
                failure=failure.value,
                error=error,
            )
        )


class ExaminedRecording(Record):
    """The row of a recording, and its page; of one whose digest is known only place and digest count."""

    run: FleetRun
    page: str = ""
    known: bool = False
