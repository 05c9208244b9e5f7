"""Captures: each window that was traced, in a folder of its own; the best one is the recording.

TensorFlow names what it writes by the second and overwrites, so two captures never share a folder.
"""

from __future__ import annotations

from ..process.kept import io, os, time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from ..process.stack import Line
    from .steps import StepCounter

    class WindowRecord(TypedDict):
        """What the manifest says of a window."""

        warmup: int
        steps: int
        first_step: int
        calls: int
        source: str
        profiler: str
        at: Line | None
        started_unix_ns: int
        stopped_unix_ns: int | None
        contains_warmup: bool
        stopped_by: str
        read_bytes: int | None
        read_calls: int | None


TRACES = os.path.join("plugins", "profile", "*", "*.xplane.pb")

OURS, USERS = "tfdoctor", "user"  # Whose profiler recorded a window
IDLE_S = 10.0  # A loop that has not stepped for so long, and for so many of its longest steps, was left

IDLE_STEPS = 10

# What all threads of the process have read since it began, as Linux counts it; files, pipes and sockets alike.
COUNTERS = "/proc/self/io"


class Capture:
    """One traced window: its folder, the steps it has seen and the record of it in the manifest."""

    def __init__(self, out: str, number: int, source: StepCounter | None, warmup: int) -> None:
        self.out = out
        self.folder = os.path.join(out, f"capture{number}")
        self.source = source  # None while a window by time has met no step
        self.warmup = warmup
        self.calls = 0
        self.known, self.known_at, self.longest = 0, time.monotonic(), 0.0  # what `idle` saw last
        self.discarded: list[int] = []  # numbers of markers that were no steps
        self.start = source.seen if source else 0
        self.record: WindowRecord = {
            "warmup": 0,
            "steps": 0,
            "first_step": 0,
            "calls": 0,
            "source": source.kind.value if source else "time",
            "profiler": OURS,
            "at": source.at if source else None,
            "started_unix_ns": time.time_ns(),
            "stopped_unix_ns": None,
            "contains_warmup": False,
            "stopped_by": "unfinished",
            "read_bytes": None,
            "read_calls": None,
        }
        self.read_before = read_so_far()

    def begin(self, source: StepCounter, number: int) -> None:
        """The first traced step of a source is known."""
        self.source, self.start = source, number
        self.record["warmup"] = self.record["first_step"] = number
        self.record["source"], self.record["at"] = source.kind.value, source.at
        self.record["contains_warmup"] = number < self.warmup

    def idle(self, now: float) -> bool:
        """Say whether its loop was left, as far as the time since the last look tells that saw a new step."""
        since = now - self.known_at
        if self.calls == self.known:
            return since > max(IDLE_S, IDLE_STEPS * self.longest)
        if self.known:
            self.longest = max(self.longest, since)
        self.known, self.known_at = self.calls, now
        return False

    def retract(self, number: int, *, measured: bool) -> None:
        """A marker of this number stood for no step."""
        self.calls -= measured
        self.discarded.append(number)

    def drop_last(self) -> None:
        """The end of the last step was not seen: what came after the loop is no part of it."""
        if self.calls > 1 and self.source is not None:
            self.discarded.append(self.source.seen - 1 + self.source.discarded)

    def count_reads(self) -> None:
        """Note what the process has read since the capture began."""
        now = read_so_far()
        if self.read_before is not None and now is not None:
            self.record["read_bytes"] = now[0] - self.read_before[0]
            self.record["read_calls"] = now[1] - self.read_before[1]

    def end(self, reached: int, reason: str, stopped_ns: int) -> None:
        """The window is closed at a step: nothing more comes."""
        self.record["steps"] = max(0, reached - self.start)
        self.record["calls"] = self.calls
        self.record["stopped_by"] = reason
        self.record["stopped_unix_ns"] = stopped_ns

    @property
    def good(self) -> tuple[int, int]:
        """How many steps it has after the warm-up, and how many in all."""
        last = self.start + self.record["steps"]
        return max(0, last - max(self.start, self.warmup)), self.record["steps"]

    def traced(self) -> bool:
        """Say whether the profiler left a trace."""
        return bool(_traces(self.folder))

    def keep(self) -> None:
        """Make the trace of this capture the recording's, instead of an earlier one."""
        import shutil

        final = os.path.join(self.out, "plugins")
        shutil.rmtree(final, ignore_errors=True)
        os.replace(os.path.join(self.folder, "plugins"), final)
        self.drop()

    def drop(self) -> None:
        """Remove the folder of this capture."""
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)

    def adopt(self, logdir: str, since: float) -> None:
        """Copy the newest trace of the user's own profiler, written since a time in seconds."""
        import shutil

        written = [path for path in _traces(logdir) if os.stat(path).st_mtime >= since]
        if not written:
            return
        newest = max(written, key=lambda path: os.stat(path).st_mtime)
        run = os.path.basename(os.path.dirname(newest))
        folder = os.path.join(self.folder, "plugins", "profile", run)
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(newest, os.path.join(folder, os.path.basename(newest)))


def _traces(folder: str) -> list[str]:
    import glob

    return glob.glob(os.path.join(glob.escape(folder), TRACES))


def read_so_far() -> tuple[int, int] | None:
    """Return the bytes and the calls of all reads so far; None where the system does not count them."""
    try:
        with io.open(COUNTERS, encoding="ascii") as lines:
            values = dict(line.split(":", 1) for line in lines)
        return int(values["rchar"]), int(values["syscr"])
    except (OSError, KeyError, ValueError):  # not Linux, or a kernel without these counters
        return None
