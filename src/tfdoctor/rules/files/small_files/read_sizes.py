"""How large the whole files are that the functions of the pipeline read, by the counters of the process."""

import numpy as np

from tfdoctor.facts.input.iterators import READING
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.trace import Trace


class ReadSizes(Record):
    """The mean size of a whole file in bytes at most: what else the process read counts as well."""

    most: float

    @classmethod
    def measure(cls, recording: Recording, trace: Trace) -> Self:
        """Divide the counters of the window by the calls of ReadFile in the trace.

        Raises:
            Unavailable: the counters were not recorded, no whole file was read, or the files were read in
                another way than by system calls (for example, ``ram://``).
        """
        window = recording.manifest.window if recording.manifest else None
        if window is None or window.read_bytes is None or window.read_calls is None:
            raise Unavailable(
                "the read counters of the process were not recorded; record with `tfdoctor profile` on Linux"
            )
        files = 0
        for line in trace.host.lines if trace.host else ():
            names = (kind.display_name for kind in line.types)
            kinds = [at for at, name in enumerate(names) if READING.fullmatch(name)]
            files += int(np.isin(line.kind, kinds).sum())
        if not files:
            raise Unavailable("the trace contains no operation that reads a whole file")
        if window.read_calls < files:
            raise Unavailable("the files were not read by system calls, so their size is unknown")
        return cls(window.read_bytes / files)
