"""How long the run's tasks waited for a processor while the steps were traced."""

from tfdoctor.facts.machine.samples import counter_rate
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class CpuPressure(Record):
    """Counters of the kernel over the traced window, or the samples around it; None is unknown.

    ``throttled`` is the time for which the control group's quota stopped the run, per time that
    passed; each processor's queue counts, so it may exceed 1. ``waiting`` (0 to 1) is the share of the
    time in which some task of the machine was ready to run and had no processor (PSI, "some").
    """

    throttled: float | None = None
    waiting: float | None = None
    quota: float | None = None  # of the control group, in cores

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Take the counters' differences from before the window to after it.

        Raises:
            Unavailable: the host was not sampled, or only once.
        """
        rows = [row for row in recording.samples if row.host]
        window = recording.manifest.window if recording.manifest else None
        if window and window.stopped_unix_ns:  # from the last sample before it to the first after it
            before = [row.unix_ns for row in rows if row.unix_ns <= window.started_unix_ns]
            after = [row.unix_ns for row in rows if row.unix_ns >= window.stopped_unix_ns]
            start, stop = [window.started_unix_ns, *before][-1], [*after, window.stopped_unix_ns][0]
            rows = [row for row in rows if start <= row.unix_ns <= stop]
        counts = [(row.unix_ns, row.host) for row in rows if row.host]
        if len(counts) < 2:  # noqa: PLR2004 - a difference needs two
            raise Unavailable("the CPU was sampled less than twice; record with `tfdoctor profile`")
        throttled = counter_rate((at, host.throttled_us) for at, host in counts)
        waiting = counter_rate((at, host.psi_cpu_us) for at, host in counts)
        return cls(throttled, waiting, counts[-1][1].quota_cores)
