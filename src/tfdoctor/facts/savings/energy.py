"""The energy that GPU boards and CPU packages took while the run trained, by their own counters.

The counter of a board is NVML's, in joules since the driver was loaded; that of a package is RAPL's. They are
read once a second, so between readings energy is taken to grow evenly.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import window_of
from tfdoctor.facts.phases.run_course import MS
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_pieces import NS, begin_and_end
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording.samples import MachineSample
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.run_time import CounterPower

# Time in training from which power is told: counters are read once a second, and each end may be off by that.
LEAST_S = 3.0
IDLE_S = 2.0  # Time without kernels from which the power of an idle board is told: two readings of its counter
Span = tuple[float, float]  # Begin and end, in s since 1970
Readings = list[tuple[float, float]]  # Times in s since 1970, with a value each


class EnergyMeter(CounterPower, kw_only=True):
    """The counters of one kind together; power in W.

    ``waiting_w`` is that part of the mean power which falls to the time without kernels: at least, for boards idle
    at less between runs than between kernels. It and ``idle_w`` are None where that was not seen, and of CPUs.
    """

    seconds: float  # of training, that the mean power is over
    run_j: float  # from the first reading to the last
    waiting_w: float | None = None

    @property
    def busy_w(self) -> float | None:
        """The mean power while kernels run; None where it is unknown."""
        return None if self.waiting_w is None or not self.busy else (self.power_w - self.waiting_w) / self.busy


class Energy(Record):
    """What the counters tell, by their source."""

    meters: tuple[EnergyMeter, ...]

    @classmethod
    def measure(cls, recording: Recording, framework: Framework, phases: RunPhases | None) -> Self:
        """Compare the counters with the time of the training steps; without the run's, with the traced window.

        Raises:
            Unavailable: no counter was read, or for too short a time.
        """
        counters = [*counters_of(recording.samples)]
        if not counters:
            raise Unavailable(f"no counter of energy was read{framework.with_tfdoctor}")
        log, window = recording.run, window_of(recording)
        training: tuple[Span, ...] = () if window is None else ((window[0] / NS, window[1] / NS),)
        if log is not None and phases is not None and phases.whole and log.process.started_unix_ns:
            zero = log.process.started_unix_ns / NS + begin_and_end(log, recording.manifest)[0]
            steps = [span for span in phases.spans if span.phase is Phase.STEPS]
            training = tuple((zero + span.start_ms / MS, zero + span.end_ms / MS) for span in steps)
        sources = ([one for one in counters if one.source is source] for source in EnergySource)
        meters = tuple(meter for own in sources if (meter := _meter(own, training)))
        if not meters:
            raise Unavailable(
                f"the counters of energy are read once a second, and less than {LEAST_S:g} s of training were "
                "recorded with them; record a longer run"
            )
        return cls(meters)


class EnergyCounter(Record):
    """The readings of one device: times in s since 1970, joules, and when no kernel ran."""

    source: EnergySource
    times: tuple[float, ...]
    joules: tuple[float, ...]
    loads: Readings = field(default_factory=list)  # shares with kernels, of a board

    @property
    def counts(self) -> bool:
        """Whether it has readings that only grow: a driver that is loaded anew begins again."""
        return len(self.joules) > 1 and all(before <= after for before, after in pairwise(self.joules))

    def within(self, spans: Iterable[Span]) -> tuple[float, float]:
        """Return joules and seconds of the parts of spans between its first reading and its last."""
        first, last = self.times[0], self.times[-1]
        inside = [(max(a, first), min(b, last)) for a, b in spans if min(b, last) > max(a, first)]
        if not inside:
            return 0.0, 0.0
        at = np.interp(np.array(inside), self.times, self.joules)
        return float((at[:, 1] - at[:, 0]).sum()), sum(b - a for a, b in inside)

    def loads_in(self, spans: Sequence[Span]) -> list[float]:
        """Return the shares with kernels that were read in these spans."""
        return [share for at, share in self.loads if any(a <= at <= b for a, b in spans)]


def counters_of(samples: Iterable[MachineSample]) -> Iterator[EnergyCounter]:
    """Yield the counters of boards that the run may use, and of the CPU's packages; some have no reading."""
    joules: dict[tuple[EnergySource, int | str], Readings] = defaultdict(list)
    loads: dict[int | str, Readings] = defaultdict(list)
    for row in samples:
        at = row.unix_ns / NS
        for gpu in (gpu for gpu in row.gpu if gpu.visible is not False):
            joules[EnergySource.GPU, gpu.index] += [] if gpu.energy_j is None else [(at, float(gpu.energy_j))]
            loads[gpu.index] += [] if gpu.gpu_pct is None else [(at, float(gpu.gpu_pct) / 100)]
        for package in (package for package in row.package if package.energy_j is not None):
            joules[EnergySource.CPU, package.name].append((at, float(package.energy_j or 0.0)))
    for (source, name), readings in joules.items():
        times, values = tuple(at for at, _ in readings), tuple(value for _, value in readings)
        yield EnergyCounter(source, times, values, loads.get(name, []))


def _meter(counters: Sequence[EnergyCounter], training: Sequence[Span]) -> EnergyMeter | None:
    """Return what the counters of one source tell together; None where they tell nothing."""
    known = [counter for counter in counters if counter.counts]
    measured = [counter.within(training) for counter in known]
    if not known or min(seconds for _, seconds in measured) < LEAST_S:
        return None
    power, idle, busy = sum(joules / seconds for joules, seconds in measured), [], []
    for one in known:
        loads = ((span, one.loads_in([span])) for span in pairwise(one.times))
        joules, seconds = one.within(span for span, shares in loads if shares and not any(shares))
        idle.append(joules / seconds if seconds >= IDLE_S else None)  # between readings between which no kernel ran
        shares = one.loads_in(training)
        busy.append(float(np.mean(shares)) if shares else None)
    waiting = [None if w is None or b is None else w * (1 - b) for w, b in zip(idle, busy, strict=True)]
    idle_w, waiting_w, whole = (
        None if None in values else sum(value or 0.0 for value in values) for values in (idle, waiting, busy)
    )
    return EnergyMeter(
        source=known[0].source,
        devices=len(known),
        without=len(counters) - len(known),
        power_w=power,
        seconds=min(seconds for _, seconds in measured),
        run_j=sum(counter.joules[-1] - counter.joules[0] for counter in known),
        idle_w=idle_w,
        waiting_w=None if waiting_w is None else min(power, waiting_w),
        busy=None if whole is None else whole / len(busy),
    )
