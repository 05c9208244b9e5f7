"""What tfdoctor tells of itself: ``rules``, ``explain`` and ``check``; ``mcp`` tells assistants of recordings."""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tfdoctor.cli.commands import CheckOptions, ExplainOptions, Listing, McpOptions, RulesOptions
from tfdoctor.cli.options import RuleOptions, book
from tfdoctor.cli.streams import draw
from tfdoctor.rulebook.config import ALL, Config
from tfdoctor.terms.errors import ConfigError, InputError, TfdoctorError
from tfdoctor.terms.pages import built_in

if TYPE_CHECKING:
    from tfdoctor.rulebook.book import Rulebook


def rules(given: RulesOptions) -> None:
    """List the rules."""
    applied = book(given.rules.settings())
    off = {off.rule: off.why for off in applied.settings.off}
    typer.echo(_json(applied, off) if given.form is Listing.JSON else _text(applied, off))


def _text(applied: "Rulebook", off: dict[str, str]) -> str:
    """Return the rules by topic: the name of each and whether it is off, its title, the facts it uses."""
    from tfdoctor.cli.screen import wrapped  # noqa: PLC0415 - brings rich
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - a built-in page needs none of this

    lines = []
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


def _json(applied: "Rulebook", off: dict[str, str]) -> str:
    limited, entries = {rule.name: rule for rule in applied.rules}, []
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
    from tfdoctor.diagnosis.rule import Topic  # noqa: PLC0415 - as above
    from tfdoctor.report.rule_page import rule_page  # noqa: PLC0415 - same
    from tfdoctor.rulebook.values import hint  # noqa: PLC0415 - same

    known = {rule.name: rule for rule in (*applied.known, *applied.rules)}
    if name in {ALL, *Topic}:
        raise ConfigError(f"{name} stands for several rules: `tfdoctor rules` lists them.")
    if name not in known:
        near = hint(name, known, "`tfdoctor rules` lists all rules.")
        raise ConfigError(f"unknown rule {name[:60]!r}: {near}")
    return rule_page(known[name], off=next((off.why for off in applied.settings.off if off.rule == name), ""))


def check(given: CheckOptions) -> int:
    """Say what a recording on this machine would contain, and return the exit code."""
    from tfdoctor.capture.readiness import Ability, abilities  # noqa: PLC0415 - not for the others
    from tfdoctor.trial import layer  # noqa: PLC0415 - same

    stays, git = layer.why_not(Path.cwd()), shutil.which("git")
    asks = "`tfdoctor try` asks before it runs the program, whose files stay written" if stays else ""
    thrown = stays or "writes of its runs are thrown away"
    missing = "git was not found, so `tfdoctor try --patch` has nothing to apply a patch with"
    everything = [
        *abilities(given.python),
        Ability("tfdoctor try", works=not stays, what=thrown, remedy=asks),
        Ability("git", works=git is not None, what=git or missing),
    ]
    width = max(len(ability.name) for ability in everything)
    for ability in everything:
        remedy = f": {ability.remedy}" if ability.remedy else ""
        state = {None: "none", True: "ok", False: "missing"}[ability.works]
        typer.echo(f"{state:<8}{ability.name:<{width}}  {ability.what}{remedy}")
    fails = any(ability.needed and not ability.works for ability in everything)
    return TfdoctorError.exit_code if fails else 0


def mcp(given: McpOptions) -> None:
    """Serve recordings until the client leaves."""
    try:
        from tfdoctor.mcp.server import serve  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise InputError("`tfdoctor mcp` needs the package mcp: pip install 'tfdoctor[mcp]'.") from error
    serve(tuple(given.folders or [Path()]), allow_run=given.allow_run)
