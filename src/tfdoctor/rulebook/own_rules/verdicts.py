"""Whether what a rule returned is a verdict, down to the numbers in it."""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tfdoctor.units import Unit
from tfdoctor.verdict import Effect, Finding, Healthy, NotApplicable

LONGEST = 60
"""Characters of a wrong value that a message repeats."""


def fault(returned: object) -> str:
    """Return what is wrong with a verdict, as "None, which is no ..."; "" when it is one."""
    if not isinstance(returned, Finding | Healthy | NotApplicable):
        return f"{_shown(returned)}, which is no Finding, Healthy or NotApplicable"
    wrong = _parts(returned, type(returned).__name__)
    if wrong or not isinstance(returned, Finding):
        return wrong
    return next((said for effect in returned.effects if (said := _effect(effect))), "")


def _parts(value: Any, where: str) -> str:  # noqa: ANN401 - any dataclass
    kinds = get_type_hints(type(value))
    said = (
        _wrong(getattr(value, one.name), kinds[one.name], f"{where}.{one.name}")
        for one in fields(value)
    )
    return next(filter(None, said), "")


def _wrong(value: Any, kind: Any, where: str) -> str:  # noqa: ANN401 - whatever a rule put there
    """Return where a value is not of its kind, which is an annotation of tfdoctor's own dataclasses."""
    if get_origin(kind) is tuple:
        return _items(value, get_args(kind), where)
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if float in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if not isinstance(value, tuple(kinds)):
        known = " or ".join(_called(one) for one in kinds)
        return f"a {where} of {_shown(value)}, which is no {known}"
    return _parts(value, where) if is_dataclass(value) else ""


def _items(value: object, kinds: tuple[Any, ...], where: str) -> str:
    """Look into a tuple of any length, whose items are all of one kind."""
    if not isinstance(value, tuple):
        return f"a {where} of {_shown(value)}, which is no tuple: one of a single thing is (thing,)"
    said = (_wrong(one, kinds[0], f"{where}[{at}]") for at, one in enumerate(value))
    return next(filter(None, said), "")


def _effect(effect: Effect) -> str:
    if not 0.0 <= effect.scales < math.inf:
        return f"an Effect with scales={effect.scales:g}: it is 0 or more, and 1 changes nothing"
    if effect.of and (effect.of.unit is not Unit.MILLISECONDS or not _is_time(effect.of.value)):
        return "an Effect whose `of` is no time: write of=ms(3.2)"
    return ""


def _is_time(value: float) -> bool:
    return 0.0 <= value < math.inf


def _called(kind: Any) -> str:  # noqa: ANN401 - an annotation
    return str(getattr(kind, "__name__", kind))


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    said = repr(value)
    return said if len(said) <= LONGEST and "\n" not in said else f"a {type(value).__name__}"
