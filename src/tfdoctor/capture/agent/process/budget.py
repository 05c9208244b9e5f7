"""What tfdoctor may cost a run, and what it has cost: decided here alone.

Most of a trace's cost comes at its end, where the profiler sorts and writes what each thread has noted: 0.02 to
0.045 s for each MB of it, be it of convolutions, an LSTM, a loop of 400 small operations, a pipeline that maps
single elements or eager operations (TensorFlow 2.21 on two cores). Until a first window has shown it, the most is
assumed, and that all memory the program takes meanwhile is the profiler's. Where the C library does not tell the
memory in use, the CPU time of the window stands for it, of which no bound is known.
"""

from __future__ import annotations

from .kept import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


SHARE = 0.1  # Of the run so far, without tfdoctor's own work, that this may take
# Of fewer traced calls no saving is computed: these may take more of the run so far, which goes on.
FEWEST_CALLS, FEWEST_SHARE = 5, 0.25
LEAST_S = 0.5  # What it may take of the shortest run, all in all
# What the profiler may take to start and to stop; of a run of less than 50 s it is SHARE until then, or LEAST_S. A
# smaller window follows one where it took longer.
LONGEST_S = 5.0
LEAST_OPEN_S = 0.25  # What a window may cost beside its start, which is paid for by then
STOP_PER_MB_S = 0.045  # Seconds that the profiler's stop takes for each MB that it has noted, at most
STOP_PER_CPU_S = 0.65  # The same for a second of CPU time: 0.01 for convolutions, 7 for a loop of small calls
# Seconds for each of CPU time by which the profiler delays steps, at most (0.3 in a pipeline of single elements):
# what steps wait for, such as input or other programs, is not its cost.
SLOWED_PER_CPU_S = 0.5


def allowed(run_s: float, spent_s: float) -> float:
    """Return the seconds that may be spent now, where the run took so many and tfdoctor's work so many of these."""
    return max(LEAST_S, SHARE * (run_s - spent_s)) - spent_s


def more_calls(calls: int, cost_s: float, run_s: float, spent_s: float) -> int:
    """Return after how many more traced calls to look at the window's cost again; 0 closes it.

    It costs ``cost_s`` if it is closed after so many ``calls``, beside what was spent.
    """
    if calls < FEWEST_CALLS:
        most = max(LEAST_S, FEWEST_SHARE * (run_s - spent_s)) - spent_s
        return FEWEST_CALLS - calls if cost_s * FEWEST_CALLS / calls <= most else 0
    most = max(LEAST_OPEN_S, allowed(run_s, spent_s))
    if cost_s >= most:
        return 0
    return max(1, int(calls * (most / cost_s - 1) / 2)) if cost_s else calls


def affordable_at(cost_s: float, spent_s: float) -> float:
    """Return how long the run must have taken before so many more seconds may be spent."""
    return 0.0 if spent_s + cost_s <= LEAST_S else spent_s + (spent_s + cost_s) / SHARE


