"""agent.json: what the agent in a Python process of the run says of it, while it runs and at its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfdoctor.recording.typed import Count, Positive

LoopPlace = tuple[str, int]
"""A line of the user's source: its file and number."""


@dataclass(frozen=True, slots=True)
class TracedWindow:
    """The traced steps."""

    warmup: Count = 0
    steps: Count = 0
    first_step: Count = 0
    calls: Count = 0
    source: str = ""
    started_unix_ns: Count = 0
    stopped_unix_ns: Count | None = None
    contains_warmup: bool = False
    stopped_by: str = ""
    profiler: str = "tfdoctor"
    at: LoopPlace | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One loop that trained."""

    source: str = ""
    steps: Count = 0
    calls: Count = 0
    at: LoopPlace | None = None


@dataclass(frozen=True, slots=True)
class UntracedSteps:
    """How long steps, or calls, took outside the window; `traced_ms` is of such calls within it."""

    count: Count = 0
    median_ms: Positive | None = None
    of: str = ""
    traced_ms: Positive | None = None


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """How the steps were seen, in the whole run."""

    source: str | None = None
    at: LoopPlace | None = None
    why: str = ""
    seen: Count = 0
    seen_all: bool = True
    candidates: tuple[Candidate, ...] = ()
    discarded: tuple[int, ...] = ()
    untraced: UntracedSteps | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """What the recording lacks, and what to do about it."""

    what: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AgentError:
    """A fault inside the agent; the run did not notice it."""

    where: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRank:
    """Which worker of several a process is; `place` is its number among the recordings of a run."""

    name: str = ""
    rank: Count | None = None
    size: Count | None = None
    place: Count | None = None


@dataclass(frozen=True, slots=True)
class AgentState:
    """One Python process of the run; all is absent until it is known."""

    pid: int | None = None
    host: str = ""
    argv: tuple[str, ...] = ()
    rank: WorkerRank | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    wanted: str = ""  # what of TensorFlow or Keras was imported first
    state: str = ""  # of the window: "open", "done", ...
    window: TracedWindow | None = None
    steps: StepsSeen | None = None
    missing: tuple[Missing, ...] = ()
    errors: tuple[AgentError, ...] = ()
    finished: bool = False  # Python came to an end of its own
