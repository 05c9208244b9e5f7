"""Applies the settings to the rules: which of them run, and with which limits."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, replace
from typing import Any

from tfdoctor.diagnosis import LimitSet, Off, Settings
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.rulebook.config.settings import ALL, Config, RuleNames
from tfdoctor.rulebook.suggestions import hint, nearest
from tfdoctor.terms.errors import ConfigError


def applied(config: Config, rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], Settings]:
    """Return the rules to apply, with their limits, and which settings differ from the defaults.

    As in ruff, the more specific choice wins: the name of a rule over its topic over ``ALL``; between two
    of the same rank, ``ignore`` wins.

    Raises:
        ConfigError: a rule, topic or limit does not exist, or the value of a limit is out of range.
    """
    _known(config.select, rules)
    _known(config.ignore, rules)
    limits = _limited(config, rules)
    off = [Off(rule.name, rule.doc.title, why) for rule in rules if (why := _why_off(config, rule))]
    switched_off = {rule_off.rule for rule_off in off}
    chosen = tuple(limits.get(rule.name, rule) for rule in rules if rule.name not in switched_off)
    changed = [set_ for rule in chosen if rule.name in limits for set_ in _changed(rule, config.by)]
    own = tuple(rule.name for rule in chosen if rule.own)
    return chosen, Settings(off=tuple(off), limits=tuple(changed), own=own)


def _known(chosen: RuleNames, rules: Sequence[Rule]) -> None:
    names = {ALL, *Topic, *(rule.name for rule in rules)}
    for name in chosen.names:
        if name not in names:
            raise ConfigError(f"{chosen.place}: unknown rule or topic {name[:60]!r}: {_lead(name, names)}")


def _lead(name: str, names: Iterable[str]) -> str:
    """Return the similar name, or how to list the names: there are too many for one message."""
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else "`tfdoctor rules` lists them."


def _why_off(config: Config, rule: Rule) -> str:
    selected, ignored = _rank(config.select, rule), _rank(config.ignore, rule)
    if selected > ignored:
        return ""
    return f"ignored by {config.ignore.by}" if ignored else f"not selected by {config.select.by}"


def _rank(chosen: RuleNames, rule: Rule) -> int:
    """Return how a rule is chosen: 3 by its name, 2 by its topic, 1 by ALL, 0 not at all."""
    names = (ALL, str(rule.topic), rule.name)
    return max((rank for rank, name in enumerate(names, 1) if name in chosen.names), default=0)


def _limited(config: Config, rules: Sequence[Rule]) -> Mapping[str, Rule]:
    """Return the rules whose limits are set, by name."""
    known = {rule.name: rule for rule in rules}
    for name in config.limits:
        if name not in known:
            raise ConfigError(f"{config.by}: limits: unknown rule {name[:60]!r}: {_lead(name, known)}")
    return {name: _set(known[name], values, config.by) for name, values in config.limits.items()}


def _set(rule: Rule, values: Mapping[str, float], by: str) -> Rule:
    limits: Any = rule.limits
    known = {limit.name: limit for limit in fields(limits)} if limits else {}
    for name, value in values.items():
        where = f"{by}: limits.{rule.name}"
        if name not in known:
            raise ConfigError(f"{where}: unknown limit {name[:60]!r}: {hint(name, known)}")
        _within(known[name], value, f"{where}.{name}")
    return replace(rule, limits=replace(limits, **values)) if values else rule


def _within(limit: Field[Any], value: float, where: str) -> None:
    """Check that a limit can be reached: a share above 1 would silently switch its rule off."""
    least, most = limit.metadata.get("least", 0.0), limit.metadata.get("most", math.inf)
    if value < least:
        raise ConfigError(f"{where} must be at least {least:g}, not {value:g}.")
    if value > most:
        raise ConfigError(f"{where} must be at most {most:g}, not {value:g}; use `ignore` to switch the rule off.")


def _changed(rule: Rule, by: str) -> list[LimitSet]:
    limits: Any = rule.limits
    known: Any = fields(limits) if limits else ()
    pairs = [(limit, getattr(limits, limit.name)) for limit in known]
    return [
        LimitSet(rule.name, limit.name, value, float(limit.default), by)
        for limit, value in pairs
        if value != limit.default
    ]