class CaptureBudget:
    """The account of a recording: what its windows and its description of the program have cost."""

    def __init__(self) -> None:
        self.run_s: Callable[[], float] = time.process_time  # seconds since the run began
        self.in_use: Callable[[], float] | None = None  # MB
        self.clear()

    def clear(self) -> None:
        """Begin another recording."""
        self.windows: list[dict[str, Any]] = []  # `tfdoctor.recording.agent.WindowCost` reads them
        self.described_s = 0.0
        self.stop_per_cpu, self.stop_per_mb = STOP_PER_CPU_S, STOP_PER_MB_S
        self.noted_mb = 0.0  # in the open window
        self.usual_s: float | None = None  # of a step in the open window, without the profiler
        self.most_steps: int | None = None  # of the next window, where the profiler took too long

    @property
    def spent_s(self) -> float:
        """All that was spent."""
        spent_s: float = sum(cost["start_s"] + cost["stop_s"] + cost["slowed_s"] for cost in self.windows)
        return self.described_s + spent_s

    def left_s(self) -> float:
        """Return what may be spent now; there is always something."""
        return max(LEAST_OPEN_S, allowed(self.run_s(), self.spent_s))

    def opens(self, start_s: float, usual_s: float | None) -> None:
        """A profiler was started for steps that usually take so long."""
        window = {"steps": 0, "stopped_by": "", "start_s": round(start_s, 4), "too_long": False}
        self.windows.append({**window, "stop_s": 0.0, "slowed_s": 0.0, "program_s": 0.0, "run_s": 0.0})
        self.usual_s = usual_s
        self.in_use = self.in_use or heap_reader()
        self.mb_at = self.in_use() if self.in_use else 0.0
        self.opened_at, self.cpu_at = time.perf_counter(), time.process_time()

    def more_calls(self, calls: int, k: int) -> int:
        """Return after how many more calls, of k steps, to look at the open window again; 0 closes it."""
        if self.in_use:
            stop_s = self.stop_per_mb * self._noted_mb()
        else:
            stop_s = self.stop_per_cpu * (time.process_time() - self.cpu_at)
        return more_calls(calls, self._slowed(calls * k) + stop_s, self.run_s(), self.spent_s)

    def _noted_mb(self) -> float:
        """Return what was taken since the least that was in use: what the program frees hides none of it."""
        if not self.in_use:
            return 0.0
        mb = self.in_use()
        self.mb_at = min(self.mb_at, mb)
        return mb - self.mb_at

    def _slowed(self, steps: int) -> float:
        """Return what the steps took longer than usual, as far as the CPU time can be the profiler's."""
        if self.usual_s is None:
            return 0.0
        longer_s = time.perf_counter() - self.opened_at - steps * self.usual_s
        return max(0.0, min(longer_s, SLOWED_PER_CPU_S * (time.process_time() - self.cpu_at)))

    def measured(self, steps: int, reason: str) -> None:
        """The steps of the open window are over."""
        self.noted_mb = self._noted_mb()
        self.windows[-1].update(steps=steps, stopped_by=reason, slowed_s=round(self._slowed(steps), 4))

    def stops(self, stop_s: float) -> None:
        """The profiler was stopped, and its trace written; this is what the next window will cost as well."""
        window, run_s = self.windows[-1], self.run_s() - stop_s
        window.update(stop_s=round(stop_s, 4), run_s=round(run_s, 4))
        took_s, may_s = window["start_s"] + stop_s, min(LONGEST_S, max(LEAST_S, SHARE * run_s))
        if took_s > may_s:
            window["too_long"] = True
            self.most_steps = max(1, int(window["steps"] * may_s / took_s))
        cpu_s = time.process_time() - self.cpu_at - stop_s
        if cpu_s > 0:
            self.stop_per_cpu = stop_s / cpu_s
        if self.noted_mb > 1.0:
            self.stop_per_mb = stop_s / self.noted_mb

    def described(self, seconds: float) -> None:
        """The program was described, after the last window or at the end."""
        self.described_s += seconds
        if self.windows:
            self.windows[-1]["program_s"] = round(self.windows[-1]["program_s"] + seconds, 4)

    def wait_s(self, steps: int) -> float:
        """Return in how many seconds a window of so many steps costs little enough; 0 is now."""
        if not self.windows:
            return 0.0
        last = self.windows[-1]
        each = (last["stop_s"] + last["slowed_s"]) / max(1, last["steps"])
        cost = last["start_s"] + last["program_s"] + steps * each
        return max(0.0, affordable_at(cost, self.spent_s) - self.run_s())


MB = 1e6
PROBE = 100_000  # Bytes that are taken to see whether the C library is the one that gives out memory
# Of glibc's `struct mallinfo2`, all of them `size_t` (glibc 2.33 and later).
FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


def heap_reader() -> Callable[[], float] | None:
    """Return what reads the MB that the C library has given out, which the profiler's events lie in until it stops.

    None where it does not tell.
    """
    import ctypes  # costs, and is needed where the profiler starts

    class MallocInfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]  # as ctypes reads it

    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    ask.restype = MallocInfo

    def in_use() -> float:
        info = ask()
        return float(info.uordblks + info.hblkhd) / MB

    before, kept = in_use(), bytearray(PROBE)
    told = in_use() - before >= len(kept) / MB  # with another allocator, nothing is told
    return in_use if told else None
