"""Memory that grows until it is full, counts that tell why, and statements that keep what they are given."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.memory import DeviceMemory
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_course import whole_run
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_growth import ONLY_ADDED, Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import ENOUGH, RunPhases
from tfdoctor.facts.run.program import Places
from tfdoctor.terms.humanize import location, quantity
from tfdoctor.terms.kinds import KeptValue
from tfdoctor.terms.verdict import Cell, Severity

HOUR_S = 3600.0  # Seconds until memory is full from which on downwards it is critical: most trainings take longer
# Seconds until memory is full from which on downwards it is a warning: long trainings take days.
DAY_S = 24 * HOUR_S
# Growth in the whole run from which on a count is named: a summary or a saver adds a few operations late;
# TensorFlow itself warns of five traces of a function; callbacks and Keras' History keep some hundred objects, and
# 10,000 of Python's blocks are about 1 MB.
LEAST = {Grows.GRAPH: 20.0, Grows.FUNCTIONS: 5.0, Grows.OBJECTS: 500.0, Grows.FILES: 20.0, Grows.BLOCKS: 10_000.0}
# The growth relative to the first value from which on a count is named: less is no cause of what grows by more.
LEAST_SHARE = 0.1
# Python's memory blocks more for each step from which on steps keep objects: a list of losses adds one.
LEAST_BLOCKS_A_STEP = 0.5
# Modules whose types tell less than others: lists and dictionaries are parts of all objects.
PLAIN = ("builtins.", "collections.", "typing.", "weakref.")
MOST_LISTED = 3  # Statements that a table lists: a loop that keeps more is read faster in the source


class FillingMemory(Record):
    """One memory: its trend in bytes, the limit, and the seconds until it is full at this rate; None is unknown."""

    trend: Trend
    limit: float | None = None
    planned_s: float = 0.0  # how long the run would go on as planned; 0 where it ended or has no plan
    ran_out: bool = False
    reserved: Trend | None = None  # of resident memory: all that the program may write

    @property
    def fills_reserved(self) -> bool:
        """Whether it mostly became resident where it was reserved before, as an array that fills: that ends."""
        return self.reserved is not None and self.reserved.last - self.reserved.first < self.grown / 2

    @property
    def name(self) -> str:
        """What memory it is."""
        return str(self.trend.what)

    @property
    def grown(self) -> float:
        """Bytes that it grew by."""
        return self.trend.last - self.trend.first

    @property
    def left_s(self) -> float | None:
        """The seconds until it is full at this rate."""
        if self.limit is None or self.trend.slope <= 0:
            return None
        return max(0.0, self.limit - self.trend.last) / self.trend.slope

    @property
    def severity(self) -> Severity:
        """How bad it is: whether memory gets full in the run, in an hour or in a day."""
        left = self.left_s
        if self.ran_out or (left is not None and left <= max(self.planned_s, HOUR_S)):
            return Severity.CRITICAL
        return Severity.WARNING if left is not None and left <= DAY_S else Severity.NOTE

    @property
    def end(self) -> str:
        """When it is full, as a clause; "" is unknown."""
        if self.ran_out:
            return "and ran out"
        if self.limit is None or self.left_s is None:
            return ""
        return f"which fills {quantity(nbytes(self.limit))} in about {about_span(self.left_s)}"


class MemoryTrends(Record):
    """The memories whose trend is known: resident first, then the device's."""

    memories: tuple[FillingMemory, ...]

    @classmethod
    def measure(
        cls, growth: RunGrowth, ending: RunEnding | None, device: DeviceMemory | None, calls: RunCalls | None
    ) -> Self:
        """Relate the trends to the limits.

        Raises:
            Unavailable: the memory of the run was not recorded often enough for a trend.
        """
        host_limit, device_limit = ending.limit_bytes if ending else None, device.fullest.limit if device else None
        limits = {Grows.RESIDENT: host_limit, Grows.DEVICE: device_limit}
        trends = list(filter(None, map(growth.of, limits)))
        if not trends:
            raise Unavailable("the run was too short for a trend of its memory", "record a longer run")
        full = Grows.DEVICE if ending and ending.allocator else Grows.RESIDENT
        ran_out = full if ending and ending.kind is EndKind.OUT_OF_MEMORY else None
        planned_s = 0.0
        if calls and calls.planned_epochs and calls.epochs:
            planned_s = growth.seconds / calls.epochs * max(0, calls.planned_epochs - calls.epochs)
        reserved = {Grows.RESIDENT: growth.of(Grows.RESERVED)}
        memories = (
            FillingMemory(one, limits[one.what], planned_s, one.what is ran_out, reserved.get(one.what))
            for one in trends
        )
        return cls(tuple(memories))


def about_span(seconds: float) -> str:
    """Return a long time to one or two digits: ``40 min``, ``3 h``, ``5 days``."""
    if seconds >= 2 * DAY_S:  # in hours it would be hard to read
        return f"{seconds / DAY_S:,.0f} days"
    if seconds >= 1.5 * HOUR_S:
        return f"{seconds / HOUR_S:.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 2 * 60 else f"{seconds:.0f} s"


