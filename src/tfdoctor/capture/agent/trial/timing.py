"""A trial's run: when each step began and what it left behind; no window opens and no profiler runs."""

from __future__ import annotations

import array

from ..process.journal import guarded, replace
from ..process.kept import json, os, time
from ..program import training_state
from ..window.steps import StepKind
from ..window.window import DONE
from .settings import RunnerSettings
from .without import TakenOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..process.declared import AgentPlan, TrialPlan
    from ..window.steps import StepCounter
    from ..window.window import TraceWindow


TIMING = "timing.json"


class StepTimes:
    """The steps of one loop: when each call began, in ns, and how many steps it held."""

    def __init__(self, source: StepCounter) -> None:
        self.source = source
        self.starts, self.sizes = array.array("q"), array.array("l")
        self.numbers = array.array("q")
        self.state: Mapping[str, object] | None = None  # before a certain step
        self.updates: list[tuple[int, int]] = []  # (steps begun, updates of the optimizers by then)
        self.count_at = 0  # the step at which to count them next
        self.epoch_ends: list[int] = []  # steps begun by then
        self.examples: list[int] = []  # of the first batches that were seen

    def note(self, number: int, k: int) -> None:
        """A call of k steps begins; one that was begun at this number before was none: it had no batch."""
        if self.numbers and self.numbers[-1] >= number:
            self.epoch_ends.append(number)
        while self.numbers and self.numbers[-1] >= number:
            for column in (self.numbers, self.starts, self.sizes):
                column.pop()
        self.numbers.append(number)
        self.starts.append(time.perf_counter_ns())
        self.sizes.append(k)

    def since(self, warmup: int) -> tuple[float, int, int]:
        """Return the seconds, the steps and the calls since the warm-up."""
        numbers = self.numbers
        first = next((i for i, number in enumerate(numbers) if number >= warmup), None)
        if first is None:
            return 0.0, 0, 0
        seconds = (self.starts[-1] - self.starts[first]) / 1e9
        return seconds, numbers[-1] - numbers[first], len(numbers) - 1 - first


SEEN = (StepKind.FIT, StepKind.DATA)  # Loops whose batches pass by the agent
# Time from one look at whether the run has enough to the next: a look costs microseconds, a slow step seconds.
LOOK_NS = 50_000_000


class StepTiming:
    """Takes the time of every step, and ends the run when it has enough: the window opens none of its own then."""

    def __init__(self, plan: AgentPlan, window: TraceWindow) -> None:
        trial = plan["trial"]
        if trial is None:
            raise ValueError("the plan is not that of a trial")
        self.trial: TrialPlan = trial
        self.window, self.log, self.registry = window, window.log, window.registry
        self.warmup = trial["compare_at"] + 1  # steps: reading the weights ends in the step after
        self.times: dict[StepCounter, StepTimes] = {}
        self.began = 0.0  # when the first step began, on the monotonic clock
        self.finite: bool | None = None  # whether the weights are, when they were last there
        self.ended_it = False  # whether the run ends because it has enough
        self.looked = 0  # when the last look was, on the clock of the steps
        self.epoch_steps: dict[StepCounter, int] = {}
        self.results = training_state.ReturnedLosses(trial["compare_at"])
        self.updates = training_state.Updates()
        self.settings = RunnerSettings(plan["variant"])
        part = plan["variant"]["without"]
        self.without = TakenOut(part) if part else None
        window.timing, window.returned = self, self.results.note
        self.registry.written = True  # nothing is described: hooks remember nothing
        self.registry.given.ask_size([], more=False)

    def announce(self, source: StepCounter, total: int) -> None:
        """Know how long an epoch is: the first one fills caches."""
        of_fit = self.registry.fit.get("steps_per_epoch") if source.kind is StepKind.FIT else None
        self.epoch_steps[source] = of_fit or total

    @guarded("time")
    def step(self, source: StepCounter, number: int, k: int) -> None:
        """A call of steps number … number+k-1 begins: note it, and end the run when it has enough."""
        times = self.times.get(source)
        if times is None:
            times = self.times[source] = StepTimes(source)
            self.began = self.began or time.monotonic()
        if number >= self.trial["compare_at"] and times.state is None:
            times.state = self._state(number)
            self.updates.find()
        if number >= times.count_at and times.state is not None:
            self._count(times, number)
            times.count_at = 2 * number
        more = number < self.trial["compare_at"] and source.kind in SEEN
        self.registry.given.ask_size(times.examples, more=more)
        times.note(number, k)
        if times.starts[-1] - self.looked >= LOOK_NS:
            self.looked = times.starts[-1]
            if self._enough(times):
                self._count(times, number)
                self._look_at_weights()  # before the script's functions return: the weights may be theirs
                self.window.leave = self.ended_it = True

    @guarded("weights")
    def _look_at_weights(self) -> None:
        finite = training_state.finite()
        self.finite = self.finite if finite is None else finite

    def _count(self, times: StepTimes, number: int) -> None:
        count = self.updates.count()
        if count is not None:
            times.updates.append((number, count))

    def _state(self, number: int) -> Mapping[str, object]:
        self.window.returned = None
        self._look_at_weights()
        return {"step": number, **training_state.weights(), "losses": self.results.losses()}

    def _enough(self, times: StepTimes) -> bool:
        if times.state is None:
            return False
        spent, most = time.monotonic() - self.began, self.trial["most_seconds"]
        warmup = self.warmup
        if spent < most / 2:  # a first epoch that is longer is no reason to wait for its end
            warmup = max(warmup, self.epoch_steps.get(times.source, 0))
        seconds, steps, calls = times.since(warmup)
        if calls < self.trial["fewest"]:
            return False
        enough = seconds >= self.trial["seconds"] and steps >= self.trial["steps"]
        return enough or spent >= most

    def _loop(self, source: StepCounter) -> dict[str, object]:
        """Return what the trial reads of a loop; what fit was asked for stands for batches that were not seen."""
        times, asked = self.times[source], self.registry.fit.get("batch_size")
        if not times.examples and source.kind is StepKind.FIT and isinstance(asked, int):
            times.examples.append(asked)
        return {
            "warmup": self.warmup,
            "fewest": self.trial["fewest"],
            "source": source.kind.value,
            "starts_ns": list(times.starts),
            "sizes": list(times.sizes),
            "updates": times.updates,
            "epoch_ends": times.epoch_ends,
            "epoch_steps": self.epoch_steps.get(source),  # as far as it is known
            "state": times.state,
            "examples": times.examples,
        }

    def loop_over(self, source: StepCounter) -> None:
        """An epoch of a loop over a dataset has ended."""
        if source in self.times:
            self.times[source].epoch_ends.append(source.seen)

    def over(self) -> None:
        """Write the times at the end of the run."""
        if self.window.state is not DONE:  # the script ended by itself: note how far its optimizers got
            self._look_at_weights()
            for times in self.times.values():
                if times.state is not None:
                    self._count(times, times.source.seen)
        self._write()

    @guarded("times")
    def _write(self) -> None:
        found = {
            "enough": self.ended_it,
            "loops": [self._loop(source) for source in self.times],
            "finite": self.finite,
            "settings": self.settings.summary(),
            "without": self.without.summary() if self.without else None,
        }
        replace(os.path.join(self.log.out, TIMING), json.dumps(found).encode())
