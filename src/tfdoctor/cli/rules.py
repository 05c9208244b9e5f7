"""``tfdoctor rules`` and ``tfdoctor explain``: what is checked, and each rule's page."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfdoctor.cli.choosing import ConfigFile, Ignore, OwnRules, Select, book, settings

if TYPE_CHECKING:
    from tfdoctor.rule import Rule
    from tfdoctor.rulebook.book import Rulebook


class Listing(StrEnum):
    """How the list is written."""

    TEXT = "text"
    JSON = "json"


def rules(
    *,
    form: Annotated[
        Listing, typer.Option("--format", help="How to write the list.")
    ] = Listing.TEXT,
    config: ConfigFile = None,
    select: Select = None,
    ignore: Ignore = None,
    rules: OwnRules = None,
) -> None:
    """List the rules by topic: what each reports, and the facts that it needs."""
    applied = book(settings(config, select, ignore, rules))
    typer.echo(_json(applied) if form is Listing.JSON else _text(applied))


def explain(
    *,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")],
    config: ConfigFile = None,
    rules: OwnRules = None,
) -> None:
    """Show the page of a rule: what it checks, why, how to fix it, its limits as they are set, and an example."""
    from tfdoctor.cli.screen import rendered  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.report.rule_page import rule_page  # noqa: PLC0415 - same

    applied = book(settings(config, rules=rules))
    found = _known(applied, rule)
    page = rule_page(found, off=_off(applied).get(found.name, ""))
    typer.echo(rendered(page) if sys.stdout.isatty() else page.rstrip("\n"))


def _known(applied: "Rulebook", name: str) -> "Rule":
    """Return a rule as it applies; one that is switched off as it comes."""
    from tfdoctor.errors import ConfigError  # noqa: PLC0415 - same
    from tfdoctor.rule import Topic  # noqa: PLC0415 - same
    from tfdoctor.rulebook.config import ALL  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rulebook.suggestions import nearest  # noqa: PLC0415 - same

    known = {one.name: one for one in (*applied.known, *applied.rules)}
    if name in {ALL, *Topic}:
        raise ConfigError(f"{name} is no rule but several: `tfdoctor rules` lists them.")
    if name not in known:
        near = nearest(name, known)
        more = f"did you mean {near!r}?" if near else "`tfdoctor rules` lists those that there are."
        raise ConfigError(f"unknown rule {name[:60]!r}: {more}")
    return known[name]


def _off(applied: "Rulebook") -> dict[str, str]:
    return {one.rule: one.why for one in applied.settings.off}


def _text(applied: "Rulebook") -> str:
    from tfdoctor.cli.screen import wrapped  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rule import Topic  # noqa: PLC0415 - same

    off = _off(applied)
    lines = []
    for topic in Topic:
        mine = [rule for rule in applied.known if rule.topic is topic]
        lines += [f"{topic} ({len(mine)})"] if mine else []
        for rule in mine:
            marks = [*(["your own"] if rule.own else []), *filter(None, [off.get(rule.name, "")])]
            mark = f" [{', '.join(marks)}]" if marks else ""
            lines += [
                f"  {rule.name}{mark}",
                f"      {rule.doc.title}",
                f"      needs {', '.join(rule.needs)}",
            ]
        lines += [""] if mine else []
    count = len(applied.known)
    applied_count = f"{count - len(off)} of {count} rules apply" if off else f"{count} rules"
    return wrapped([*lines, f"{applied_count}; `tfdoctor explain RULE` shows the page of one."])


def _json(applied: "Rulebook") -> str:
    off, limited = _off(applied), {rule.name: rule for rule in applied.rules}
    entries = [
        _entry(limited.get(rule.name, rule), off.get(rule.name, "")) for rule in applied.known
    ]
    return json.dumps({"schema": 1, "rules": entries}, indent=2, sort_keys=True)


def _entry(rule: "Rule", off: str) -> dict[str, Any]:
    limits: Any = rule.limits
    defaults = asdict(type(limits)()) if limits else {}
    return {
        "name": rule.name,
        "topic": rule.topic.value,
        "title": rule.doc.title,
        "since": rule.since,
        "needs": list(rule.needs),
        "limits": {
            name: {"value": getattr(limits, name), "default": default}
            for name, default in defaults.items()
        },
        "own": rule.own,
        "off": off,
    }
