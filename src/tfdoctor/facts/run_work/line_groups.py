"""Lines of the run that belong together: those of a loop, with the function that it calls for each item."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from tfdoctor.facts.phases.run_phases import ENOUGH, RunLine
from tfdoctor.facts.run_work.called_work import CalledWork, called_work
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Location

T = TypeVar("T", bound=Hashable)

# Share of a loop's samples in reading rows from which on the rows are its cause, not its work on each of them.
ROWS_SHARE = 0.1
# Lines of a loop with NumPy's functions from which on it works item by item; one or two may draw an epoch.
MANY_LINES = 3
# Lines of the file between two sampled lines of one loop: most loops over examples have bodies of this length.
NEAR = 5


NEARBY = sorted(range(-NEAR, NEAR + 1), key=abs)


@dataclass(frozen=True)
class LineGroup:
    """Lines that belong together, those that take most first; all of one phase and with a place."""

    lines: tuple[RunLine, ...]

    @property
    def phase(self) -> Phase:
        """The phase of its lines."""
        return self.lines[0].phase

    @cached_property
    def ms(self) -> float:
        """Its time, in ms of the run."""
        return sum(line.ms for line in self.lines)

    @cached_property
    def work(self) -> CalledWork:
        """The work that takes most of its time; where rows are read one by one, all else follows from it."""
        rows = sum(line.samples for line in self.lines if called_work(line) is CalledWork.ROWS)
        if rows >= max(ENOUGH, ROWS_SHARE * sum(line.samples for line in self.lines)):
            return CalledWork.ROWS
        return self._most(self._work_of)

    @cached_property
    def _many(self) -> bool:
        """Whether several lines of a loop take time: it works on one item after another, whatever it calls."""
        return len({line.at for line in self.lines if line.sure and line.loops}) >= MANY_LINES

    def _work_of(self, line: RunLine) -> CalledWork:
        work = called_work(line)
        bulk = work is CalledWork.BULK and line.loops and line.calls.startswith("numpy.")
        return CalledWork.PYTHON if bulk and self._many else work

    @cached_property
    def top(self) -> RunLine | None:
        """The line to name: the largest one of the group's work that has enough samples, else of any."""
        sure = [line for line in self.lines if line.sure]
        own = [line for line in sure if self._work_of(line) is self.work]
        return next(iter(own + sure), None)

    @property
    def at(self) -> Location | None:
        """The place of ``top``."""
        return self.top.at if self.top else None

    @property
    def function(self) -> str:
        """The user's function that holds the line to name, as a name in code; "" for the script's own level."""
        parts = self.top.function.split(".<locals>.") if self.top else ()
        return next((part for part in reversed(parts) if not part.endswith(">")), "")

    @property
    def caller(self) -> Location | None:
        """The user's line that calls the function, which is none of the group's own; None is unknown."""
        own = {line.at for line in self.lines}
        called = [line for line in self.lines if line.caller and line.caller not in own]
        return max(called, key=lambda line: line.ms).caller if called else None

    @property
    def calls(self) -> str:
        """What most of its time calls of a library; "" is Python of its own."""
        return self._most(lambda line: line.calls)

    def _most(self, of: Callable[[RunLine], T]) -> T:
        times: dict[T, float] = defaultdict(float)
        for line in self.lines:
            times[of(line)] += line.ms
        return max(times, key=lambda one: times[one])


def line_groups(lines: Iterable[RunLine]) -> tuple[LineGroup, ...]:
    """Return the groups of lines of each phase and file, those that take most first.

    Lines near each other belong together where one function holds them, and a loop repeats them: those that a
    loop is known not to hold stand alone, and so do calls that were timed. A function belongs to the line that
    calls it, where samples show both.
    """
    chains: list[list[RunLine]] = []
    for line in sorted((line for line in lines if line.at), key=lambda line: (line.phase, *_place(line))):
        near = reversed(chains[-NEAR:])
        own = next((chain for chain in near if any(_together(other, line) for other in chain)), None)
        if own is None:
            chains.append(own := [])
        own.append(line)
    merged = _with_called(chains)
    groups = [LineGroup(tuple(sorted(chain, key=lambda line: -line.ms))) for chain in merged]
    return tuple(sorted(groups, key=lambda group: -group.ms))


def _place(line: RunLine) -> tuple[str, int]:
    return (line.at.path, line.at.line) if line.at else ("", 0)


def _together(one: RunLine, other: RunLine) -> bool:
    (path, first), (other_path, last) = _place(one), _place(other)
    if (one.phase, path) != (other.phase, other_path):
        return False
    if first == last and one.exact == other.exact:
        return True
    if one.phase is Phase.IMPORTS or one.exact or other.exact:
        return False  # each line imports something else
    alike = one.function == other.function or _nested(one) or _nested(other)
    looped = one.repeats is not False and other.repeats is not False
    return alike and looped and last - first <= NEAR


def _nested(line: RunLine) -> bool:
    return line.function.endswith(">") and line.function != "<module>"


def _with_called(chains: Sequence[list[RunLine]]) -> list[list[RunLine]]:
    """Join each group to the loop, or the library's function for each row, that calls its function.

    That is the group of the line that calls it, or of the nearest one of the loop around it.
    """
    chains = sorted(chains, key=lambda chain: -sum(line.ms for line in chain))
    home = {
        (line.phase, line.at): number
        for number, chain in enumerate(chains)
        for line in chain
        if called_work(line) is not CalledWork.BULK
    }
    into = list(range(len(chains)))

    def root(number: int) -> int:
        while into[number] != number:
            number = into[number]
        return number

    for number, chain in enumerate(chains):
        group = LineGroup(tuple(chain))
        if at := group.caller:
            near = ((group.phase, Location(at.path, at.line + away)) for away in NEARBY)
            target = next((home[place] for place in near if place in home), None)
            into[number] = number if target is None or root(target) == number else target
    joined: dict[int, list[RunLine]] = defaultdict(list)
    for number, chain in enumerate(chains):
        joined[root(number)].extend(chain)
    return list(joined.values())
