"""tfdoctor.json: the command, the machine, the traced window, the ending, and missing data.

The same model writes and reads it: capture fills it in, the report reads it.
"""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import PurePath
from typing import Self

from tfdoctor.recording.agent import AgentError, Missing, StepsSeen, TracedWindow, WindowCost, WorkerRank
from tfdoctor.recording.typed import Amount, Count
from tfdoctor.terms.record import Record, field

SCHEMA = 1


class MissingPart(StrEnum):
    """Parts that a recording may lack, as `what` of a `Missing` names them; other entries name a place."""

    TRACE = "trace"
    STEPS = "steps"
    PROGRAM = "program"
    SAMPLES = "samples"
    GRAPHS = "graphs"


BY_COST = "cost"  # The reason of a window that had cost the run as much as it may
NOT_TRACED = (MissingPart.TRACE, MissingPart.STEPS)  # Without one of these, the recording has no traced step


class HostMachine(Record):
    """The machine of the run."""

    name: str = ""
    cpu_model: str = ""
    cpu_flags: tuple[str, ...] = ()
    cores_logical: Count = 0
    cores_usable: Amount = 0.0
    memory_bytes: Count = 0


class CapturePlan(Record):
    """What to record, as the user asked; the last three fields are for attached jobs."""

    kind: str = ""
    script: str = ""
    steps: Count | None = None
    warmup: Count = 0
    seconds: Amount | None = None
    stop_after: bool = False
    trace: bool = True  # False: only the account of the run is recorded
    sample_every_ms: Count = 0
    addresses: tuple[str, ...] = ()
    started_unix_ns: Count | None = None
    stopped_unix_ns: Count | None = None


class Ending(Record):
    """How the run ended; all fields are None while it runs, or if tfdoctor was killed."""

    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None  # the exception that ended a recording from Python


class Sampling(Record):
    """The status, the number of samples and the cost of one sampler."""

    name: str = ""
    status: str = ""
    reason: str = ""
    count: Count = 0
    cost_ms: Amount = 0.0
    absent: bool | None = None  # the machine has no such device; None: not recorded


class Clock(Record):
    """One moment on two clocks; their difference shows when the wall clock was set."""

    unix_ns: Count = 0
    monotonic_ns: Count = 0


class Revision(Record):
    """The commit of the program in git."""

    commit: str = ""
    committed_unix_ns: Count = 0  # 0 is unknown
    changed: bool | None = None  # a file that git tracks, or the script, differs from it; None is unknown


class RunTimes(Record):
    """When tfdoctor started the command and saw its end, and what happened to the machine meanwhile."""

    started_ns: Count = 0  # on the system's monotonic clock
    ended_ns: Count | None = None
    started_unix_ns: Count = 0
    pid: int | None = None
    oom_kills: Count | None = None  # by the kernel, in the run's cgroup, for want of memory; None is unknown
    limit_bytes: Count | None = None  # the memory that the run might use; None is unknown
    suspended_ns: Count = 0  # how long the machine slept
    clock_jump_ns: int = 0  # by how much the wall clock was set


class EndedProcess(Record):
    """A Python process of the run, and the reason if it is not reported on."""

    pid: int | None = None
    argv: tuple[str, ...] = ()
    rank: int | None = None
    steps: Count = 0
    trained: bool = False
    why: str = ""


class WrittenFiles(Record):
    """The files below the folder of the run that changed while it ran: their number and the first names."""

    count: Count = 0
    names: tuple[str, ...] = ()


SCRIPT = ".py"  # How the word of a command ends that names a training script
VALUED = ("-W", "-X")  # Options of Python whose value is the next word


def program_of(command: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the script or the module that a command runs, and its arguments; "" where the command names neither.

    A ``-m`` is Python's only before the script: ``numactl -m 0 python train.py -m 3`` runs ``train.py``.
    """
    python = has_python = False  # the next word may be an option of Python's
    for at, word in enumerate(command):
        if word.endswith(SCRIPT) or (python and command[at - 1] == "-m"):
            return word, command[at + 1 :]
        is_option = python and (word.startswith("-") or command[at - 1] in VALUED)
        python = PurePath(word).name.startswith("python") or is_option
        has_python |= python
    module = 0 if has_python or "-m" not in command else command.index("-m") + 1  # of a launcher
    return (command[module], command[module + 1 :]) if 0 < module < len(command) else ("", command[:0])


class Manifest(Record):
    """All that `tfdoctor.json` holds; a field keeps its default where the file lacks it."""

    schema: Count = SCHEMA
    tfdoctor: str = ""
    finished: bool = False
    command: tuple[str, ...] = ()
    cwd: str = ""
    python: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    host: HostMachine = HostMachine()
    plan: CapturePlan | None = None
    window: TracedWindow | None = None
    steps: StepsSeen = StepsSeen()
    costs: tuple[WindowCost, ...] = ()  # of all windows, those that were not kept as well
    outcome: Ending = Ending()
    clock: tuple[Clock, ...] = ()
    samplers: tuple[Sampling, ...] = ()
    missing: tuple[Missing, ...] = ()
    agent_errors: tuple[AgentError, ...] = ()
    processes: tuple[EndedProcess, ...] = ()
    worker: WorkerRank | None = None  # which worker of several this is
    workers: tuple[str, ...] = ()  # the names of all workers, whose recordings lie below `workers`
    written: WrittenFiles | None = None  # None: not recorded
    times: RunTimes | None = None  # None: not recorded
    revision: Revision | None = None  # None: unknown, or not recorded
    background: tuple[Count, ...] = ()  # processes that went on when the command had ended

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that paths are shown relative to: where the run was started, then that of its script."""
        return tuple(dict.fromkeys(filter(None, (self.cwd, posixpath.dirname(self.script)))))

    @property
    def script(self) -> str:
        """The path of the training script; "" where the command names none."""
        script, _ = program_of(self.command)
        return posixpath.normpath(posixpath.join(self.cwd, script)) if script.endswith(SCRIPT) else ""

    @property
    def ended_early(self) -> bool:
        """Whether the run was ended after its traced steps, as the user asked."""
        complete = self.window is not None and self.window.stopped_by in {"steps", "time"}
        return complete and self.plan is not None and self.plan.stop_after

    @property
    def recorded_unix_ns(self) -> int:
        """When it was recorded: the start of the traced window, of attaching, or of the run; 0 is unknown."""
        window = self.window.started_unix_ns if self.window else 0
        attached = self.plan.started_unix_ns if self.plan else 0
        return window or attached or (self.clock[0].unix_ns if self.clock else 0)

    @property
    def cut_by_cost(self) -> bool:
        """Whether the traced window was closed because more of it would have cost the run too much."""
        return self.window is not None and self.window.stopped_by == BY_COST

    @property
    def trace_gap(self) -> Missing | None:
        """The first entry that says why no step was traced; None if there is none."""
        return next((missing for missing in self.missing if missing.what in NOT_TRACED), None)

    def lacks(self, what: str, why: str) -> Self:
        """Return the manifest with one more entry of missing data."""
        return replace(self, missing=(*self.missing, Missing(what, why)))
