"""Finds every fact, what it is measured from and who uses it."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tfdoctor import facts
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import kind_of, needs

SOURCE = Path(facts.__file__).parents[1]
GETTERS = {"get", "fact", "why_missing"}
"""The methods of a chart that take a fact by its type."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact; names of facts that it needs, and of the facts, rules and modules of ``diagnose`` that use it."""

    name: str
    module: str  # "tfdoctor.facts.step_time.breakdown"
    summary: str
    needs: tuple[str, ...]
    facts: tuple[str, ...]
    rules: tuple[str, ...]
    reports: tuple[str, ...]

    @property
    def room(self) -> str:
        """The folder below facts that the module lies in; "" for one directly in facts."""
        parts = self.module.split(".")
        return parts[2] if len(parts) > 3 else ""  # noqa: PLR2004 - tfdoctor.facts.ROOM.MODULE


def measured() -> tuple[type, ...]:
    """Return every class below ``facts`` that a chart can measure, in the order of their modules."""
    return tuple(kind for kind in _kinds() if _is_fact(kind))


def given() -> tuple[type, ...]:
    """Return the facts that are given: they say why they are absent."""
    return tuple(kind for kind in _kinds() if "ABSENT" in vars(kind))


def _kinds() -> Iterator[type]:
    """Yield every class defined below ``facts``, in the order of the modules."""
    names = [module.name for module in pkgutil.walk_packages(facts.__path__, "tfdoctor.facts.")]
    for name in sorted(names):
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and kind.__module__ == name:
                yield kind


def _is_fact(kind: type) -> bool:
    """Whether a class has a ``measure`` of its own that takes other facts or parts of a recording."""
    return "measure" in vars(kind) and bool(needs(_measure(kind)))


def index(rules: tuple[Rule, ...]) -> tuple[Fact, ...]:
    """Return all facts with what they rest on and who uses them."""
    kinds = sorted((*measured(), *given()), key=lambda kind: kind.__module__)
    reports = dict(_uses_in_reports())
    return tuple(
        Fact(
            name=kind.__name__,
            module=kind.__module__,
            summary=(inspect.getdoc(kind) or "").partition("\n")[0],
            needs=_needed(kind),
            facts=tuple(other.__name__ for other in kinds if kind.__name__ in _needed(other)),
            rules=tuple(rule.name for rule in rules if kind.__name__ in rule.needs),
            reports=tuple(sorted(m for m, names in reports.items() if kind.__name__ in names)),
        )
        for kind in kinds
    )


def _needed(kind: type) -> tuple[str, ...]:
    """Return the names of what a fact is measured from; () of one that is given."""
    found = needs(_measure(kind)).values() if "measure" in vars(kind) else ()
    return tuple(kind_of(need).__name__ for need in found)


def _measure(kind: type) -> Callable[..., object]:
    bound: Callable[..., object] = vars(kind)["measure"].__get__(None, kind)
    return bound


def _uses_in_reports() -> Iterator[tuple[str, set[str]]]:
    """Yield the modules that diagnose, each with the names of the facts that it asks a chart for."""
    for path in sorted((SOURCE / "diagnose").rglob("*.py")):
        calls = (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call))
        names = {name for call in calls for name in _asked_for(call)}
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts), names


def _asked_for(call: ast.Call) -> Iterator[str]:
    match call:
        case ast.Call(func=ast.Attribute(attr=attribute), args=[argument]) if attribute in GETTERS:
            yield from (n.id for n in ast.walk(argument) if isinstance(n, ast.Name))
