"""``tfdoctor rules`` and ``tfdoctor explain``: the list of rules, and the page of each."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfdoctor.cli.completion import one_rule
from tfdoctor.cli.messages import draw
from tfdoctor.cli.rule_selection import ConfigFile, OwnRules, RuleOptions, book, untouched

if TYPE_CHECKING:
    from tfdoctor.diagnosis.rule import Rule
    from tfdoctor.rulebook.book import Rulebook


class Listing(StrEnum):
    """Output formats of the list."""

    TEXT = "text"
    JSON = "json"


def rules(
    *, form: Annotated[Listing, typer.Option("--format", help="Output format.")] = Listing.TEXT, rules: RuleOptions
) -> None:
    """List the rules by topic, with their titles and the facts they use."""
    applied = book(rules.settings())
    typer.echo(_json(applied) if form is Listing.JSON else _text(applied))


def explain(
    *,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Name of the rule.", autocompletion=one_rule)],
    config: ConfigFile = None,
    rules: OwnRules = None,
) -> None:
    """Show the page of a rule: what it checks, why it matters, how to fix it, its limits and an example."""
    from tfdoctor.cli.screen import rendered  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.terms.pages import built_in  # noqa: PLC0415 - same

    settings = RuleOptions(config, rules=rules).settings()
    page = (built_in(rule) if untouched(settings) else "") or _page(book(settings), rule)
    if sys.stdout.isatty():
        draw(rendered(page))
    else:
        typer.echo(page.rstrip("\n"))


def _page(applied: "Rulebook", name: str) -> str:
    from tfdoctor.report.rule_page import rule_page  # noqa: PLC0415 - keeps --help fast

    shown = _known(applied, name)
    return rule_page(shown, off=_off(applied).get(shown.name, ""))


def _known(applied: "Rulebook", name: str) -> "Rule":
    """Return a rule with its current limits, or with the defaults when it is switched off."""
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - same
    from tfdoctor.rulebook.config import ALL  # noqa: PLC0415 - keeps --help fast
    from tfdoctor.rulebook.suggestions import nearest  # noqa: PLC0415 - same
    from tfdoctor.terms.errors import ConfigError  # noqa: PLC0415 - same

    known = {known_rule.name: known_rule for known_rule in (*applied.known, *applied.rules)}
    if name in {ALL, *Topic}:
        raise ConfigError(f"{name} stands for several rules: `tfdoctor rules` lists them.")
    if name not in known:
        near = nearest(name, known)
        more = f"did you mean {near!r}?" if near else "`tfdoctor rules` lists all rules."
        raise ConfigError(f"unknown rule {name[:60]!r}: {more}")
    return known[name]


def _off(applied: "Rulebook") -> dict[str, str]:
    return {off.rule: off.why for off in applied.settings.off}


def _text(applied: "Rulebook") -> str:
    """Return the rules by topic: the name of each and whether it is off, its title, the facts it uses."""
    from tfdoctor.cli.screen import wrapped  # noqa: PLC0415 - keeps --help fast
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
    off, limited = _off(applied), {rule.name: rule for rule in applied.rules}
    entries: list[dict[str, Any]] = []
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
                "limits": {
                    name: {"value": getattr(limits, name), "default": default} for name, default in defaults.items()
                },
                "own": rule.own,
                "off": off.get(rule.name, ""),
            }
        )
    return json.dumps({"schema": 1, "rules": entries}, indent=2, sort_keys=True)
