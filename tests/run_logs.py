"""Logs of runs in a few lines: what a process does one thing after another, as the recorder would write it.

    run = Run()
    run.python(2.0, "prepare.py:10", calls="pandas.DataFrame.iterrows")
    with run.fit("train.py:20"), run.epoch("train.py:20"):
        run.trace(1.5, "train.py:20", "train_step", trains=True)
        run.steps(100, ms=5.0, at="train.py:20")
    log = run.log()

Times are seconds unless a name says ms.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from operator import methodcaller

from tests.builders import recording
from tests.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest, RunTimes
from tfdoctor.recording.run_log import (
    Bucket,
    BucketSteps,
    CallPlace,
    Census,
    FunctionTrace,
    KeptStatement,
    Line,
    LongStep,
    ProcessEnd,
    RunCounters,
    RunLog,
    RunProcess,
    SeenStack,
    Span,
)
from tfdoctor.terms.kinds import RunCall, RunWork, StepSource

FOLDER = "/job"
PID = 7
START_NS = 5_000_000_000
OWN_LOOP = StepSource.REPEATED_CALL

ENTERING = 0.02
"""Share of a step of a loop of the user's before it is known that the function trains."""


def place(at: str | None) -> Line | None:
    """Return "train.py:20" as a line of a file in the folder of the run."""
    if at is None:
        return None
    path, _, line = at.rpartition(":")
    return f"{FOLDER}/{path}", int(line)


@dataclass(frozen=True)
class Moment:
    """Some time in one call, with the stack that a sample in it shows."""

    start: float
    end: float
    call: int
    stack: SeenStack


