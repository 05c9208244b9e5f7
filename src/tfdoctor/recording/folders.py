"""The folders of a recording: where it lies, and those of its processes and workers inside it.

Of a folder above recordings the newest one is opened, and a note says which, and how to open another. The folders
of processes are part of the recording until tfdoctor assembles them at the end of the run; if it was killed before,
they are read in place of the assembled files. Each of several workers has a recording below `workers`.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from tfdoctor.recording import files
from tfdoctor.recording.agent import AgentState, WorkerRank
from tfdoctor.recording.files import AGENT, MANIFEST, RUNS, Notes, manifest_in
from tfdoctor.recording.run_log import RUN_LOG, RUN_NOW
from tfdoctor.recording.worker_log import Worker
from tfdoctor.terms.files import is_below
from tfdoctor.terms.record import Record

PROCESSES, WORKERS = "processes", "workers"
SERVER = "server"  # A process that forks workers, and does nothing else
RUN_FILES = (RUN_LOG, RUN_NOW)  # The account of a process, from its start on
# Folders between a log directory and its runs: logs/fit/<time>/plugins/profile/<run>. Recordings lie as deep.
DEPTH = 2
# How profilers name a run folder, by the machine's own time.
RUN = re.compile(r"(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)")
# The manifest of a recording, and those of its workers where it has no other.
MARKS = (MANIFEST, f"{WORKERS}/*/{MANIFEST}")


def newest(path: Path, notes: Notes) -> Path:
    """Return the newest recording below a folder; the path itself if it is a recording, or has none below it.

    A recording precedes runs of TensorBoard, which hold only a part of what it holds.
    """
    found = [] if any(next(path.glob(mark), None) for mark in MARKS) else _recordings(path)
    if not found:
        return path
    alone = [run for run in runs(path) if not set(found) & set(run.parents)]
    if len(found) + len(alone) > 1:
        kinds = f"{len(found)} recording{'' if len(found) == 1 else 's'}"
        kinds += f" and {len(alone)} TensorBoard run{'' if len(alone) == 1 else 's'}" if alone else ""
        shown, later = _last_date(found[-1].glob(RUNS)), _last_date(alone)
        newer = f"; {_within(path, alone[-1])} is newer and is only a trace" if shown and later > shown else ""
        other = (found[:-1] or alone)[-1]
        notes.add(
            f"{kinds} found: the newest recording, {_within(path, found[-1])}, is shown{newer}; "
            f"to see another, name it: {shlex.quote(str(other))}"
        )
    return found[-1]


def _recordings(path: Path) -> list[Path]:
    """Return the recordings below a folder, the newest last; what lies in a recording is a part of it."""

    def made(folder: Path) -> tuple[int, str, str]:  # by the manifest: the times of files do not survive copying
        manifests = [manifest_in(file.parent) for mark in MARKS for file in folder.glob(mark)]
        return max(manifest.recorded_unix_ns for manifest in manifests), folder.name, str(folder)

    patterns = [f"{'*/' * depth}{mark}" for depth in range(1, DEPTH + 1) for mark in MARKS]
    # A damaged manifest hides no good run beside it.
    manifests = (file for pattern in patterns for file in path.glob(pattern))
    marked = {file.parent for file in manifests if files.json_object(file, Notes())}
    outer = sorted({one.parent.parent if one.parent.name == WORKERS else one for one in marked}, reverse=True)
    folders = set({folder.resolve(): folder for folder in outer}.values())  # a link is no other
    return sorted((one for one in folders if not folders & set(one.parents)), key=made)


def runs(path: Path) -> list[Path]:
    """Return the run folders of TensorBoard below a folder, the newest last."""
    patterns = [f"{'*/' * depth}{RUNS}" for depth in range(DEPTH + 1)]
    # The path may lie inside a log directory.
    patterns += {"plugins": ["profile/*"], "profile": ["*"]}.get(path.name, [])
    found = {run for pattern in patterns for run in path.glob(pattern) if files.traces(run)}
    # Runs are named by date; unlike the times of files, names survive copying.
    return sorted(found, key=lambda run: (run.name, str(run)))


def _within(path: Path, folder: Path) -> str:
    return folder.relative_to(path).as_posix() if folder.is_relative_to(path) else str(folder)


def _last_date(folders: Iterable[Path]) -> str:
    """Return the name of the newest run, of those that are named by date; "" without."""
    return max((folder.name for folder in folders if RUN.fullmatch(folder.name)), default="")


def workers(path: Path) -> tuple[Path, ...]:
    """Return the recordings of all workers of a run, the chief first; none if it had one process."""

    def order(folder: Path) -> tuple[float, int, str]:
        worker = manifest_in(folder).worker or WorkerRank()
        return inf if worker.rank is None else worker.rank, worker.place or 0, folder.name

    manifests = path.glob(f"{WORKERS}/*/{MANIFEST}")
    return tuple(sorted((one.parent for one in manifests if is_below(one, path)), key=order))


def whole(path: Path, parts: tuple[str, ...] = (PROCESSES, WORKERS)) -> Path:
    """Return the folder that everything of a recording lies in: of a process or a worker, that of the run."""
    path = path.absolute()
    return path.parent.parent if path.parent.name in parts else path


class Process(Record):
    """One process; its state is empty if `fault` says why."""

    folder: Path
    state: AgentState
    fault: str = ""

    @property
    def traces(self) -> tuple[Path, ...]:
        """The process's traces: of one window, so all in one folder."""
        return files.own_traces(self.folder)

    @property
    def is_part(self) -> bool:
        """Whether it does a part of another one's work, and did not train, nor use a backend that may have."""
        return bool(self.state.worker) and not (self.trained or self.state.backend)

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


