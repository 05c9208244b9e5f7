"""Checks that a rule returned a verdict, including the types of all its parts."""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tfdoctor.rulebook.values import LONGEST
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Finding, Healthy, NotApplicable


def fault(returned: object) -> str:
    """Return what a rule returned instead of a verdict: "None, which is not a ..."; "" for a verdict."""
    if not isinstance(returned, Finding | Healthy | NotApplicable):
        return f"{_shown(returned)}, which is not a Finding, Healthy or NotApplicable"
    wrong = _parts(returned, type(returned).__name__)
    effects = returned.effects if isinstance(returned, Finding) and not wrong else ()
    for effect in effects:
        if not 0.0 <= effect.scales < math.inf:
            return f"an Effect with scales={effect.scales:g}: it must be finite and at least 0; 1 means no change"
        if effect.of and (effect.of.unit is not Unit.MILLISECONDS or not 0.0 <= effect.of.value < math.inf):
            return "an Effect whose `of` is not a time: write of=ms(3.2)"
    return wrong


def _parts(value: Any, where: str) -> str:  # noqa: ANN401 - any dataclass
    kinds = get_type_hints(type(value))
    faults = (
        _wrong(getattr(value, field.name), kinds[field.name], f"{where}.{field.name}") for field in fields(value)
    )
    return next(filter(None, faults), "")


def _wrong(value: Any, kind: Any, where: str) -> str:  # noqa: ANN401 - whatever a rule put there
    """Return where a value does not match its annotation; all items of a tuple have the same one."""
    if get_origin(kind) is tuple and not isinstance(value, tuple):
        return f"{where} = {_shown(value)}, which is not a tuple: write (x,) for a single item"
    if get_origin(kind) is tuple:
        faults = (_wrong(item, get_args(kind)[0], f"{where}[{at}]") for at, item in enumerate(value))
        return next(filter(None, faults), "")
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if float in kinds and isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if not isinstance(value, tuple(kinds)):
        known = " or ".join(str(getattr(kind, "__name__", kind)) for kind in kinds)
        return f"{where} = {_shown(value)}, which is not a {known}"
    return _parts(value, where) if is_dataclass(value) else ""


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shown = repr(value)
    return shown if len(shown) <= LONGEST and "\n" not in shown else f"a {type(value).__name__}"
