"""The pages for whoever changes the code: the map of the packages and the list of facts."""

import importlib
import inspect
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.fact_index import Fact, index
from tfdoctor import facts
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.report.rule_page import table

ROOT = Path(__file__).resolve().parent.parent

FACTS = """\
A fact is what was measured of one recording: a frozen `Record` whose `measure` names, by type, the parts of the
recording and the other facts that it is computed from. A rule names facts in the signature of its `check` and
reasons over nothing else. `make fact NAME=… ROOM=…` begins a new one;
[how a figure is made](../explanation/how-a-figure-is-made.md) follows one from the trace to the report.

"Used by" lists rules, other facts, and the modules of `diagnose` that put a fact into the report.
A measurement that only one rule uses stands beside that rule.
"""


GIVEN = {
    "EnergyPrices": "given by `--usd-per-kwh` and `--gco2-per-kwh`",
    "Price": "given by `--usd-per-hour`",
    "Unexplained": "given to the general rules, from the findings of the others",
}
"""The facts that no recording contains, and what supplies them."""


def package_map() -> Iterator[str]:
    """Yield the packages from the top of the import contracts to the bottom, with what each holds."""
    rows = [(" · ".join(_linked(name) for name in layer), _summaries(layer)) for layer in _layers()]
    yield from table(("imports go down", "what is there"), rows)
    yield ""
    yield "The rooms of `facts`:"
    yield ""
    rooms = [(f"`facts/{room}`", _first_line(f"tfdoctor.facts.{room}")) for room in _rooms()]
    yield from table(("room", "what is there"), rooms)


def facts_page(rules: tuple[Rule, ...]) -> Iterator[str]:
    """Yield the list of facts, by room."""
    yield "# The facts\n"
    yield FACTS
    known = index(rules)
    for room in ("", *_rooms()):
        yield f"## {f'facts/{room}' if room else 'facts'}\n"
        yield f"{_first_line(f'tfdoctor.facts.{room}'.rstrip('.'))}\n"
        members = [fact for fact in known if fact.room == room]
        yield from table(("fact", "what it holds", "measured from", "used by"), map(_row, members))
        yield ""


def _row(fact: Fact) -> tuple[str, str, str, str]:
    path = f"../../src/{fact.module.replace('.', '/')}.py"
    rules = [f"[{rule}](../rules/{rule}.md)" for rule in fact.rules]
    needs = ", ".join(f"`{name}`" for name in fact.needs) or GIVEN[fact.name]
    users = ", ".join([*rules, *(f"`{name}`" for name in (*fact.facts, *fact.reports))])
    return f"[{fact.name}]({path})", fact.summary, needs, users


def _layers() -> list[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in layers]


def _linked(name: str) -> str:
    folder = ROOT / "src" / "tfdoctor" / name
    return f"[{name}](src/tfdoctor/{name if folder.is_dir() else f'{name}.py'})"


def _summaries(names: Iterable[str]) -> str:
    return "<br>".join(_first_line(f"tfdoctor.{name}") for name in names)


def _first_line(module: str) -> str:
    return (inspect.getdoc(importlib.import_module(module)) or "").partition("\n")[0]


def _rooms() -> list[str]:
    return sorted(path.parent.name for path in Path(facts.__path__[0]).glob("*/__init__.py"))
