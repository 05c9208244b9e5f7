"""The agent in this process: the traced window and what works together with it, and the hooks of all."""

from __future__ import annotations

from .loops import ThreadLoops, Watch
from .program.program import ProgramFile
from .program.registry import Registry
from .run.phases import OwnWork
from .run.recorder import RunRecorder
from .stream import WINDOW, Stream
from .trial.timing import StepTiming
from .window.steps import StepKind
from .window.window import TraceWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .process.declared import AgentPlan, Foreign
    from .process.imports import Watcher
    from .process.journal import Journal


class Installed:
    """The parts of the agent, which the hooks share."""

    finder: Watcher  # set once the hooks are known

    def __init__(self, plan: AgentPlan, log: Journal, recorder: RunRecorder | None = None) -> None:
        self.log, self.recorder = log, recorder or RunRecorder(log)
        clock = self.recorder.clock
        self.registry = Registry(log)
        self.stream = Stream(log)
        self.program = ProgramFile(self.registry, traced=plan.get("trace", True))
        self.window = TraceWindow(plan, log, self.registry, self.program)
        self.timing = StepTiming(plan, self.window) if plan.get("trial") else None
        self.local = ThreadLoops(self.window)
        self.watch = Watch(self.window)
        self.trainers: list[Foreign] = []  # of each Keras that is imported
        self.window.rests = lambda rests: self.stream.rest(WINDOW, rests=rests)
        self.window.own_work = lambda: OwnWork(clock)
        self.window.budget.run_s = self.recorder.seconds
        self.registry.unused_gradients.wanted = not plan.get("trial")
        self.window.profiles = self._profiles
        # Samples cannot separate a session's calls from the rest:
        self.window.training = lambda source: None if source.kind is StepKind.SESSION else self.local.loops
        self.program.python = self.window.samples.describe

    def _profiles(self, *, running: bool) -> None:
        self.recorder.clock.profiled = running
        if running:
            self.watch.begin()

    def again(self, plan: AgentPlan) -> None:
        """Begin another recording in this process."""
        window = self.window
        window.plan = plan
        self.log.processes = plan["processes"]
        self.log.begin()
        self.registry.again()
        self.program.described, self.program.traced = False, plan.get("trace", True)
        window.reset()
        window.before_close.clear()
        self.local = ThreadLoops(window)  # of all threads
        self.watch.working_since = None
        if plan.get("seconds"):
            self.watch.begin()
        window.save()

    def end(self) -> None:
        """The recording ends before its process does: say all there is to say, and rest."""
        self.program.end()
        self.log.state["finished"] = True
        self.window.save()
        self.window.rest()
        self.registry.unused_gradients.rest()
        self.window.samples.release()
        self.window.quiet = self.registry.written = True
        self.log.pid = None  # what comes now belongs to no recording

    def after_fork(self) -> None:
        """A fork that was made before TensorFlow was in use trains for itself: begin a recording in it."""
        self.log.begin()
        self.window.after_fork()
        if not self.window.plan.get("trial"):
            self.recorder.begins_in_fork()
