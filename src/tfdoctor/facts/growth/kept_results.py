"""Statements of the loops around training that keep what they are given: results, Histories and models."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_course import whole_run
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.terms.humanize import location
from tfdoctor.terms.kinds import KeptValue
from tfdoctor.terms.verdict import Cell, Location, Table

MOST_LISTED = 3  # Statements that a table lists: a loop that keeps more is read faster in the source


@dataclass(frozen=True, slots=True)
class KeptResult:
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


@dataclass(frozen=True, slots=True)
class KeptResults:
    """All such statements, in the order of their lines."""

    statements: tuple[KeptResult, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Read them from the log.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        place = Places.of(recording)
        kept = sorted(whole_run(recording).kept, key=lambda one: one.at)
        found = ((Location(place.shown(one.at[0]), one.at[1]), one) for one in kept)
        return cls(
            tuple(KeptResult(at, one.container, one.value, one.what, one.fits, one.each) for at, one in found)
        )

    @property
    def of_steps(self) -> KeptResult | None:
        """The only statement that keeps results of training steps; None where none or several do."""
        return self._only(KeptValue.RESULT, fits=False)

    @property
    def of_fits(self) -> KeptResult | None:
        """The only statement that keeps each model, or its History; None where none or several do."""
        return self._only(KeptValue.HISTORY, KeptValue.MODEL, fits=True)

    def _only(self, *kinds: KeptValue, fits: bool) -> KeptResult | None:
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
