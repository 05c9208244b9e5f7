"""Forks of the process: one that was made in time records for itself, any other keeps silent."""

from __future__ import annotations

from ..process import all_threads
from ..process.journal import quietly
from ..process.kept import os
from ..process.tensorflow_api import in_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installed import Installed


def watch(installed: Installed) -> None:
    """Begin a recording of its own in each fork; once TensorFlow is in use, a fork of it can train nothing.

    The journal's process number stays the parent's then, which silences all hooks; so it does in
    the forks of such a fork.
    """
    forking: list[int] = []  # the process that forks, which may have ended when its fork asks

    @quietly("fork", installed.log)
    def begun() -> None:
        if installed.log.pid in forking and not in_use():
            installed.after_fork()

    os.register_at_fork(before=lambda: forking.__setitem__(slice(None), [os.getpid()]))

    os.register_at_fork(after_in_child=all_threads.collector.after_fork)
    os.register_at_fork(after_in_child=begun)
