"""The lines of the user's in each phase of a run, added up from its pieces."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tfdoctor.facts.phases.bucket_pieces import PieceLine, RunPiece
from tfdoctor.facts.run.program import Places
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Location

ENOUGH = 5  # Samples of a line from which on it is named: with 5, its share is uncertain by 45 %
MOST_LINES = 500  # Lines that are kept, the largest: nobody reads more of generated code, or of a very long run

HALF = 0.5

# Functions of TensorFlow that call its executor, or wait for a tensor.
EXECUTING = frozenset({"quick_execute", "numpy", "_numpy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """Time of a phase at a line of the user's, in ms of the run; ``at`` is None where no line of theirs ran.

    ``caller`` is the user's line that called the function of ``at``, ``calls`` what the line calls of a library
    ("pandas.DataFrame.iterrows"; "" is Python of its own; where it imports, the module: "pandas"), ``runs`` the
    innermost function of a library. ``repeats`` says whether a loop holds the line: one of its function, or of the
    line that calls it, or a library that calls the user's function again and again; None is unknown. ``loops`` is
    how many loops of the user's functions hold the line, without those around a call that trains. ``exact`` says
    that calls at the line were timed, so that few samples do not make it uncertain. ``executes_ms`` is the part of
    ``ms`` in which TensorFlow executed operations, as samples show it, or their result was waited for.
    """

    phase: Phase
    at: Location | None
    ms: float
    samples: int
    function: str = ""  # the user's function that holds the line; "<module>" is the script itself
    caller: Location | None = None
    calls: str = ""
    runs: str = ""
    repeats: bool | None = None
    loops: int = 0
    exact: bool = False
    executes_ms: float = 0.0

    @classmethod
    def of(cls, phase: Phase, at: Location, ms: float, calls: str = "", **more: Any) -> Self:  # noqa: ANN401 - its fields
        """Build a line in a loop of the script, for examples and tests."""
        parts: dict[str, Any] = {"samples": 100, "function": "<module>", "repeats": True}
        return cls(phase=phase, at=at, ms=ms, calls=calls, **(parts | more))

    @property
    def sure(self) -> bool:
        """Whether there is enough to name the line."""
        return self.exact or self.samples >= ENOUGH


def run_lines(pieces: Iterable[RunPiece], place: Places) -> tuple[RunLine, ...]:
    """Return the lines of all phases, the largest first."""
    held: dict[tuple[Phase, PieceLine], list[RunPiece]] = defaultdict(list)
    for piece in pieces:
        held[piece.phase, piece.line].append(piece)
    lines = sorted((_run_line(own, place) for own in held.values()), key=lambda line: -line.ms)
    return tuple(lines[:MOST_LINES])


def _run_line(pieces: Sequence[RunPiece], place: Places) -> RunLine:
    line, total_ms = pieces[0].line, sum(piece.ms for piece in pieces)
    runs: dict[str, float] = defaultdict(float)
    for piece in pieces:
        runs[piece.runs] += piece.ms
    repeats = [piece.repeats for piece in pieces if piece.repeats is not None]
    return RunLine(
        phase=pieces[0].phase,
        at=place(line.at),
        ms=total_ms,
        samples=round(sum(piece.samples for piece in pieces)),
        function=line.function,
        caller=place(line.caller),
        calls=line.calls,
        runs=max(runs, key=lambda name: runs[name]),
        repeats=any(repeats) if repeats else None,
        loops=max(piece.loops for piece in pieces),
        executes_ms=sum(ms for name, ms in runs.items() if name.rpartition(".")[2] in EXECUTING),
        exact=sum(piece.ms for piece in pieces if piece.exact) > HALF * total_ms,
    )
