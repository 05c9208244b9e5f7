"""Which findings are fixed before which."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Milliseconds
from tfdoctor.terms.verdict import Bound


class Relationship(StrEnum):
    """How a finding relates to others."""

    FIRST = "first"  # fix the others before it
    INSTEAD = "instead"  # fix it or the others
    UNNEEDED = "unneeded"  # saves nothing more after the others
    CEILING = "ceiling"  # bounds the cost of a whole stage; the others are about parts of it


class Relation(Record):
    """How a finding relates to others, and why (for ``CEILING``: the stage)."""

    kind: Relationship
    rule: str
    others: Annotated[tuple[str, ...], Meta(min_length=1)]
    why: str = ""


class Turn(Record):
    """A finding and its saving after the fixes before it."""

    rule: str
    saves: Milliseconds = field(name="ms_per_step")
    bound: Bound


class Order(Record, kw_only=True):
    """The order in which to fix findings that affect each other."""

    turns: tuple[Turn, ...] = ()
    relations: tuple[Relation, ...] = ()