def processes(out: Path) -> tuple[Process, ...]:
    """Return a run's processes: those that trained first, by rank and number of steps."""
    logs = (file for name in (AGENT, RUN_LOG) for file in out.glob(f"{PROCESSES}/*/{name}"))
    found = []
    for folder in sorted({file.parent for file in logs if is_below(file, out)}):
        notes = Notes()
        state = files.agent_state(folder / AGENT, notes)
        found.append(Process(folder, state or AgentState(), notes.damage[0] if state is None else ""))

    def order(one: Process) -> tuple[bool, float, bool, int, str]:
        rank = one.worker.rank
        return not one.trained, inf if rank is None else rank, not one.traces, -one.seen, one.folder.name

    return tuple(sorted(found, key=order))


def reported(found: Sequence[Process], pid: int | None = None) -> Process | None:
    """Return the process that a recording is about: the first that trained.

    If none did: one that uses a backend of Keras whose steps are not recorded, else the one with this number, which
    tfdoctor started, else any; of several the one with the longest account. A process that replaced itself
    (`os.execv`) has two folders and one number.
    """
    if found and found[0].trained:
        return found[0]
    found = [one for one in found if not one.is_part]
    started = [one for one in found if pid is not None and one.state.pid == pid]
    other = [one for one in found if one.state.backend]
    return max(other or started or found, key=lambda one: one.account_bytes, default=None)


def parts(found: Sequence[Process], notes: Notes, of: Process | None = None) -> tuple[Worker, ...]:
    """Return what the processes did that do a part of another one's work, or of the work of one of them."""
    parents = {one.state.pid: one.state.parent for one in found}

    def is_below(pid: int | None) -> bool:
        seen = {pid}
        while of and pid != of.state.pid and (pid := parents.get(pid)) not in seen:
            seen.add(pid)
        return of is None or pid == of.state.pid

    logs = [
        (one.state, files.run_log(one.folder, notes))
        for one in found
        if one.is_part and one.state.worker != SERVER and one.account_bytes and is_below(one.state.pid)
    ]
    return tuple(Worker.of(log, state.worker, state.parent or 0) for state, log in logs if log)
