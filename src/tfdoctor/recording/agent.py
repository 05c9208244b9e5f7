"""agent.json: the state of a Python process of the run, written by its agent during the run and at its end."""

from collections.abc import Mapping

from tfdoctor.recording.typed import Amount, Count, Positive
from tfdoctor.terms.record import Record, field

LoopPlace = tuple[str, int]  # A line of the user's source: its file and number
LongUntraced = tuple[int, float]  # The number of a step outside of the window, and its duration in ms


class TracedWindow(Record):
    """The traced steps: their numbers, the loop they belong to, and when tracing began and ended."""

    warmup: Count = 0
    steps: Count = 0
    first_step: Count = 0
    calls: Count = 0
    source: str = ""
    started_unix_ns: Count = 0
    stopped_unix_ns: Count | None = None
    contains_warmup: bool = False
    stopped_by: str = ""
    read_bytes: Count | None = None  # by the process meanwhile; None if the system does not count it
    read_calls: Count | None = None
    at: LoopPlace | None = None


class WindowCost(Record):
    """What one traced window cost the run, and why it was closed."""

    steps: Count = 0
    stopped_by: str = ""
    start_s: Amount = 0.0
    stop_s: Amount = 0.0  # with the writing of the trace
    slowed_s: Amount = 0.0  # what its steps took longer than the untraced ones before
    program_s: Amount = 0.0  # the description of the program after it
    run_s: Amount = 0.0  # of the run until the profiler stopped; 0 is unknown
    too_long: bool = False  # whether the profiler took longer to start and to stop than it may

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.start_s + self.stop_s + self.slowed_s + self.program_s


class Candidate(Record):
    """A loop that trained; the recording may use the steps of another."""

    source: str = ""
    steps: Count = 0
    calls: Count = 0
    at: LoopPlace | None = None


# Times the median traced step from which untraced ones were slowed by something else: 1.19 is common on a machine
# that other programs use as well.
SLOWED = 1.25
# Untraced passes over the data that show how one begins: the first of the run begins slowly for other reasons.
FEWEST_PASSES = 2
# Times the median from which an untraced step is told by its number, and how many of them at most.
LONG_TOLD, MOST_TOLD = 2.0, 40


class UntracedSteps(Record):
    """The duration of steps or calls outside the window."""

    count: Count = 0
    median_ms: Positive | None = None
    of: str = ""
    traced_ms: Positive | None = None  # the median of the same calls within the window
    total_ms: Positive | None = None  # of all `count` of them
    long: tuple[LongUntraced, ...] = ()  # of at least twice the median, at most the 40 longest

    def __post_init__(self) -> None:
        """Refuse a time of no steps."""
        if not self.count and (self.median_ms or self.total_ms or self.long):
            raise ValueError("no steps have no time")

    @property
    def beyond(self) -> float | None:
        """The share of their time, 0 to 1, beyond the median step for each of them; None is unknown."""
        if not (self.total_ms and self.median_ms):
            return None
        return max(0.0, 1.0 - self.count * self.median_ms / self.total_ms)

    @property
    def mean_ms(self) -> float | None:
        """The mean of their times; None is unknown."""
        return self.total_ms / self.count if self.total_ms and self.count else None

    def contradict(self, share: float, steps: int, median_ms: float, apart_ms: float = 0.0) -> bool:
        """Whether they lack what long steps add to so many traced steps: that share of the traced time, 0 to 1.

        They do if they are as many, and have less than half of it, without the ``apart_ms`` of long ones of another
        cause. Where the median untraced step takes longer than the traced one, in ms, other programs slowed these
        steps, and nothing can be said.
        """
        if not self.total_ms or self.beyond is None or self.median_ms is None or self.count < steps:
            return False
        beyond = self.beyond - apart_ms / self.total_ms
        return beyond < share / 2 and self.median_ms <= SLOWED * median_ms

    def begin_passes_as_usual(self, pass_steps: int, stalled_ms: float) -> bool:
        """Whether most passes over the data, of so many steps, begin without a step nearly that long.

        That is one of half as much time beyond the median. False where it is unknown: of long steps only the
        longest are told.
        """
        passes = self.count // pass_steps
        if not self.total_ms or not self.median_ms or passes < FEWEST_PASSES:
            return False
        long_ms = (self.median_ms + stalled_ms) / 2
        all_told = len(self.long) < MOST_TOLD or min(ms for _, ms in self.long) <= long_ms
        as_long_told = long_ms >= LONG_TOLD * self.median_ms
        begun = sum(ms >= long_ms and number % pass_steps in (0, pass_steps - 1) for number, ms in self.long)
        return all_told and as_long_told and begun < passes / 2


TimedType = tuple[str, int, float]  # A type of operations, their number and their time in ms


class GradientsTaken(Record):
    """A line that takes gradients outside of tf.functions, and what one of its calls did for nothing."""

    at: LoopPlace | None = None
    traced: Count = 0  # its calls in the traced steps
    followed: bool = False  # False: nothing else is known, as no use of its gradients was seen,
    too_few: bool = False  # or there were too few calls before the traced steps
    variables: Count = 0  # that the tape followed
    unused: Count = 0  # those of them whose gradients went into no operation and were not read
    returned: Count = 0  # those of these that the call returned
    names: tuple[str, ...] = ()
    operations: Count = 0  # that only these needed
    types: tuple[TimedType, ...] = ()
    python_ms: float = 0.0  # between them
    calls_ms: float = 0.0  # in them
    step_ms: float = 0.0  # to the line's next call
    step_calls_ms: float = 0.0
    step_operations: Count = 0

    @property
    def is_timed(self) -> bool:
        """Whether its step was measured."""
        return bool(self.step_ms and self.step_operations)


class StepsSeen(Record):
    """How the agent counted the steps of the whole run."""

    source: str | None = None
    at: LoopPlace | None = None
    seen: Count = 0
    rounds: Count = 0  # how often their loop was entered; 0 is unknown
    seen_all: bool = True
    candidates: tuple[Candidate, ...] = ()
    discarded: tuple[int, ...] = ()
    untraced: UntracedSteps | None = None
    gradients: tuple[GradientsTaken, ...] | None = None  # None: not recorded


class Missing(Record):
    """Data that the recording lacks, with the reason and the advice."""

    what: str = ""
    why: str = ""


class AgentError(Record):
    """A fault inside the agent; the run did not notice it."""

    where: str = ""
    error: str = ""


class WorkerRank(Record):
    """Which worker of several a process is; `place` is its number among the recordings of a run."""

    name: str = ""
    rank: Count | None = None
    size: Count | None = None
    place: Count | None = None


class AgentState(Record):
    """One Python process of the run; fields are empty until they are known."""

    pid: int | None = None
    host: str = ""
    argv: tuple[str, ...] = ()
    worker: str = ""  # how it was started, where it does a part of another one's work: "fork", "spawn", "loky"
    parent: int | None = None  # its process then
    rank: WorkerRank | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""  # of Keras, where its steps are not recorded: "jax"
    wanted: str = ""  # the module of TensorFlow or Keras that was imported first
    state: str = ""  # of the window: "open", "done", ...
    window: TracedWindow | None = None
    steps: StepsSeen | None = None
    costs: tuple[WindowCost, ...] = ()
    missing: tuple[Missing, ...] = ()
    errors: tuple[AgentError, ...] = ()
    finished: bool = False  # Python exited by itself
