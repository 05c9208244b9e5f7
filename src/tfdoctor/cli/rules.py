"""``tfdoctor rules`` and ``tfdoctor explain``: the list of rules, and the page of each."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from tfdoctor.cli.commands import ExplainOptions, Listing, RulesOptions
from tfdoctor.cli.options import RuleOptions, book
from tfdoctor.cli.streams import draw
from tfdoctor.rulebook.config import Config
from tfdoctor.terms.pages import built_in

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook


def rules(given: RulesOptions) -> None:
    """List the rules."""
    applied = book(given.rules.settings())
    typer.echo(_json(applied) if given.form is Listing.JSON else _text(applied))


def explain(given: ExplainOptions) -> None:
    """Show the page of a rule."""
    chosen = RuleOptions(config=given.config, rules=given.rules).settings()
    page = (built_in(given.rule) if chosen == Config() else "") or _page(book(chosen), given.rule)
    if sys.stdout.isatty():
        from tfdoctor.cli.screen import rendered  # noqa: PLC0415 - brings rich

        draw(rendered(page))
    else:
        typer.echo(page.rstrip("\n"))


def _page(applied: "Rulebook", name: str) -> str:
    """Return the page of a rule with its current limits, or with the defaults when it is switched off."""
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - a built-in page needs none of this
    from tfdoctor.report.rule_page import rule_page  # noqa: PLC0415 - same
    from tfdoctor.rulebook.config import ALL  # noqa: PLC0415 - same
    from tfdoctor.rulebook.values import hint  # noqa: PLC0415 - same
    from tfdoctor.terms.errors import ConfigError  # noqa: PLC0415 - same

    known = {rule.name: rule for rule in (*applied.known, *applied.rules)}
    if name in {ALL, *Topic}:
        raise ConfigError(f"{name} stands for several rules: `tfdoctor rules` lists them.")
    if name not in known:
        near = hint(name, known, "`tfdoctor rules` lists all rules.")
        raise ConfigError(f"unknown rule {name[:60]!r}: {near}")
    return rule_page(known[name], off=_off(applied).get(name, ""))


def _off(applied: "Rulebook") -> dict[str, str]:
    return {off.rule: off.why for off in applied.settings.off}


def _text(applied: "Rulebook") -> str:
    """Return the rules by topic: the name of each and whether it is off, its title, the facts it uses."""
    from tfdoctor.cli.screen import wrapped  # noqa: PLC0415 - as above
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - same

    off, lines = _off(applied), []
    for topic in Topic:
        mine = [rule for rule in applied.known if rule.topic is topic]
        lines += [f"{topic} ({len(mine)})"] if mine else []
        for rule in mine:
            marks = ", ".join(filter(None, ("your own" if rule.own else "", off.get(rule.name))))
            lines.append(f"  {rule.name}{f' [{marks}]' if marks else ''}")
            lines += [f"      {rule.doc.title}", f"      uses {', '.join(rule.needs)}"]
        lines += [""] if mine else []
    count = len(applied.known)
    active = f"{count - len(off)} of {count} rules active" if off else f"{count} rules"
    return wrapped([*lines, f"{active}; `tfdoctor explain RULE` shows the page of a rule."])


def _json(applied: "Rulebook") -> str:
    off, limited, entries = _off(applied), {rule.name: rule for rule in applied.rules}, []
    for known in applied.known:
        rule = limited.get(known.name, known)
        limits: Any = rule.limits
        defaults = asdict(type(limits)()) if limits else {}
        entries.append(
            {
                "name": rule.name,
                "topic": rule.topic.value,
                "title": rule.doc.title,
                "since": rule.since,
                "needs": list(rule.needs),
                "limits": {name: {"value": getattr(limits, name), "default": defaults[name]} for name in defaults},
                "own": rule.own,
                "off": off.get(rule.name, ""),
            }
        )
    return json.dumps({"schema": 1, "rules": entries}, indent=2, sort_keys=True)
