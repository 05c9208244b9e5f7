"""Recording a process in its whole life, from before its script begins."""

from __future__ import annotations

import atexit
import os

from . import process
from .recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..declared import AgentPlan
    from ..journal import Journal


def begin(plan: AgentPlan, log: Journal, *, waits: bool = False) -> Recorder:
    """Begin to record this process, and see to its end and its forks; a trial times its steps alone."""
    recorder = Recorder(log)
    if plan.get("trial"):
        return recorder
    recorder.begin(process.started_ns(), waits=waits)
    atexit.register(lambda: recorder.end(process.ending()))  # the last one, since it came first
    os.register_at_fork(
        before=recorder.before_fork,
        after_in_parent=recorder.after_fork_in_parent,
        after_in_child=recorder.after_fork_in_child,
    )
    return recorder
