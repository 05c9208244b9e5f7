"""Checks that a rule returned a verdict, including the types of all its parts."""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Effect, Finding, Healthy, NotApplicable

LONGEST = 60  # Characters of a wrong value that a message quotes


def fault(returned: object) -> str:
    """Return what a rule returned instead of a verdict: "None, which is not a ..."; "" for a verdict."""
    if not isinstance(returned, Finding | Healthy | NotApplicable):
        return f"{_shown(returned)}, which is not a Finding, Healthy or NotApplicable"
    wrong = _parts(returned, type(returned).__name__)
    if wrong or not isinstance(returned, Finding):
        return wrong
    return next(filter(None, map(_effect, returned.effects)), "")


def _parts(value: Any, where: str) -> str:  # noqa: ANN401 - any dataclass
    kinds = get_type_hints(type(value))
    faults = (
        _wrong(getattr(value, field.name), kinds[field.name], f"{where}.{field.name}") for field in fields(value)
    )
    return next(filter(None, faults), "")


def _wrong(value: Any, kind: Any, where: str) -> str:  # noqa: ANN401 - whatever a rule put there
    """Return where a value does not match its annotation."""
    if get_origin(kind) is tuple:
        return _items(value, get_args(kind), where)
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if float in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if not isinstance(value, tuple(kinds)):
        known = " or ".join(map(_called, kinds))
        return f"{where} = {_shown(value)}, which is not a {known}"
    return _parts(value, where) if is_dataclass(value) else ""


def _items(value: object, kinds: tuple[Any, ...], where: str) -> str:
    """Check the items of a tuple, which all have the same annotation."""
    if not isinstance(value, tuple):
        return f"{where} = {_shown(value)}, which is not a tuple: write (x,) for a single item"
    faults = (_wrong(item, kinds[0], f"{where}[{at}]") for at, item in enumerate(value))
    return next(filter(None, faults), "")


def _effect(effect: Effect) -> str:
    if not 0.0 <= effect.scales < math.inf:
        return f"an Effect with scales={effect.scales:g}: it must be finite and at least 0; 1 means no change"
    if effect.of and (effect.of.unit is not Unit.MILLISECONDS or not _is_time(effect.of.value)):
        return "an Effect whose `of` is not a time: write of=ms(3.2)"
    return ""


def _is_time(value: float) -> bool:
    return 0.0 <= value < math.inf


def _called(kind: Any) -> str:  # noqa: ANN401 - an annotation
    return str(getattr(kind, "__name__", kind))


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shown = repr(value)
    return shown if len(shown) <= LONGEST and "\n" not in shown else f"a {type(value).__name__}"