@dataclass
class Run:
    """What a process does; each method takes time, one after another."""

    began: float = 0.2
    width: float = 0.5
    every: float = 0.04
    source: StepSource = OWN_LOOP  # of the steps that are not fit's
    now: float = 0.0
    moments: list[Moment] = field(default_factory=list)
    places: dict[tuple[Any, ...], CallPlace] = field(default_factory=dict)
    under_way: list[CallPlace] = field(default_factory=list)
    entered: list[tuple[float, int]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    traces: list[FunctionTrace] = field(default_factory=list)
    stepped: list[tuple[float, float, Line | None, bool]] = field(default_factory=list)
    long_steps: list[LongStep] = field(default_factory=list)
    censuses: list[Census] = field(default_factory=list)
    kept: list[KeptStatement] = field(default_factory=list)
    counters: list[tuple[float, RunCounters]] = field(default_factory=list)
    passes: list[tuple[float, Line | None]] = field(default_factory=list)
    fresh: bool = True  # the next step begins a pass over the data
    between: CallPlace | None = None  # under way since the last step of a loop of the user's

    def __post_init__(self) -> None:
        self.now = max(self.now, self.began)
        self.under_way.append(self._place(RunCall.SCRIPT, None, "", None))

    # What a run consists of

    def python(self, seconds: float, at: str | None = None, **stack: Any) -> None:
        """Let Python run in the call under way; ``stack`` has fields of SeenStack."""
        lines = {"at": place(at), "caller": place(stack.pop("caller", None))}
        top = self.under_way[-1]
        call = (self.between or top).id if top.call is RunCall.SCRIPT else top.id
        shown = SeenStack(id=0, call=call, **{"function": "<module>", **lines, **stack})
        self.moments.append(Moment(self.now, self.now + seconds, call, shown))
        self.now += seconds

    @contextmanager
    def call(self, kind: RunCall, at: str | None = None, name: str = "", **span: Any) -> Iterator[None]:
        """Make a call, which is told alone if it is one that the recorder tells alone."""
        made = self._place(kind, place(at), name, self.under_way[-1].id)
        self.under_way.append(made)
        if kind not in {RunCall.BETWEEN, RunCall.TRACE}:  # which the recorder does not count
            self.entered.append((self.now, made.id))
        start = self.now
        yield
        self.under_way.pop()
        if kind not in {RunCall.STEP, RunCall.BETWEEN, RunCall.FUNCTION, RunCall.TRACE}:
            self.spans.append(Span(made.id, start, self.now, **span))

    def fit(self, at: str) -> AbstractContextManager[None]:
        return self.call(RunCall.FIT, at, "Model.fit")

    def epoch(self, at: str) -> AbstractContextManager[None]:
        self.fresh = True
        return self.call(RunCall.EPOCH, at)

    def during(self, kind: RunCall, seconds: float, at: str, name: str = "", **span: Any) -> None:
        """Make a call that takes some time itself."""
        with self.call(kind, at, name, **span):
            self.python(seconds, at)

    def trace(
        self, seconds: float, at: str, name: str, *, trains: bool = False, made: int = 1, **stack: Any
    ) -> None:
        """Call a function that is traced then; a training one is a step as well; ``stack`` as for python."""
        outer = RunCall.FUNCTION
        if trains:
            self._begins(at)
            if self._source == OWN_LOOP:
                self.entered.append((self.now, self._step(at).id))
            else:
                outer = RunCall.STEP
        elif self.under_way[-1].call is not RunCall.SCRIPT:
            self._trace(seconds, at, name, made, **stack)
            return
        with self.call(outer, at, name if outer is RunCall.FUNCTION else self._source):
            self._trace(seconds, at, name, made, **stack)
        self._after_step(trains=trains)

    def _trace(self, seconds: float, at: str, name: str, made: int, **stack: Any) -> None:
        with self.call(RunCall.TRACE, at, name):
            self.traces.append(
                FunctionTrace(name, place(at), self.now, seconds * 1000, made, self.under_way[-1].id)
            )
            self.python(seconds, at, **stack)

    def steps(
        self, count: int, ms: float, at: str, *, between_ms: float = 0.0, traced: bool = False,
        **stack: Any,
    ) -> None:  # fmt: skip
        """Train some steps; ``stack`` is what samples between them show."""
        own = self._source == OWN_LOOP
        self._begins(at)
        for _ in range(count):
            entering = ms * ENTERING if own else 0.0
            with self.call(RunCall.FUNCTION, at, "train_step") if own else nullcontext():
                self.python(entering / 1000, at)
            with self.call(RunCall.STEP, at, self._source):
                self.python((ms - entering) / 1000, at)
            self._after_step(trains=True)
            if between_ms:
                with self.call(RunCall.BETWEEN, self._outer_line):
                    self.python(between_ms / 1000, at, **{"looped": own, **stack})
            self.stepped.append((self.now, ms + between_ms, place(at), traced))

    def pass_over(self) -> None:
        """Have the data end: what follows is the script again."""
        self.between, self.fresh = None, True

    def _begins(self, at: str) -> None:
        if self.fresh:
            self.passes.append((self.now, place(at)))
        self.fresh = False

    @property
    def _source(self) -> StepSource:
        kinds = {made.call for made in self.under_way}
        return StepSource.KERAS_FIT if RunCall.FIT in kinds else self.source

    @property
    def _outer_line(self) -> str | None:
        at = self.under_way[-1].at
        return f"{at[0].removeprefix(FOLDER + '/')}:{at[1]}" if at else None

    def _step(self, at: str) -> CallPlace:
        return self._place(RunCall.STEP, place(at), self._source, self.under_way[-1].id)

    def _after_step(self, *, trains: bool) -> None:
        if trains and self._source == OWN_LOOP:
            outer = self.under_way[-1]
            self.between = self._place(RunCall.BETWEEN, outer.at, "", outer.id)

    def long_step(self, ms: float, usual_ms: float, at: str, *, first: bool = False) -> None:
        """Train a step that takes longer than the usual one."""
        number = len(self.stepped)
        self.long_steps.append(LongStep(number, self.now, ms, usual_ms, first))
        self.steps(1, ms, at)

    def count(self, **counters: int) -> None:
        """Read counters."""
        self.counters.append((self.now, RunCounters(**counters)))

    # What the recorder makes of it

    def log(self, why: str | None = "exit", **end: Any) -> RunLog:
        """Return the log; ``why`` is None for a process that was killed."""
        stacks: dict[SeenStack, int] = {}
        buckets = tuple(self._buckets(stacks))
        return RunLog(
            process=RunProcess(PID, 1_700_000_000_000_000_000, START_NS, self.began),
            calls={made.id: made for made in self.places.values()},
            stacks={number: replace(stack, id=number) for stack, number in stacks.items()},
            buckets=buckets,
            spans=tuple(self.spans),
            traces=tuple(self.traces),
            long_steps=tuple(self.long_steps),
            censuses=tuple(self.censuses),
            kept=tuple(self.kept),
            end=ProcessEnd(self.now, why, **end) if why else None,
        )

    def recording(self, why: str | None = "exit", **manifest: Any) -> Recording:
        """Return the recording of the run, which the launcher saw end when its log does."""
        started = START_NS - 10_000_000
        times = RunTimes(started, START_NS + round(self.now * 1e9), pid=PID)
        described = Manifest(**{"cwd": FOLDER, "times": times, **manifest})
        return replace(recording(manifest=described), run=self.log(why))

    def _place(self, kind: RunCall, at: Line | None, name: str, parent: int | None) -> CallPlace:
        key = (kind, at, name, parent)
        return self.places.setdefault(key, CallPlace(len(self.places), kind, at, name, parent))

    def _buckets(self, stacks: dict[SeenStack, int]) -> Iterator[Bucket]:
        start = self.began
        last_sample = self.began
        samples = self._samples()
        seen = next(samples, None)
        while start < self.now - 1e-9:
            end = start + self.width if start + self.width < self.now - 1e-6 else self.now
            ms: dict[str, float] = defaultdict(float)
            counts: Counter[str] = Counter()
            while seen is not None and seen[0] < end:
                number = str(stacks.setdefault(seen[1], len(stacks)))
                ms[number] += (seen[0] - last_sample) * 1000
                counts[number] += 1
                last_sample = seen[0]
                seen = next(samples, None)
            yield self._bucket(start, end, dict(ms), dict(counts))
            start = end

    def _bucket(self, start: float, end: float, stacks: dict[str, float], samples: dict[str, int]) -> Bucket:
        calls: dict[str, float] = defaultdict(float)
        for moment in _between(self.moments, start, end, lambda moment: moment.end):
            overlap = min(end, moment.end) - max(start, moment.start)
            if overlap > 0:
                calls[str(moment.call)] += overlap * 1000
        entered = Counter(
            str(call) for at, call in _between(self.entered, start, end, lambda one: one[0]) if start <= at < end
        )
        counters = [found for at, found in self.counters if start <= at < end]
        return Bucket(
            start, end, dict(calls), dict(entered), stacks, samples,
            tuple(self._steps(start, end)), counters[-1] if counters else RunCounters(),
        )  # fmt: skip

    def _steps(self, start: float, end: float) -> Iterator[BucketSteps]:
        loops: dict[tuple[Line | None, bool], list[float]] = defaultdict(list)
        for at, ms, line, traced in _between(self.stepped, start, end, lambda one: one[0]):
            if start < at <= end:
                loops[line, traced].append(ms)
        passes = Counter(line for at, line in self.passes if start <= at < end)
        for (line, traced), each in loops.items():
            yield BucketSteps(
                self._loops.get(line, OWN_LOOP),
                line,
                len(each),
                len(each),
                sum(each),
                tuple(each),
                {},
                traced,
                passes.pop(line, 0),
            )

    @property
    def _loops(self) -> dict[Line | None, str]:
        return {made.at: made.name for made in self.places.values() if made.call is RunCall.STEP}

    def _samples(self) -> Iterator[tuple[float, SeenStack]]:
        """Yield samples at uneven times, so that they do not always meet the same part of a loop."""
        number, moments = 0, iter(self.moments)
        moment = next(moments, None)
        while moment is not None:
            at = self.began + (number + (number * 0.618034) % 1.0) * self.every
            while moment is not None and moment.end <= at:
                moment = next(moments, None)
            if moment is not None:
                yield at, moment.stack
            number += 1


Timed = TypeVar("Timed")


def _between(ordered: Sequence[Timed], start: float, end: float, time: Callable[[Timed], float]) -> Sequence[Timed]:
    """Return what has its time from start to end, and what comes next, of entries in order."""
    return ordered[bisect_left(ordered, start, key=time) : bisect_right(ordered, end, key=time) + 1]


IMPORTING = {"work": RunWork.IMPORTING}
BUILDING = {"work": RunWork.BUILDING}


# The same as rows of values, for cases: made(python(1.0, "train.py:3"), fit("train.py:9", epoch("train.py:9", …)))

Act = Callable[[Run], object]

count, during, long_step, python, steps, traces = (
    partial(methodcaller, name) for name in ("count", "during", "long_step", "python", "steps", "trace")
)
pass_over: Act = Run.pass_over


def made(*acts: Act, to: Run | None = None) -> Run:
    """Return a run that does this, one after another."""
    run = to or Run()
    for act in acts:
        act(run)
    return run


def within(kind: RunCall, at: str, name: str, *acts: Act, **span: Any) -> Act:
    """A call in which this is done."""

    def act(run: Run) -> None:
        with run.call(kind, at, name, **span):
            made(*acts, to=run)

    return act


def fit(at: str, *acts: Act) -> Act:
    return within(RunCall.FIT, at, "Model.fit", *acts)


def epoch(at: str, *acts: Act) -> Act:
    def act(run: Run) -> None:
        with run.epoch(at):
            made(*acts, to=run)

    return act
