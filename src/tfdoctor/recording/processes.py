"""The Python processes of a run, each as its agent described it in a folder of its own.

They lie in the recording while the run lasts; tfdoctor arranges them at its end. When it could not, what
they left is read in their place.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import AGENT, PROGRAM, RUNS, agent_state, traces
from tfdoctor.recording.notes import Notes

PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Process:
    """One process; its state is empty when `fault` says why."""

    folder: Path
    state: AgentState
    fault: str = ""

    @property
    def traces(self) -> tuple[Path, ...]:
        """The traces it took: of one window, so all in one folder."""
        return tuple(trace for run in sorted(self.folder.glob(RUNS)) for trace in traces(run))

    @property
    def program(self) -> Path:
        """What it built, if it got to write that."""
        return self.folder / PROGRAM

    @property
    def seen(self) -> int:
        """How many training steps it made."""
        return self.state.steps.seen if self.state.steps else 0

    @property
    def trained(self) -> bool:
        """Whether this is a process to report on."""
        return self.seen > 0 or bool(self.traces)

    @property
    def worker(self) -> WorkerRank:
        """Its name among several, and its rank where a launcher gave it one."""
        rank = self.state.rank
        if rank is None or rank.rank is None or not rank.name:
            return WorkerRank(self.folder.name.replace(".", "-"))
        return replace(rank, name=rank.name.replace("/", "_"))


def read(out: Path) -> tuple[Process, ...]:
    """Return the processes that a run has left, those that trained first, by rank and by steps."""
    found = [_read(path.parent) for path in sorted(out.glob(f"{PROCESSES}/*/{AGENT}"))]
    return tuple(sorted(found, key=_order))


def _read(folder: Path) -> Process:
    notes = Notes()
    state = agent_state(folder / AGENT, notes)
    return Process(folder, state or AgentState(), notes.damage[0] if state is None else "")


def _order(process: Process) -> tuple[bool, float, bool, int, str]:
    rank = process.worker.rank
    return (
        not process.trained,
        float("inf") if rank is None else rank,
        not process.traces,
        -process.seen,
        process.folder.name,
    )
