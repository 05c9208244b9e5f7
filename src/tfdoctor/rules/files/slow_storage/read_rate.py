"""How many bytes per second the process read while the steps were traced."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class ReadRate(Record):
    """Bytes and calls per second of all system calls that read.

    They hold what else the process reads, and what the kernel had in memory; clients of object stores receive from
    sockets, which these counters leave out.
    """

    bytes_per_s: float
    bytes_per_call: float

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Divide the counters of the window by its length.

        Raises:
            Unavailable: they were not recorded, or nothing was read.
        """
        window = recording.manifest.window if recording.manifest else None
        if window is None or not window.read_bytes or not window.read_calls:
            raise Unavailable("the bytes that the process read were not recorded")
        seconds = ((window.stopped_unix_ns or 0) - window.started_unix_ns) / 1e9
        if seconds <= 0:
            raise Unavailable("the length of the traced window was not recorded")
        return cls(window.read_bytes / seconds, window.read_bytes / window.read_calls)
