"""The steps of several hosts: which belong together, how far apart they are, and which host is a straggler.

In synchronous training all hosts' steps are equally long: the slow hosts work while the others wait for them
in a collective. So each host's *own work* is compared, step by step: everything but collectives.

A host lags when its own work exceeds the median of the others' by more than chance and by more than the
steps differ among themselves:

- The median excess is tested with the sign test (Conover, Practical Nonparametric Statistics, 3rd ed., 3.4;
  the order statistics give the interval), which assumes no distribution, at the level ALPHA over all hosts
  together (Bonferroni). It assumes that steps are independent of each other.
- The excess must be larger than its own quartile deviation (half the interquartile range), and than MATTERS of
  the step.

It is a *straggler* when the others also spend that time in collectives.
"""

from math import comb, log2

from tfdoctor.facts.kit import *
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.steps.steps import Steps

# Sources of steps (Steps.source) whose numbers count the run's steps, the same on every worker; other sources count
# from the start of the trace.
COUNTED = frozenset(
    [
        StepSource.KERAS_FIT, StepSource.KERAS_TRAIN_ON_BATCH, StepSource.TF_DATA_LOOP, StepSource.REPEATED_CALL,
        StepSource.EAGER_GRADIENT, StepSource.SESSION_RUN, StepSource.MARKERS, StepSource.TPU_STEPS,
    ]
)  # fmt: skip

# A host's own stages: in a collective it may be waiting for the others.
OWN = tuple(stage for stage in Stage if stage is not Stage.COLLECTIVE)
NS_PER_MS = 1_000_000
# Shift between wall clock and monotonic clock from which the wall clock was set: Linux slews both together
# (clock_gettime(2)), and reading one after the other takes microseconds, or a few ms on a busy machine.
STEPPED_MS = 5.0
NEAR = 0.5  # Share of the median step: starts further apart may belong to different steps
# Share of the median step: ends of one step further apart mean that clocks disagree, or that hosts do not train
# synchronously.
DISAGREE = 0.5
ONE_CLOCK = "all hosts ran on one machine and share its clock"
NTP = (
    "this assumes that the machines' clocks agree, as NTP ensures, usually within a millisecond on a local "
    "network; the recording cannot verify this"
)
ALPHA = 0.01  # The highest probability of a false straggler in a job of equal hosts
MATTERS = 0.05  # Share of the step below which a lag is not worth reporting; from there on a saving is a warning
# Share of the lag that the others must spend in collectives at least: they may spend the rest elsewhere, in a
# barrier or in Python.
WAITED = 0.5

Times = NDArray[np.float64]


