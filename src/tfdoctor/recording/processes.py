"""The Python processes of a run, each with what it recorded in a folder of its own.

The folders are part of the recording until tfdoctor assembles them at the end of the run. If it was killed before,
they are read in place of the assembled files.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import AGENT, Notes, agent_state, own_traces
from tfdoctor.recording.run_log import RUN_LOG, RUN_NOW
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record

PROCESSES, WORKERS = "processes", "workers"
RUN_FILES = (RUN_LOG, RUN_NOW)  # The account of a process, from its start on


class Process(Record):
    """One process; its state is empty if `fault` says why."""

    folder: Path
    state: AgentState
    fault: str = ""

    @property
    def traces(self) -> tuple[Path, ...]:
        """The process's traces: of one window, so all in one folder."""
        return own_traces(self.folder)

    @property
    def account_bytes(self) -> int:
        """The size of what was written about its whole life; 0 without."""
        log = self.folder / RUN_LOG
        return log.stat().st_size if log.is_file() else 0

    @property
    def seen(self) -> int:
        """The number of training steps."""
        return self.state.steps.seen if self.state.steps else 0

    @property
    def trained(self) -> bool:
        """Whether the process trained, so that the report is on it."""
        return self.seen > 0 or bool(self.traces)

    @property
    def worker(self) -> WorkerRank:
        """Its name among several processes, and its rank if a launcher set one."""
        rank = self.state.rank
        if rank is None or rank.rank is None or not rank.name:
            return WorkerRank(self.folder.name.replace(".", "-"))
        return replace(rank, name=rank.name.replace("/", "_"))


def read(out: Path) -> tuple[Process, ...]:
    """Return a run's processes: those that trained first, by rank and number of steps."""
    files = (file for name in (AGENT, RUN_LOG) for file in out.glob(f"{PROCESSES}/*/{name}"))
    found = []
    for folder in sorted({file.parent for file in files if is_below(file, out)}):
        notes = Notes()
        state = agent_state(folder / AGENT, notes)
        found.append(Process(folder, state or AgentState(), notes.damage[0] if state is None else ""))

    def order(one: Process) -> tuple[bool, float, bool, int, str]:
        rank = one.worker.rank
        return not one.trained, inf if rank is None else rank, not one.traces, -one.seen, one.folder.name

    return tuple(sorted(found, key=order))


def reported(processes: Sequence[Process], pid: int | None = None) -> Process | None:
    """Return the process that a recording is about: the first that trained.

    If none did: one that uses a backend of Keras whose steps are not recorded, else the one with this number, which
    tfdoctor started, else any; of several the one with the longest account. A process that replaced itself
    (`os.execv`) has two folders and one number.
    """
    if not processes or processes[0].trained:
        return processes[0] if processes else None
    started = [one for one in processes if pid is not None and one.state.pid == pid]
    other = [one for one in processes if one.state.backend]
    return max(other or started or processes, key=lambda one: one.account_bytes)