def growing_counts(growth: RunGrowth | None) -> tuple[Trend, ...]:
    """Return the counts that certainly grow, in the order in which they explain time and memory."""
    if growth is None:
        return ()
    trends = [trend for trend in growth.trends if trend.what in LEAST and trend.what is not Grows.OBJECTS]
    trends += sorted(growth.objects, key=lambda trend: trend.name.startswith(PLAIN))
    named_trends = []
    for trend in trends:
        relative = LEAST_SHARE * abs(trend.first)  # beside what there was, most of which imports and models made
        if trend.what is Grows.BLOCKS and trend.over_steps:
            relative = LEAST_BLOCKS_A_STEP * trend.over_steps
        enough = trend.last - trend.first >= max(LEAST[trend.what], relative)
        if enough and (trend.grows or (trend.what in ONLY_ADDED and trend.steady)):
            named_trends.append(trend)
    return tuple(sorted(named_trends, key=lambda trend: list(LEAST).index(trend.what)))


def makes_operations(counts: tuple[Trend, ...], phases: RunPhases) -> Location | None:
    """Return the line that makes operations again and again while the default graph grows; None if not sure."""
    if not counts or counts[0].what is not Grows.GRAPH:
        return None
    made = summed((line.at, line.samples) for line in phases.at(Phase.BUILDING) if line.repeats and line.at)
    return next((at for at, samples in made.items() if samples >= ENOUGH), None)


def clause(trend: Trend, steps: int = 0) -> str:
    """Return how a count grew, as a clause; per step where the steps meanwhile are known."""
    steps = trend.over_steps or steps
    grown = trend.last - trend.first
    each = f"by {number(float(f'{grown / steps:.2g}'))} {{}} a step" if steps else ""
    span = f"from {number(round(trend.first))} to {number(round(trend.last))}"
    match trend.what:
        case Grows.GRAPH:
            return f"the default graph grew {each.format('operations') or f'{span} operations'}"
        case Grows.FUNCTIONS:
            return f"{number(round(grown))} functions were traced meanwhile"
        case Grows.OBJECTS:
            return f"{named(trend)} grew {span}"
        case Grows.BLOCKS if steps:
            return f"Python kept {each.removeprefix('by ').format('memory blocks more')}"
        case _:
            return f"{trend.what} grew {span}"


def named(trend: Trend) -> str:
    """Return what a trend is of; of a type its last name."""
    return f"live {trend.name.rpartition('.')[2]} objects" if trend.what is Grows.OBJECTS else str(trend.what)


def counts_table(trends: Iterable[Trend]) -> tuple[Table, ...]:
    """Return the counts as evidence; () without any."""
    table = Table.of(
        trends,
        ("what grows", named),
        ("at the beginning", lambda trend: count(round(trend.first))),
        ("at the end", lambda trend: count(round(trend.last))),
    )
    return (table,) if table.rows else ()


class KeptResult(Record):
    """A statement in the loop around a call that trains that adds ``value`` to ``container``, as source text.

    The container is made outside of the loop, and nothing in the file takes anything out of it meanwhile.
    """

    at: Location
    container: str
    value: str
    what: KeptValue = KeptValue.OTHER
    fits: bool = False  # the loop is around Keras' fit
    each: bool = False  # in each turn of the innermost loop

    @property
    def clause(self) -> str:
        """What it does, as a clause: ``train.py:47 adds (loss, z) to history in each step``."""
        holds = ", which holds the model," if self.what is KeptValue.HISTORY else ""
        turn = "after each fit" if self.fits else "in each step"
        when = turn if self.each else "in the loop"
        return f"{location(self.at)} adds {self.value}{holds} to {self.container} {when}"


class KeptResults(Record):
    """All such statements, in the order of their lines."""

    statements: tuple[KeptResult, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read them from the log.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        place, statements = Places.of(recording), []
        for one in sorted(whole_run(recording).kept, key=lambda one: one.at):
            at = Location(place.shown(one.at[0]), one.at[1])
            statements.append(KeptResult(at, one.container, one.value, one.what, one.fits, one.each))
        return cls(tuple(statements))

    def only(self, *kinds: KeptValue, fits: bool = False) -> KeptResult | None:
        """Return the only statement that keeps these after steps, or fits; None where none or several do."""
        found = [one for one in self.statements if one.what in kinds and one.fits is fits]
        return found[0] if len(found) == 1 else None


def kept_table(kept: KeptResults | None, named: KeptResult | None) -> tuple[Table, ...]:
    """Return statements that keep something as evidence, the named one first; () without any.

    Of the others no line is proved: they are listed as text, which is no place of a finding.
    """
    others = sorted(
        (one for one in (kept.statements if kept else ()) if one != named),
        key=lambda one: one.what is KeptValue.OTHER,
    )
    rows: list[tuple[Cell, ...]] = [(named.at, named.value, named.container)] if named else []
    rows += [(location(one.at), one.value, one.container) for one in others]
    return (Table(("line in the loop", "adds", "to"), tuple(rows[:MOST_LISTED])),) if rows else ()