class HostSteps(Record, kw_only=True):
    """The n steps of one host; times in ms per training step, moments in ns since 1970."""

    numbers: tuple[int, ...]
    counted: bool  # the numbers are those of the run
    parts: Mapping[str, tuple[float, ...]]  # (n,) for each part of Breakdown
    starts_ns: tuple[int, ...] = ()  # (n,) when the training call began; () where that is not known
    ends_ns: tuple[int, ...] = ()  # (n,) when it returned; same
    clock_missing: str = ""  # why these are not known
    machine: str = ""
    boot_ns: int | None = None  # when the machine's monotonic clock began; None where that was not recorded

    @classmethod
    def measure(cls, trace: Trace, recording: Recording, steps: Steps, breakdown: Breakdown) -> Self:
        """Put the steps on the wall clock, where trace and manifest hold it."""
        clocks = recording.manifest.clock if recording.manifest else ()
        offsets = [clock.unix_ns - clock.monotonic_ns for clock in clocks]
        moved, missing = (max(offsets) - min(offsets)) / NS_PER_MS if offsets else 0.0, ""
        if trace.started_unix_ns is None:
            missing = "the trace has no absolute time (TensorFlow 2.3 and 2.4 write none)"
        elif moved > STEPPED_MS:
            missing = f"the clock was set by {moved:.0f} ms during the run"
        start, timed = trace.started_unix_ns or 0, () if missing else steps.steps
        return cls(
            numbers=tuple(step.number for step in steps.steps),
            counted=steps.source in COUNTED,
            parts={str(part): tuple(row[part] for row in breakdown.steps) for part in breakdown.median},
            starts_ns=tuple(start + step.start_ps // 1000 for step in timed),
            ends_ns=tuple(start + step.call_end_ps // 1000 for step in timed),
            clock_missing=missing,
            machine=next(iter(trace.hostnames), ""),
            boot_ns=offsets[0] if offsets else None,
        )

    @property
    def own_ms(self) -> tuple[float, ...]:
        """(n,) the time of the host's own work: all but collectives and unknown time."""
        return tuple(map(sum, zip(*(self.parts[part] for part in OWN), strict=True)))

    @property
    def total_ms(self) -> tuple[float, ...]:
        """(n,) how long the steps took, in ms."""
        return tuple(map(sum, zip(*self.parts.values(), strict=True)))

    @property
    def is_whole(self) -> bool:
        """Whether the trace accounts for at least nine tenths of the steps."""
        return sum(self.parts[UNKNOWN]) <= sum(self.total_ms) / 10


class MatchedBy(StrEnum):
    """How the steps of several hosts were matched."""

    NUMBER = "step number"
    CLOCK = "start time by the hosts' clocks"
    ORDER = "order in the traces (step numbers and clocks are unknown)"


class Matching(Record):
    """The m steps that all hosts have: (m,) places among each host's steps, by the host's name."""

    by: MatchedBy
    places: Mapping[str, tuple[int, ...]]

    @property
    def count(self) -> int:
        """How many steps all hosts have."""
        return len(next(iter(self.places.values()), ()))

    def table(self, values: Mapping[str, Sequence[float]]) -> NDArray[Any]:
        """Return (hosts, m) of what each host has one value of per step, the hosts by name."""
        return np.array([np.array(values[name])[list(self.places[name])] for name in sorted(values)])


def match(hosts: Mapping[str, HostSteps]) -> Matching:
    """Match by number where the numbers are the run's, else by the clock, else in their order."""
    if len(hosts) < 2:  # noqa: PLR2004 - nothing to match
        return Matching(MatchedBy.ORDER, {})
    if all(host.counted for host in hosts.values()):
        common = sorted(set.intersection(*(set(host.numbers) for host in hosts.values())))
        numbered = {name: {one: at for at, one in enumerate(host.numbers)} for name, host in hosts.items()}
        if common:
            places = {name: tuple(own[one] for one in common) for name, own in numbered.items()}
            return Matching(MatchedBy.NUMBER, places)
    if all(host.starts_ns for host in hosts.values()):
        # Each step of one host with the nearest of the others, unless that is ambiguous. It is the first by name of
        # those with the fewest steps, so that the order of the hosts does not matter.
        first = min(hosts, key=lambda name: (len(hosts[name].numbers), name))
        starts, rows = np.array(hosts[first].starts_ns, np.int64), []
        for host in hosts.values():
            own, reach = np.array(host.starts_ns, np.int64), NEAR * float(np.median(host.total_ms)) * NS_PER_MS
            distance = np.abs(own[None, :] - starts[:, None])
            nearest, near = distance.argmin(axis=1), distance.min(axis=1) < reach
            alone = np.bincount(nearest[near], minlength=len(own)) == 1  # near to a single start
            rows.append(np.where(near & alone[nearest], nearest, -1))
        kept = np.stack(rows)[:, (np.stack(rows) >= 0).all(axis=0)].tolist()
        if kept[0]:
            return Matching(MatchedBy.CLOCK, dict(zip(hosts, map(tuple, kept), strict=True)))
    shortest = min(len(host.numbers) for host in hosts.values())
    return Matching(MatchedBy.ORDER, dict.fromkeys(hosts, tuple(range(shortest))))


class ClockSkew(Record, kw_only=True):
    """Medians over the matched steps, in ms: the slowest host minus the median host; None is unknown."""

    skew: str  # what is assumed of the clocks, or why the skew is unknown
    skew_start_ms: float | None = None
    skew_end_ms: float | None = None
    late_ms: Mapping[str, float] = field(default_factory=dict)  # each host after the median host, or before it


def clock_skew(hosts: Mapping[str, HostSteps], matching: Matching) -> ClockSkew:
    """Compare when the hosts began and ended the matched steps."""
    if not matching.count:
        return ClockSkew(skew="unknown (no two hosts have comparable steps)")
    for name, host in sorted(hosts.items()):
        if host.clock_missing:
            return ClockSkew(skew=f"unknown ({name}: {host.clock_missing})")
    if matching.by is MatchedBy.ORDER:
        return ClockSkew(skew="unknown (neither step numbers nor clocks show which steps belong together)")
    late = []  # (hosts, steps) ms after the median host
    for edges in ("starts_ns", "ends_ns"):
        table = matching.table({name: getattr(host, edges) for name, host in hosts.items()})
        times = (table - table.min()).astype(float) / NS_PER_MS  # of differences, which are exact in float64
        late.append(times - np.median(times, axis=0))
    starts, ends = late
    apart = _middle(ends.max(axis=0) - ends.min(axis=0))
    if apart > DISAGREE * float(np.median([np.median(host.total_ms) for host in hosts.values()])):
        why = f"the same step ends {apart:.3g} ms apart on different hosts: their clocks disagree, or they do not"
        return ClockSkew(skew=f"unknown ({why} train synchronously)")
    # One machine has one name, and monotonic clocks that began together.
    machines = {host.machine for host in hosts.values()}
    boots = [host.boot_ns for host in hosts.values() if host.boot_ns is not None]
    alone = len(boots) == len(hosts) and len(machines) == 1 and "" not in machines
    return ClockSkew(
        skew=ONE_CLOCK if alone and max(boots) - min(boots) <= STEPPED_MS * NS_PER_MS else NTP,
        skew_start_ms=_middle(starts.max(axis=0)),
        skew_end_ms=_middle(ends.max(axis=0)),
        late_ms={name: _middle(row) for name, row in zip(sorted(hosts), starts, strict=True)},
    )


class Lag(Record):
    """A host whose own work takes longer than that of the others; ms per training step."""

    host: str
    ms: float  # the median of its excess over the others' median
    at_least_ms: float  # the same, at the level of confidence
    stage: str  # which takes most of it
    stage_ms: float
    waited_ms: float  # how much longer the others are in collectives
    gain_ms: float  # the time saved per step if it were as fast as the slowest of the others

    @property
    def job_gain_ms(self) -> float:
        """The most that a step could save: not more than the others wait."""
        return min(self.gain_ms, self.waited_ms)

    @property
    def holds_up(self) -> bool:
        """Whether the others wait for it."""
        return self.waited_ms >= WAITED * self.ms


class Comparison(Record):
    """The hosts that lag, the slowest first, and how the hosts' own work differs."""

    steps: int  # that all hosts have
    steps_needed: int = 0
    step_ms: float = 0.0  # the median step of all
    largest_ms: float = 0.0  # excess of any host
    spread_ms: float = 0.0  # its quartile deviation
    lags: tuple[Lag, ...] = ()

    @property
    def straggler(self) -> Lag | None:
        """The slowest host that the others wait for."""
        return next((lag for lag in self.lags if lag.holds_up), None)

    @property
    def too_few(self) -> bool:
        """Whether there are too few steps to tell a slow host from chance."""
        return self.steps < self.steps_needed


def compare(hosts: Mapping[str, HostSteps], matching: Matching) -> Comparison:
    """Compare the own work of the hosts over the steps that all have."""
    names, needed = sorted(hosts), ceil(log2(max(1, len(hosts)) / ALPHA))
    if matching.count < needed:
        return Comparison(matching.count, needed)
    own = matching.table({name: host.own_ms for name, host in hosts.items()})
    step_ms = _middle(matching.table({name: host.total_ms for name, host in hosts.items()}))
    parts = {str(one): matching.table({name: host.parts[one] for name, host in hosts.items()}) for one in Stage}
    alpha, excesses, lags = ALPHA / len(names), [_excess(own, at) for at in range(len(names))], []
    for at, excess in enumerate(excesses):
        lower = lower_bound(excess, alpha)
        if lower <= MATTERS * step_ms or _middle(excess) <= _deviation(excess):
            continue
        stages = {str(stage): _middle(_excess(parts[stage], at)) for stage in OWN}
        stage = max(stages, key=lambda name: stages[name])
        waited = -_middle(_excess(parts[Stage.COLLECTIVE], at))
        gain = _middle(own[at] - np.delete(own, at, axis=0).max(axis=0))
        waits = max(0.0, waited), max(0.0, gain)
        lags.append(Lag(names[at], _middle(excess), lower, stage, stages[stage], *waits))
    lags.sort(key=lambda lag: (-lag.ms, lag.host))
    slowest = max(excesses, key=_middle)
    return Comparison(matching.count, needed, step_ms, _middle(slowest), _deviation(slowest), tuple(lags))


def _middle(values: Times) -> float:
    return float(np.median(values))


def _excess(table: Times, at: int) -> Times:
    """Return (steps,) by how much a host exceeds the median of all others."""
    return np.asarray(table[at] - np.median(np.delete(table, at, axis=0), axis=0), float)


def _deviation(excess: Times) -> float:
    low, high = np.percentile(excess, (25, 75))
    return float(high - low) / 2


def lower_bound(values: Times, alpha: float) -> float:
    """Return what the median exceeds with probability 1 - alpha, by the sign test; else -inf."""
    ordered = np.sort(values)
    reached, tail = float("-inf"), 0.0
    for below, value in enumerate(ordered):
        tail += comb(len(ordered), below) / 2 ** len(ordered)
        if tail > alpha:
            break
        reached = float(value)
    return reached
