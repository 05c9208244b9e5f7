"""The rules to apply: built-in and the user's own, selected and limited by the settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from tfdoctor.diagnosis.gates import LimitSet, Off, Settings
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.rulebook import own_rules
from tfdoctor.rulebook.config import ALL, Config, RuleNames
from tfdoctor.rulebook.values import hint
from tfdoctor.rules import all_rules
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.record import Record

LIST = "`tfdoctor rules` lists them."  # There are too many for one message


class Rulebook(Record):
    """The rules to apply, how they were selected, and all known rules."""

    rules: tuple[Rule, ...]
    settings: Settings
    known: tuple[Rule, ...]


def rulebook(wanted: Config) -> Rulebook:
    """Return the rules of a configuration; the user's own may use the edit of every built-in one.

    Raises:
        ConfigError: a name in it does not exist, or one of the user's own rules is invalid.
    """
    built_in = all_rules()
    edits = tuple(name for rule in built_in for name in rule.edit_modules)
    own = own_rules.load(wanted.rules, {rule.name for rule in built_in})
    own = tuple(replace(rule, edit_modules=(*rule.edit_modules, *edits)) for rule in own)
    known = tuple(sorted((*built_in, *own), key=lambda rule: rule.name))
    return Rulebook(*applied(wanted, known), known)


def applied(config: Config, rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], Settings]:
    """Return the rules to apply, with their limits, and which settings differ from the defaults.

    As in ruff, the more specific choice wins: the name of a rule over its topic over ``ALL``; between two
    of the same rank, ``ignore`` wins.

    Raises:
        ConfigError: a rule, topic or limit does not exist, or the value of a limit is out of range.
    """
    known = {rule.name: rule for rule in rules}
    for names in (config.select, config.ignore):
        place = f"{names.by}: {names.key}" if names.key else names.by
        for name in names.names:
            if name not in {ALL, *Topic, *known}:
                near = hint(name, {ALL, *Topic, *known}, LIST)
                raise ConfigError(f"{place}: unknown rule or topic {name[:60]!r}: {near}")
    for name in config.limits:
        if name not in known:
            raise ConfigError(f"{config.by}: limits: unknown rule {name[:60]!r}: {hint(name, known, LIST)}")
    limits = {name: _limited(known[name], values, config.by) for name, values in config.limits.items()}
    off, chosen, changed = [], [], []
    for rule in rules:
        selected, ignored = _rank(config.select, rule), _rank(config.ignore, rule)
        if selected > ignored:
            chosen.append(limits.get(rule.name, rule))
            changed += _changed(limits[rule.name], config.by) if rule.name in limits else []
        else:
            why = f"ignored by {config.ignore.by}" if ignored else f"not selected by {config.select.by}"
            off.append(Off(rule.name, rule.doc.title, why))
    own = tuple(rule.name for rule in chosen if rule.own)
    return tuple(chosen), Settings(off=tuple(off), limits=tuple(changed), own=own)


def _rank(chosen: RuleNames, rule: Rule) -> int:
    """Return how a rule is chosen: 3 by its name, 2 by its topic, 1 by ALL, 0 not at all."""
    names = (ALL, str(rule.topic), rule.name)
    return max((rank for rank, name in enumerate(names, 1) if name in chosen.names), default=0)


def _limited(rule: Rule, values: Mapping[str, float], by: str) -> Rule:
    """Return a rule with limits that can be reached: a share above 1 would silently switch it off."""
    limits: Any = rule.limits
    known = {limit.name: limit for limit in fields(limits)} if limits else {}
    for name, value in values.items():
        where = f"{by}: limits.{rule.name}"
        if name not in known:
            raise ConfigError(f"{where}: unknown limit {name[:60]!r}: {hint(name, known)}")
        least, most = known[name].metadata.get("least", 0.0), known[name].metadata.get("most", math.inf)
        if value < least:
            raise ConfigError(f"{where}.{name} must be at least {least:g}, not {value:g}.")
        if value > most:
            raise ConfigError(
                f"{where}.{name} must be at most {most:g}, not {value:g}; use `ignore` to switch the rule off."
            )
    return replace(rule, limits=replace(limits, **values)) if values else rule


def _changed(rule: Rule, by: str) -> list[LimitSet]:
    limits: Any = rule.limits
    known: Any = fields(limits) if limits else ()
    return [
        LimitSet(rule.name, limit.name, value, float(limit.default), by)
        for limit in known
        if (value := getattr(limits, limit.name)) != limit.default
    ]
