"""Runs made by hand: a program whose step and whose effect of each change are known."""

from dataclasses import field

from tests.cases import sure
from tests.kit import *
from tfdoctor.diagnosis.trials import Measured, Trial, Trials
from tfdoctor.trial import trial
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import Variant
from tfdoctor.trial.running import Runner, TrialRun
from tfdoctor.trial.schedule import Pairs
from tfdoctor.trial.times import Loop, TrainedState, times_of

Tick = Callable[[float], object]  # Lets time pass


def loop(spans_ms: Sequence[float], **changes: Any) -> dict[str, Any]:
    """Return a loop as the agent writes it."""
    starts = np.concatenate([[0.0], np.cumsum(spans_ms)]) * 1e6
    entry = {
        "source": "keras-fit", "starts_ns": starts.astype(int).tolist(), "sizes": [1] * len(starts), "updates": [],
        "epoch_ends": [], "epoch_steps": None, "state": None, "warmup": 21, "fewest": 15,
    }  # fmt: skip
    return entry | changes


@dataclass
class Machine:
    """Runs a made-up program: a variant multiplies its step by a factor, a set by those of its parts or its own."""

    factors: dict[str, float]
    seconds: float = 15.0
    errors: dict[str, str] = field(default_factory=dict)
    late: dict[str, TrialRun] = field(default_factory=dict)  # what its second run gives
    between: float = 0.005  # runs differ by this share
    digests: dict[str, str] = field(default_factory=dict)  # "*" in one: other weights in each run
    examples: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of its batches, else 32
    finite: bool = True
    updates: int = 1  # of the weights, a step
    uncounted: str = ""  # the change after which these cannot be counted
    at_once: int = 1  # runs
    tick: Tick = lambda _: None
    order: list[str] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def run(self, variant: Variant, _enough: Enough) -> TrialRun:
        self.order.append(variant.name)
        self.tick(self.seconds)
        if why := self.errors.get(variant.name):
            return TrialRun(why=why, error=why, seconds=self.seconds)
        if variant.name in self.late and self.order.count(variant.name) == 2:
            return self.late[variant.name]
        parts = np.prod([self.factors.get(part, 1.0) for part in variant.name.split(" + ")])
        step = 10 * self.factors.get(variant.name, float(parts)) * np.exp(self.random.normal(0, self.between))
        spans = step * np.exp(self.random.normal(0, 0.02, 300))
        digest = self.digests.get(variant.name, "same").replace("*", str(len(self.order)))
        updates = [[step, step * self.updates] for step in (20, 296) if variant.name != self.uncounted]
        made = loop(spans.tolist(), examples=[*self.examples.get(variant.name, [32] * 4)], updates=updates)
        state = TrainedState(20, digest, dict(enumerate(_losses(digest), 1)))
        return TrialRun(*times_of(Loop.read(made)), state, finite=self.finite, seconds=self.seconds)


@dataclass
class Program:
    """A program of 60 s whose steps are not seen, of which each variant takes a share."""

    shares: dict[str, float]
    errors: dict[str, str] = field(default_factory=dict)
    tick: Tick = lambda _: None
    at_once: int = 1
    order: list[str] = field(default_factory=list)
    plans: list[Enough] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def run(self, variant: Variant, enough: Enough) -> TrialRun:
        self.order.append(variant.name)
        self.plans.append(enough)
        seconds = 60.0 * self.shares.get(variant.name, 1.0) * float(np.exp(self.random.normal(0, 0.003)))
        self.tick(seconds)
        return TrialRun(why="no loop", error=self.errors.get(variant.name, ""), seconds=seconds)


def stage_of(machine: Any) -> Runner:
    """Return where such runs happen."""

    def runs(variants: Sequence[Variant], enough: Enough) -> Sequence[TrialRun]:
        return [machine.run(one, enough) for one in variants]

    made: Any = SimpleNamespace(runs=runs, at_once=lambda: machine.at_once, layer=True)
    stage: Runner = made
    return stage


def plain(name: str, **changes: Any) -> Variant:
    """Return a change that must leave the weights as they are."""
    return Variant(name, **{"exact": True, "rules": (name,), **changes})


def conduct(
    machine: Any,
    *variants: Variant | str,
    minutes: float = 60.0,
    rivals: Pairs = frozenset(),
    say: Callable[[str], object] = str,
) -> tuple[Trials, list[str]]:
    """Try changes of a program; return what was measured, and the names of what is kept."""
    changes = [plain(one) if isinstance(one, str) else one for one in variants]
    trials, kept = trial.conduct(stage_of(machine), trial.Agenda(changes, join, minutes, say, rivals))
    return trials, [variant.name for variant in kept]


def _losses(digest: str) -> Sequence[float]:
    """Return the losses of a run: nearly the same for weights that are others in each run."""
    if digest.isdecimal():
        return [loss * (1 + int(digest) % 3 / 200) for loss in (2.0, 1.5, 1.2)]
    return (2.0, 1.5, 1.2) if digest == "same" else (2.1, 1.6, 1.3)


def row(trials: Trials, name: str) -> Trial:
    return next(one for one in trials.rows if one.name == name)


def measured(trials: Trials, name: str) -> Measured:
    return sure(row(trials, name).measured)


def until(holds: Callable[[], bool]) -> bool:
    """Wait for something, at most half a minute."""
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def join(parts: Sequence[Variant]) -> Variant:
    return Variant(
        " + ".join(part.name for part in parts),
        exact=all(part.exact for part in parts),
        reorders=any(part.reorders for part in parts),
    )
