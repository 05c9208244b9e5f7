"""Recording a process in its whole life, from before its script begins."""

from __future__ import annotations

import atexit
import importlib
import os as scripts_os
import sys

from ..process.kept import os
from . import process
from .recorder import RunRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ..process.declared import AgentPlan
    from ..process.journal import Journal


def begin(plan: AgentPlan, log: Journal, *, waits: bool = False) -> RunRecorder:
    """Begin to record this process, and see to its end and its forks; a trial times its steps alone."""
    recorder = RunRecorder(log)
    if plan.get("trial"):
        return recorder
    recorder.begin(None if replaces(log, waits=waits) else process.started_ns(), waits=waits)
    atexit.register(_end, recorder)  # the last one, since it came first
    before_hard_exit(recorder.end)
    recorder.watch_forks()
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


def replaces(log: Journal, *, waits: bool) -> bool:
    """Say whether the process ran another program before, which has its account: the folder has a number."""
    return not waits and not log.out.endswith(f".{os.getpid()}")


def _end(recorder: RunRecorder) -> None:
    """End the account of a process that ends; who presses Ctrl-C meanwhile wants it to end."""
    try:
        recorder.end(process.last_error())
    except KeyboardInterrupt:
        return
