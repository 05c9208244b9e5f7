"""Times and powers of the run that facts measure and that stand in reports as they are."""

from tfdoctor.terms.json_form import Count, Ms, Number, Share, Sometimes
from tfdoctor.terms.kinds import EnergySource, Phase
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Location


class PhaseLine(Record, kw_only=True):
    """A line of the user's with time of a phase, in ms; ``calls`` is what it calls of a library.

    ``leads`` says that the time is that of other lines, to which it leads through functions of the user's.
    """

    at: Location | None  # None: no line of theirs ran
    ms: Ms
    calls: str = ""  # where the line imports, the module
    samples: Count = 0
    leads: Sometimes[bool] = False


class PhaseSegment(Record):
    """A stretch of the run in time order, in ms since the process began."""

    phase: Phase
    start_ms: Ms
    end_ms: Ms
    at: Location | None = None  # where most of it was


class LongStepTime(Record, kw_only=True):
    """The run's steps of more than 1.5 times the usual one, traced or not, and what was seen in them; times in ms.

    ``beyond_ms`` is what they take beyond usual ones. ``lines`` are what the stack showed after the usual time,
    ``unknown_ms`` is what they do not explain of ``beyond_ms``: its cause is unknown.
    """

    count: Count
    ms: Ms
    beyond_ms: Ms
    lines: tuple[PhaseLine, ...] = ()
    unknown_ms: Ms = 0.0
    first: Count = field(default=0, name="first_count")  # of these, first steps of an epoch or a pass over the data
    first_beyond_ms: Ms = 0.0
    every: Count | None = None  # their period in steps, where they have one
    other_cores: Number = 0.0  # that other programs used while none was free: they delay steps


class WorkersTime(Record, kw_only=True):
    """What processes did that do a part of the script's work, as those of a pool; times in ms, of all together.

    ``importing_ms`` is their start and their imports, ``waiting_ms`` is until they got a task, and ``working_ms``
    the rest; ``most_working_ms`` is that of the one that works most. ``lines`` are of ``working_ms``, ``imports``
    of ``importing_ms``, the largest first. ``pools`` is how many times all of them were started anew, and
    ``starts_ms`` the wall time in which one of them starts or imports.
    """

    number: Count = field(name="count")
    pools: Count = 1
    starts_ms: Ms = 0.0
    starts: tuple[str, ...]  # how they were started: "fork", "spawn", "loky"
    ms: Ms
    importing_ms: Ms
    waiting_ms: Ms
    working_ms: Ms
    most_working_ms: Ms
    lines: tuple[PhaseLine, ...] = ()
    imports: tuple[PhaseLine, ...] = ()


class SlowStepsSummary(Record):
    """Slow steps that take most of the time of all timed steps, traced or not; times in ms."""

    number: Count = field(name="count")
    ms: Ms
    timed: Count = field(name="timed_count")
    timed_ms: Ms
    at_least: Sometimes[bool] = False  # more may be slow: only the longest untraced ones are known


class CounterPower(Record, kw_only=True):
    """The devices of one kind that have a counter of energy, and their power in W; None is unknown."""

    source: EnergySource
    devices: Count = field(name="device_count")
    without: Count = field(default=0, name="devices_without_counter")  # devices of the run that have none
    power_w: Number  # mean while training steps run
    idle_w: Number | None = None  # while no kernel ran, anywhere in the run
    busy: Share | None = None  # share of the training with kernels, 0 to 1
