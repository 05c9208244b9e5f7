"""Recording a process in its whole life, from before its script begins, and its forks, each as a worker."""

from __future__ import annotations

import atexit
import importlib
import os as scripts_os
import sys

from ..process.journal import Journal, quietly
from ..process.kept import os, time
from .recorder import FORK, RunRecorder
from .waiting import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ..process.declared import AgentPlan

START_TIME = 19  # Where /proc/PID/stat has the start of the process, after its name: field 22


def begin(plan: AgentPlan, log: Journal, *, waits: bool = False, how: str = "") -> RunRecorder:
    """Begin to record this process, and see to its end and its forks; a trial times its steps alone.

    `how` is how it was started, where it is a worker.
    """
    recorder = RunRecorder(log)
    if plan.get("trial"):
        return recorder
    # A process that ran another program before has its account; the folder has a number then.
    replaces = not (waits or how) and not log.out.endswith(f".{os.getpid()}")
    recorder.begin(None if replaces else _started_ns(), waits=waits, how=how)
    forks = Forks(recorder)
    atexit.register(_end, forks)  # the last one, since it came first
    before_hard_exit(forks.end)
    forks.watch()
    return recorder


def before_hard_exit(finish: Callable[[], object]) -> None:
    """Call a function before `os._exit`, which runs no handlers: what was seen would be lost."""

    def leave(original: Callable[..., NoReturn], *args: object, **named: object) -> NoReturn:
        if all(isinstance(status, int) for status in (*args, *named.values())):  # else it fails
            finish()
        original(*args, **named)

    children = sys.modules.get("_tfdoctor_children")
    ours: Any = children or importlib.import_module("tfdoctor.capture.site._tfdoctor_children")
    ours.wrap(scripts_os, "_exit", leave)


def _end(forks: Forks) -> None:
    """End the account of a process that ends; who presses Ctrl-C meanwhile wants it to end."""
    try:
        forks.end(getattr(sys, "last_value", None))
    except KeyboardInterrupt:
        return


def _started_ns() -> int | None:
    """Return when this process was started, on the monotonic clock; None where the system does not say."""
    fields = told("/proc/self/stat").rpartition(b")")[2].split()
    if len(fields) <= START_TIME:
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[START_TIME]) / os.sysconf("SC_CLK_TCK")
    return time.perf_counter_ns() - int(max(0.0, age) * 1e9)


class Forks:
    """The recorder of this process, which is another one in each fork; the hooks know nothing of that."""

    def __init__(self, recorder: RunRecorder) -> None:
        self.family = recorder.family

    def watch(self) -> None:
        """Take part in the forks that the process makes, and that these make."""
        os.register_at_fork(
            before=lambda: self.family[0].before_fork(),  # noqa: PLW0108 - of the one by then
            after_in_parent=lambda: self.family[0].after_fork_in_parent(),  # noqa: PLW0108 - same
            after_in_child=self.forked,
        )

    def forked(self) -> None:
        """This is a fork: record it, unless what made it is not recorded itself, or only once it trains."""
        parent = self.family[0]
        follows = parent.active and (parent.how or not parent.waits) and parent.log.processes
        parent.after_fork_in_child()
        if follows:
            quietly("fork", parent.log)(self._begin)(parent.log.processes)

    def _begin(self, processes: str | None) -> None:
        recorder = RunRecorder(Journal(processes=processes))
        recorder.family, self.family[:] = self.family, [recorder]
        recorder.begin(how=FORK)

    def end(self, error: BaseException | None = None) -> None:
        """This process ends, whichever it is."""
        self.family[0].end(error)
