"""The Python processes of a run, each as its agent described it in a folder of its own.

They lie in the recording while the run lasts; tfdoctor arranges them at its end. When it could not, what
they left is read in their place.
"""

from dataclasses import dataclass
from pathlib import Path

from tfdoctor.recording.files import AGENT, PROGRAM, RUNS, json_object, traces
from tfdoctor.recording.manifest import Json

PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Process:
    """One process; its state is empty when `fault` says why."""

    folder: Path
    state: Json
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
        steps = self.state.get("steps")
        seen = steps.get("seen") if isinstance(steps, dict) else 0
        return seen if isinstance(seen, int) else 0

    @property
    def trained(self) -> bool:
        """Whether this is a process to report on."""
        return self.seen > 0 or bool(self.traces)

    @property
    def worker(self) -> Json:
        """Its name among several, and its rank where a launcher gave it one."""
        found = self.state.get("rank")
        if isinstance(found, dict) and isinstance(found.get("rank"), int):
            name = str(found.get("name")).replace("/", "_")
            return {"name": name, "rank": found["rank"], "size": found.get("size")}
        return {"name": self.folder.name.replace(".", "-"), "rank": None, "size": None}


def read(out: Path) -> tuple[Process, ...]:
    """Return the processes that a run has left, those that trained first, by rank and by steps."""
    found = [_read(path.parent) for path in sorted(out.glob(f"{PROCESSES}/*/{AGENT}"))]
    return tuple(sorted(found, key=_order))


def _read(folder: Path) -> Process:
    notes: list[str] = []
    state = json_object(folder / AGENT, notes)
    return Process(folder, state or {}, notes[0] if notes else "")


def _order(process: Process) -> tuple[bool, float, bool, int, str]:
    rank = process.worker["rank"]
    return (
        not process.trained,
        float("inf") if rank is None else rank,
        not process.traces,
        -process.seen,
        process.folder.name,
    )
