"""The order in which to fix findings, as sentences."""

from collections.abc import Container, Sequence

from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Turn
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.verdict import Bound


def sentences(order: Order | None, merged: Container[str] = ()) -> tuple[str, ...]:
    """Return the order, then which findings exclude, replace or bound others; nothing without an order.

    `merged` are the findings that are told with their causes.
    """
    if order is None:
        return ()
    relations = [
        _relation(relation)
        for relation in order.relations
        if not (relation.kind is Relationship.CEILING and relation.rule in merged)
    ]
    return tuple(filter(None, (_turns(order.turns), *relations)))


def _turns(turns: Sequence[Turn]) -> str:
    if len(turns) < 2:  # noqa: PLR2004 - one has no order
        return ""
    told: list[str] = []
    for turn in turns:
        ceiling = "at most " if turn.bound is Bound.AT_MOST else ""
        saves = f"saves {ceiling}{milliseconds(turn.saves.value)}{' more' if told else ''}"
        saves = "saves nothing alone" if turn.saves.value <= 0 else saves
        told.append(f"{text.name(turn.rule)} ({saves})")
    first, *others = told
    return f"Fix {first} first, then {', then '.join(others)}."


def _relation(relation: Relation) -> str:
    rule, others = text.name(relation.rule), listed(relation.others)
    why, alone = text.prose(relation.why), len(relation.others) == 1
    match relation.kind:
        case Relationship.FIRST:
            return f"Fix {others} before {rule}: {why}."
        case Relationship.INSTEAD:
            return f"Fix {others} or {rule}, not both: {why}."
        case Relationship.UNNEEDED:
            return f"Once {others} {'is' if alone else 'are'} fixed, {rule} saves nothing more."
        case Relationship.CEILING:
            name, them = ("names a cause", "that") if alone else ("name causes", "these")
            return (
                f"The saving of {rule} is an upper bound for the whole {why} time; {others} {name}: "
                f"fix {them} first, then record again."
            )


def listed(rules: Sequence[str]) -> str:
    """Return the names of rules as a list in a sentence."""
    *most, last = map(text.name, rules)
    return f"{', '.join(most)} and {last}" if most else last
