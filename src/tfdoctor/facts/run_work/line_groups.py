"""What kind of work lines have a library do, item by item or all at once, and which lines belong together.

Functions are told by their package and their own name, as the recording has them: numpy.append,
pandas.core.frame.DataFrame.iterrows. Lines of a loop are a group, with the function that it calls for each item.
"""

from collections.abc import Hashable
from typing import TypeVar

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_phases import ENOUGH, RunLine
from tfdoctor.terms.libraries import LIBRARIES

T = TypeVar("T", bound=Hashable)
# Share of a loop's samples in reading rows from which on the rows are its cause, not its work on each of them.
ROWS_SHARE = 0.1
# Lines of a loop with NumPy's functions from which on it works item by item; one or two may draw an epoch.
MANY_LINES = 3
# Lines of the file between two sampled lines of one loop: most loops over examples have bodies of this length.
NEAR = 5
NEARBY = sorted(range(-NEAR, NEAR + 1), key=abs)
HALF = 0.5
NESTED = 2  # Loops of one function around a line from which on it works on an item at a time, whatever it calls
# Packages of which an import tells nothing but that it is one.
NO_MODULE = frozenset({"", "importlib", "_frozen_importlib", "_frozen_importlib_external"})


class CalledWork(StrEnum):
    """The work of a line that does not train."""

    ROWS = "rows of a table, one by one"
    GROWING = "an array or a table that is copied to grow"
    FILES = "files, decoded one by one"
    OPERATIONS = "TensorFlow operations, one by one"
    TEXTS = "texts, one by one"
    PARSING = "a text file, read as Python objects"
    DATASET = "a dataset that is built"
    MODEL = "a model, called from Python"
    DOWNLOAD = "a download"
    PLOT = "a picture that is drawn"
    COLLECTING = "Python's garbage collection"
    PYTHON = "Python, item by item"
    BULK = "one call for all"
    UNKNOWN = "not known"


def called_work(line: RunLine) -> CalledWork:
    """Return the kind of work at a line, by what it calls and whether a loop holds it.

    The user's own Python, Python's modules and packages that are not known work on an item at a time. A call that
    was timed is one, whatever loop makes it: its number is known, and rules judge it by that.
    """
    if line.exact:
        return CalledWork.BULK
    package, name = package_and_name(line.calls)
    known = _BY_NAME.get(package)
    work = known(name, line) if known else _PACKAGES.get(package)
    if work is CalledWork.FILES and not known and name in LIBRARIES["writes"]:
        return CalledWork.BULK
    if work is not None:
        return work
    if package in LIBRARIES["all_at_once"] or line.repeats is False:
        return CalledWork.BULK
    return CalledWork.PYTHON if line.repeats else CalledWork.UNKNOWN


def package_and_name(function: str) -> tuple[str, str]:
    """Return the package and the own name of a function: "pandas", "iterrows"; twice "" of none."""
    return function.partition(".")[0], function.rpartition(".")[2]


def _of_pandas(name: str, line: RunLine) -> CalledWork:
    if name in LIBRARIES["pandas_rows"]:
        return CalledWork.ROWS
    if name in {"append", "_append"} or (name == "concat" and line.repeats):
        return CalledWork.GROWING
    if name.startswith(("read_", "to_", "merge", "sort", "groupby")) or not line.repeats:
        return CalledWork.BULK
    return CalledWork.ROWS


def _of_numpy(name: str, line: RunLine) -> CalledWork | None:
    if name in {"genfromtxt", "loadtxt"}:
        return CalledWork.PARSING
    joins = name in LIBRARIES["numpy_joins"] and line.repeats
    if joins or (name in {"append", "insert"} and line.repeats is not False):
        return CalledWork.GROWING
    if name in {"vectorize", "apply_along_axis", "__call__"}:
        return CalledWork.PYTHON
    return CalledWork.BULK if name in LIBRARIES["numpy_heavy"] and line.loops < NESTED else None


def _of_tensorflow(name: str, line: RunLine) -> CalledWork:
    parts = set(line.calls.split("."))
    if name in LIBRARIES["timed"] or parts & {"polymorphic_function", "def_function"}:
        return CalledWork.BULK
    if parts & {"data", "dataset_ops", "Dataset", "DatasetV2", "DatasetV1Adapter"}:
        return CalledWork.DATASET
    if name in {"load_img", "img_to_array"} or (name.startswith("decode_") and line.repeats):
        return CalledWork.FILES
    if name in {"texts_to_sequences", "fit_on_texts", "text_to_word_sequence"}:
        return CalledWork.TEXTS
    if name == "__call__" and parts & {"layer", "base_layer", "operation", "Layer", "Model"}:
        return CalledWork.MODEL
    looped = CalledWork.GROWING if name in {"concat", "stack"} else CalledWork.OPERATIONS
    return looped if line.repeats else CalledWork.BULK


_BY_NAME = {
    "pandas": _of_pandas, "numpy": _of_numpy, **dict.fromkeys(LIBRARIES["tensorflow"], _of_tensorflow),
}  # fmt: skip
_PACKAGES = {package: CalledWork[work] for work, packages in LIBRARIES["packages"].items() for package in packages}

# Work on an item at a time that arrays do at once.
ONE_BY_ONE = frozenset({CalledWork.PYTHON, CalledWork.OPERATIONS, CalledWork.ROWS, CalledWork.GROWING})
# Kinds that are as slow in the steps: there other Python, and single operations, may be the training itself.
IN_STEPS = frozenset({CalledWork.ROWS, CalledWork.GROWING, CalledWork.FILES, CalledWork.TEXTS, CalledWork.PARSING})


class LineGroup(Record, dict=True):
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

    def _work_of(self, line: RunLine) -> CalledWork:
        work = called_work(line)
        if work is not CalledWork.BULK or not line.loops or not line.calls.startswith("numpy."):
            return work
        # Where several lines of a loop take time, it works on one item after another, whatever it calls.
        many = len({one.at for one in self.lines if one.sure and one.loops}) >= MANY_LINES
        return CalledWork.PYTHON if many else work

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
    def leading(self) -> tuple[tuple[Location, float], ...]:
        """The other lines of the user's that lead to most of its time, with the ms that each leads to."""
        own = {line.at for line in self.lines}
        below = ((at, line.ms) for line in self.lines for at in dict.fromkeys(line.around) if at not in own)
        return tuple((at, ms) for at, ms in summed(below).items() if ms > HALF * self.ms)

    @property
    def calls(self) -> str:
        """What most of its time calls of a library; "" is Python of its own."""
        return self._most(lambda line: line.calls)

    def _most(self, of: Callable[[RunLine], T]) -> T:
        return next(iter(summed((of(line), line.ms) for line in self.lines)))


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
    nested = any(line.function.endswith(">") and line.function != "<module>" for line in (one, other))
    alike = one.function == other.function or nested
    looped = one.repeats is not False and other.repeats is not False
    return alike and looped and last - first <= NEAR


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
    return list(by_key((root(number), line) for number, chain in enumerate(chains) for line in chain).values())
