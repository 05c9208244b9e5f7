"""Where the parts of a recording lie: in its folder, or still with the process that left them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tfdoctor.errors import InputError
from tfdoctor.recording import processes, workers
from tfdoctor.recording.agent import AgentState
from tfdoctor.recording.files import AGENT, MANIFEST, PROGRAM, RUNS, SAMPLES, agent_state, traces
from tfdoctor.recording.notes import Notes

DEPTH = 2
"""How far below a log directory its runs may lie: logs/fit/<time>/plugins/profile/<run>."""


@dataclass(frozen=True, slots=True)
class RecordingFiles:
    """What to read; only a trace is there when somebody else recorded it."""

    traces: tuple[Path, ...]
    root: Path | None = None
    manifest: Path | None = None
    program: Path | None = None
    samples: Path | None = None
    agent: AgentState | None = None
    """What the agent left and tfdoctor, being killed, did not put into the manifest."""

    @classmethod
    def find(cls, path: Path, notes: Notes) -> Self:
        """Find the parts of what was given.

        Raises:
            InputError: there is nothing, or no trace in it.
        """
        if not path.exists():
            raise InputError(f"There is nothing at {path}: check the path.")
        if path.is_file():
            return cls((path,))
        run = _run_of(path)
        if run is not None:
            return cls._of_process(path, run, notes)
        left = processes.read(path)
        if left and left[0].trained:
            _say_others(left, notes)
            return cls._of_process(path, path, notes, left[0])
        return cls._of_folder(path, notes, left[0].state if left else None)

    @classmethod
    def _of_folder(cls, path: Path, notes: Notes, agent: AgentState | None) -> Self:
        found = traces(path) or _newest_run(path, notes)
        own = (path / MANIFEST).is_file()
        if own and not found and workers.is_one(path):
            found = workers.traces(path)
        if not found and not own:
            raise InputError(
                f"No trace under {path}: expected plugins/profile/<run>/<host>.xplane.pb; "
                "record one with `tfdoctor profile`."
            )
        if not own:
            return cls(found)
        if agent is None and (path / AGENT).is_file():
            agent = agent_state(path / AGENT, notes)
        return cls(found, path, path / MANIFEST, path / PROGRAM, path / SAMPLES, agent)

    @classmethod
    def _of_process(
        cls, path: Path, run: Path, notes: Notes, process: processes.Process | None = None
    ) -> Self:
        """Find what a process left, in the recording of its run that nobody has finished."""
        agent = process.state if process else agent_state(path / AGENT, notes)
        process = process or processes.Process(path, agent or AgentState())
        return cls(process.traces, path, run / MANIFEST, process.program, run / SAMPLES, agent)


def _run_of(path: Path) -> Path | None:
    """Return the recording that a process's folder is a part of."""
    path = path.absolute()
    run = path.parent.parent
    mine = path.parent.name == processes.PROCESSES and (path / AGENT).is_file()
    return run if mine and (run / MANIFEST).is_file() else None


def _say_others(left: tuple[processes.Process, ...], notes: Notes) -> None:
    trained = [process.folder for process in left if process.trained]
    if len(trained) > 1:
        notes.add(
            f"{len(trained)} processes trained and {trained[0].name} is shown; to report on another: "
            f"`tfdoctor report {shlex.quote(str(trained[1]))}`"
        )


def _newest_run(path: Path, notes: Notes) -> tuple[Path, ...]:
    places = [f"{'*/' * depth}{RUNS}" for depth in range(DEPTH + 1)]
    for start, below in (("plugins", "profile/*"), ("profile", "*")):  # inside a log directory
        if path.name == start:
            places.append(below)
    runs = {run for place in places for run in path.glob(place) if traces(run)}
    # Runs are named by date, and names survive copying where times of files do not.
    ordered = sorted(runs, key=lambda run: (run.name, str(run)))
    if not ordered:
        return ()
    if len(ordered) > 1:
        notes.add(f"{len(ordered)} runs found: the newest, {ordered[-1].name}, is shown")
    return traces(ordered[-1])
