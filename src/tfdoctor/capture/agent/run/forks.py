"""Forks of a process: each is recorded as a worker, by a recorder of its own; the hooks know nothing of that."""

from __future__ import annotations

from ..process.journal import Journal, quietly
from ..process.kept import os
from .recorder import FORK, RunRecorder


class Forks:
    """The recorder of this process, which is another one in each fork."""

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
