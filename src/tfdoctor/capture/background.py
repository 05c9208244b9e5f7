"""Processes of a run that go on when its command has ended, for which tfdoctor waits no more than a shell does."""

import time
from collections.abc import Iterator, Sequence

from tfdoctor.recording.folders import Process, reported

GRACE_S = 1.0  # How long processes may take to end that end because the command has: managers, trackers, workers

POLL_S = 0.1


def going_on(variable: str, plan: str, recorded: Sequence[Process], pid: int | None) -> tuple[int, ...]:
    """Return the numbers of the processes that go on, where what they do is what the recording should be about.

    That is where no process has trained, or one that goes on has; `pid` is the command. All processes of a run have
    its plan in this variable of their environment.
    """
    until = time.monotonic() + GRACE_S
    while left := tuple(_carriers(variable, plan)):
        shown = reported(recorded, pid)
        if shown is not None and shown.trained and shown.state.pid not in left:
            return ()
        if time.monotonic() >= until:
            return left
        time.sleep(POLL_S)
    return ()


def _carriers(variable: str, plan: str) -> Iterator[int]:
    import psutil  # noqa: PLC0415 - takes 20 ms, which only the end of a run has

    for process in psutil.process_iter():
        try:
            if process.environ().get(variable) == plan:
                yield process.pid
        except (psutil.Error, OSError):  # another user's, or it has ended
            continue
