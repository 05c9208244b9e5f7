"""tfdoctor.json: what was run, where, what was traced of it, how it ended, and what is missing.

One model reads and writes it: the recorder fills it in, the report reads it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from tfdoctor.recording.agent import (
    AgentError,
    AgentState,
    LoopPlace,
    Missing,
    StepsSeen,
    TracedWindow,
    WorkerRank,
)
from tfdoctor.recording.typed import Amount, Count, Misfit, read

SCHEMA = 1

OLD_KEYS = {"guest_errors": "agent_errors"}
"""What keys were called before 22 November 2026."""


@dataclass(frozen=True, slots=True)
class HostMachine:
    """The machine of the run."""

    name: str = ""
    cpu_model: str = ""
    cpu_flags: tuple[str, ...] = ()
    cores_logical: Count = 0
    cores_usable: Amount = 0.0
    memory_bytes: Count = 0


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """What was asked to be recorded; the last three are of a job that was attached to."""

    kind: str = ""
    script: str = ""
    steps: Count | None = None
    warmup: Count = 0
    seconds: Amount | None = None
    stop_after: bool = False
    sample_every_ms: Count = 0
    watch_s: Amount = 0.0
    addresses: tuple[str, ...] = ()
    started_unix_ns: Count | None = None
    stopped_unix_ns: Count | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended; all are None while it runs, or when tfdoctor was killed."""

    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None  # the exception that ended a recording from Python


@dataclass(frozen=True, slots=True)
class Sampling:
    """What became of one sampler."""

    name: str = ""
    status: str = ""
    reason: str = ""
    count: Count = 0
    cost_ms: Amount = 0.0


@dataclass(frozen=True, slots=True)
class Clock:
    """The same moment on two clocks: a step of the wall clock shows in their difference."""

    unix_ns: Count = 0
    monotonic_ns: Count = 0


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A Python process of the run, and why it is not reported on if it is not."""

    pid: int | None = None
    argv: tuple[str, ...] = ()
    rank: int | None = None
    steps: Count = 0
    trained: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tfdoctor.json`."""

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
    steps: StepsSeen = field(default=StepsSeen())
    outcome: Ending = Ending()
    clock: tuple[Clock, ...] = ()
    samplers: tuple[Sampling, ...] = ()
    missing: tuple[Missing, ...] = ()
    agent_errors: tuple[AgentError, ...] = ()
    processes: tuple[EndedProcess, ...] = ()
    worker: WorkerRank | None = None  # which worker of several this is
    workers: tuple[str, ...] = ()  # the names of all, where their recordings lie below `workers`

    @classmethod
    def from_json(cls, data: object, faults: list[str] | None = None) -> Self:
        """Read a manifest; what is absent or of another kind keeps its default, and is added to `faults`."""
        faults = [] if faults is None else faults
        try:
            return read(cls, _renamed(data), faults)
        except Misfit:
            faults.append("")
            return cls()

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON knows it."""
        return asdict(self)

    def lacks(self, what: str, why: str) -> Self:
        """Return the manifest with one more thing that is missing."""
        return replace(self, missing=(*self.missing, Missing(what, why)))


def _renamed(data: object) -> object:
    """Return the entries by their present keys."""
    if not isinstance(data, Mapping):
        return data
    return {OLD_KEYS.get(key, key): value for key, value in data.items()}


def fold(manifest: Manifest, agent: AgentState) -> Manifest:
    """Return a manifest with what the agent left in its state file."""
    return replace(
        manifest,
        window=agent.window or manifest.window,
        steps=agent.steps or manifest.steps,
        versions={**manifest.versions, **agent.versions},
        missing=(*manifest.missing, *agent.missing),
        agent_errors=(*manifest.agent_errors, *agent.errors),
    )


__all__ = [
    "SCHEMA",
    "AgentError",
    "CapturePlan",
    "Clock",
    "EndedProcess",
    "Ending",
    "HostMachine",
    "LoopPlace",
    "Manifest",
    "Missing",
    "Sampling",
    "StepsSeen",
    "TracedWindow",
    "WorkerRank",
    "fold",
]
