"""What a recording knows while it goes on: the loops seen, and the window that is open or was traced."""

from __future__ import annotations

import enum

from ..process.budget import CaptureBudget
from ..process.kept import threads
from .function_traces import FunctionTraces
from .steps import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager

    from ..process.by_identity import Notes
    from ..process.declared import AgentPlan
    from ..process.journal import Journal
    from ..process.marks import Marks
    from ..program.program import ProgramFile
    from ..program.registry import Registry
    from .captures import Capture
    from .profiler import ProfilerApi, Session
    from .steps import StepCounter

AFTERWARDS = 200  # Steps to count after the window, for how long they take untraced; then the hooks rest


class State(str, enum.Enum):  # noqa: UP042  # Python 3.9 has no StrEnum
    """Where the tracing stands; the values stand in the state file."""

    WAITING = "waiting"  # for a step that is worth a window
    OPEN = "open"  # the profiler runs
    SAMPLING = "sampling"  # it runs on, for samples of the stack: nothing is measured any more
    DONE = "done"  # nothing more is traced


# In Python 3.11, to read a member of an enumeration calls Python; each step asks for some.
WAITING, OPEN, SAMPLING, DONE = State
# The states that may follow one; with the next recording, all begins at WAITING.
FOLLOWING = {WAITING: (OPEN, DONE), OPEN: (SAMPLING, WAITING, DONE), SAMPLING: (WAITING, DONE), DONE: (DONE,)}
PROFILED = (OPEN, SAMPLING)  # The states in which a profiler runs


class NoWork:
    """A context that does nothing."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class Tracing:
    """The loops of a process and its windows, for those that open and close them."""

    def __init__(self, plan: AgentPlan, log: Journal, registry: Registry, program: ProgramFile) -> None:
        self.plan, self.log, self.registry, self.program = plan, log, registry, program
        self.budget = program.budget = CaptureBudget()
        self.profiler: ProfilerApi | None = None
        # What is known of traced graphs:
        self.graph_marks: Notes[Marks] = {}
        self.traces = FunctionTraces(log)
        self.lock = threads.RLock()
        self.before_window: list[Callable[[StepCounter], object]] = []  # some calls before that
        self.before_open: list[Callable[[], object]] = []  # once, just before the profiler starts
        self.after_start: list[Callable[[], object]] = []  # each time the profiler has started
        self.after_open: list[Callable[[StepCounter], object]] = []  # when that was at a step
        self.before_close: list[Callable[[], object]] = []  # ends of the steps under way
        self.after_steps: list[Callable[[], object]] = []  # then: nothing is measured any more
        self.before_sampling: list[Callable[[], object]] = []  # the calls after the window begin
        self.before_stop: list[Callable[[], object]] = []  # just before the profiler stops
        # Whether the stack shows too little, and whether to wait no longer for more:
        self.samples_wanted: Callable[[], bool] = lambda: False
        self.samples_late: Callable[[float], bool] = lambda _: True
        self.returned: Callable[[object], object] | None = None  # wants what a step returned
        self.rests: Callable[[bool], object] = lambda _: None  # has what counts steps rest, or begin again
        # What is done meanwhile is none of the script's time:
        self.own_work: Callable[[], AbstractContextManager[None]] = NoWork
        self.reset()

    def reset(self) -> None:
        """Forget all steps: a new recording begins, or a fork of the process its own."""
        self.state = WAITING  # changed by `enter` alone
        self.quiet = False
        self.sources: dict[tuple[str, Hashable], StepCounter] = {}
        self.training_keys: set[Hashable] = set()  # the datasets that train
        self.calling: object = None  # the outermost tf.function being called, by whichever thread
        # The tf.function with a training loop inside that is running: since when, and in which thread.
        self.looping: tuple[float, int] | None = None
        self.session: Session | None = None
        self.capture: Capture | None = None  # the one under way
        self.kept: Capture | None = None  # the best one so far
        self.captures = self.refusals = 0
        self.lent = 0  # calls of the script's under way that have the profiler
        self.interrupted = False  # the script's own profiler cut a window of ours short
        self.stop: int = NEVER  # the step at which to close
        self.ask_cost: int = NEVER  # the step at which to ask whether it has cost enough
        self.deadline: float | None = None  # or the time
        self.leave = False  # --stop-after: the next step ends the run
        self.budget.clear()
        self.log.state["costs"] = self.budget.windows

    @property
    def quiet(self) -> bool:
        """Whether all is done, and enough was seen after it: no step is counted any more."""
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        self.rests(quiet)

    @property
    def wanted(self) -> bool:
        """Whether steps are to be traced at all."""
        return self.plan.get("trace", True)

    def enter(self, state: State) -> None:
        """Go on to a state: every change of it is one of `FOLLOWING`.

        Raises:
            RuntimeError: a defect, for no such change is possible.
        """
        if state not in FOLLOWING[self.state]:
            raise RuntimeError(f"{state.value} cannot follow {self.state.value}")
        self.state = state

    def rest(self) -> None:
        """Let every source count on for a while, without asking."""
        self.enter(DONE)
        for source in self.sources.values():
            source.alarm = 0 if self.leave else source.seen + AFTERWARDS
