"""What the process read while the steps were traced, by its counters of system calls."""

from tfdoctor.facts.input.iterators import READING
from tfdoctor.facts.kit import *


class FileReads(Record):
    """Bytes and system calls that read in the traced window, and the whole files that functions read meanwhile.

    The counters hold what else the process reads, and what the kernel had in memory; clients of object stores
    receive from sockets, which they leave out.
    """

    nbytes: int
    calls: int
    seconds: float = 0.0  # 0 is unknown
    files: int = 0

    @classmethod
    def measure(cls, recording: Recording, trace: Trace) -> Self:
        """Take the counters of the window, and count the calls of ReadFile in the trace.

        Raises:
            Unavailable: the counters were not recorded.
        """
        window = recording.manifest.window if recording.manifest else None
        if window is None or window.read_bytes is None or window.read_calls is None:
            raise Unavailable(
                "the read counters of the process were not recorded; record with `tfdoctor profile` on Linux"
            )
        files = 0
        for line in trace.host.lines if trace.host else ():
            kinds = [at for at, kind in enumerate(line.types) if READING.fullmatch(kind.display_name)]
            files += int(np.isin(line.kind, kinds).sum())
        seconds = ((window.stopped_unix_ns or 0) - window.started_unix_ns) / 1e9
        return cls(window.read_bytes, window.read_calls, max(0.0, seconds), files)
