"""Which findings are fixed before which."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from tfdoctor.terms.json_form import Milliseconds, Named, NotEmpty
from tfdoctor.terms.verdict import Bound


class Relationship(StrEnum):
    """How a finding relates to others."""

    FIRST = "first"  # fix the others before it
    INSTEAD = "instead"  # fix it or the others
    UNNEEDED = "unneeded"  # saves nothing more after the others
    CEILING = "ceiling"  # bounds the cost of a whole stage; the others are about parts of it


@dataclass(frozen=True, slots=True)
class Relation:
    """How a finding relates to others, and why (for ``CEILING``: the stage)."""

    kind: Relationship
    rule: str
    others: Annotated[tuple[str, ...], NotEmpty()]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A finding and its saving after the fixes before it."""

    rule: str
    saves: Annotated[Milliseconds, Named("ms_per_step")]
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order in which to fix findings that affect each other."""

    turns: tuple[Turn, ...] = ()
    relations: tuple[Relation, ...] = ()
