"""tfdoctor.json: what was run, where, what was traced of it, how it ended, and what is missing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypeVar

SCHEMA = 1

Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostMachine:
    """The machine of the run."""

    name: str = ""
    cpu_model: str = ""
    cpu_flags: tuple[str, ...] = ()
    cores_logical: int = 0
    cores_usable: float = 0.0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TracedWindow:
    """The traced steps."""

    warmup: int = 0
    steps: int = 0
    first_step: int = 0
    calls: int = 0
    source: str = ""
    started_unix_ns: int = 0
    stopped_unix_ns: int | None = None
    contains_warmup: bool = False
    stopped_by: str = ""
    profiler: str = "tfdoctor"
    at: tuple[str | int, ...] | None = None


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """How the steps were seen, in the whole run."""

    source: str | None = None
    at: tuple[str | int, ...] | None = None
    why: str = ""
    seen: int = 0
    seen_all: bool = True
    candidates: tuple[Json, ...] = ()
    discarded: tuple[int, ...] = ()
    untraced: Json | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended; both are None while it runs, or when tfdoctor was killed."""

    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """What became of one sampler."""

    name: str = ""
    status: str = ""
    reason: str = ""
    count: int = 0
    cost_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Missing:
    """What the recording lacks, and what to do about it."""

    what: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AgentError:
    """A fault inside the hook; the run did not notice it."""

    where: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """The same moment on two clocks: a step of the wall clock shows in their difference."""

    unix_ns: int = 0
    monotonic_ns: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tfdoctor.json`."""

    schema: int = SCHEMA
    tfdoctor: str = ""
    finished: bool = False
    command: tuple[str, ...] = ()
    cwd: str = ""
    python: str = ""
    environment: Json | None = None
    versions: Json | None = None
    host: HostMachine = HostMachine()
    plan: Json | None = None
    window: TracedWindow | None = None
    steps: StepsSeen = StepsSeen()
    outcome: Ending = Ending()
    clock: tuple[Clock, ...] = ()
    samplers: tuple[Sampling, ...] = ()
    missing: tuple[Missing, ...] = ()
    agent_errors: tuple[AgentError, ...] = ()
    processes: tuple[Json, ...] = ()  # the Python processes of the run: pid, argv, trained, why
    worker: Json | None = None  # which worker of several this is: name, rank, size
    workers: tuple[str, ...] = ()  # the names of all, where their recordings lie below `workers`

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read a manifest; what is absent or of another kind keeps its default."""
        data = data if isinstance(data, dict) else {}
        window = data.get("window")
        parts = {
            "host": _read(HostMachine, data.get("host")),
            "window": _read(TracedWindow, window) if isinstance(window, dict) else None,
            "steps": _read(StepsSeen, data.get("steps")),
            "outcome": _read(Ending, data.get("outcome")),
            "clock": _read_all(Clock, data.get("clock")),
            "samplers": _read_all(Sampling, data.get("samplers")),
            "missing": _read_all(Missing, data.get("missing")),
            "agent_errors": _read_all(AgentError, data.get("agent_errors")),
        }
        plain = {key: value for key, value in data.items() if key not in parts}
        return _read(cls, plain, parts)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON knows it."""
        return asdict(self)


def _read(kind: type[T], data: object, parts: Json | None = None) -> T:
    """Build a dataclass from the entries of a JSON object that fit it."""
    values = dict(parts or {})
    if isinstance(data, dict):
        empty = kind()
        for field in fields(kind):  # type: ignore[arg-type]  # every T here is a dataclass
            value = data.get(field.name)
            value = tuple(value) if isinstance(value, list) else value
            if value is not None and _fits(value, getattr(empty, field.name)):
                values[field.name] = value
    return kind(**values)


def _fits(value: object, default: object) -> bool:
    """Say whether a value is of the kind of the field's default; None says nothing of the kind."""
    if isinstance(default, bool) or isinstance(value, bool):
        return default is None or isinstance(value, type(default))
    if isinstance(default, float):
        return isinstance(value, int | float)
    return default is None or isinstance(value, type(default))


def _read_all(kind: type[T], data: object) -> tuple[T, ...]:
    items = data if isinstance(data, list) else []
    return tuple(_read(kind, item) for item in items if isinstance(item, dict))


def fold(manifest: Json, agent: Json) -> dict[str, Any]:
    """Return a manifest with what the agent left in its state file."""
    folded = dict(manifest)
    for name in ("window", "steps"):
        if agent.get(name):
            folded[name] = agent[name]
    folded["versions"] = {**(manifest.get("versions") or {}), **(agent.get("versions") or {})}
    folded["missing"] = [*(manifest.get("missing") or ()), *(agent.get("missing") or ())]
    folded["agent_errors"] = [*(manifest.get("agent_errors") or ()), *(agent.get("errors") or ())]
    return folded
