"""Settings applied to the rules that there are: which of them run, and with which limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from typing import Any

from tfdoctor.diagnosis import LimitSet, Off, Settings
from tfdoctor.errors import ConfigError
from tfdoctor.rule import Rule, Topic
from tfdoctor.rulebook.config.settings import ALL, Config, RuleNames
from tfdoctor.rulebook.suggestions import hint


def applied(config: Config, rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], Settings]:
    """Return the rules to apply, with their limits, and what is not as it comes.

    As with ruff the more specific choice counts: a rule's name before its topic before ``ALL``; of two
    alike, ``ignore``.

    Raises:
        ConfigError: a rule, topic or limit does not exist, or a limit is less or more than it can be.
    """
    _known(config.select, "select", rules)
    _known(config.ignore, "ignore", rules)
    limits = _limited(config, rules)
    off = [Off(rule.name, rule.doc.title, why) for rule in rules if (why := _why_off(config, rule))]
    names = {one.rule for one in off}
    chosen = tuple(limits.get(rule.name, rule) for rule in rules if rule.name not in names)
    changed = [one for rule in chosen if rule.name in limits for one in _changed(rule, config.by)]
    own = tuple(rule.name for rule in chosen if rule.own)
    return chosen, Settings(off=tuple(off), limits=tuple(changed), own=own)


def _known(chosen: RuleNames, key: str, rules: Sequence[Rule]) -> None:
    names = {ALL, *Topic, *(rule.name for rule in rules)}
    for name in chosen.names:
        if name not in names:
            place = chosen.by if chosen.by.startswith("--") else f"{chosen.by}: {key}"
            raise ConfigError(f"{place}: unknown rule or topic {name[:60]!r}: {hint(name, names)}")


def _why_off(config: Config, rule: Rule) -> str:
    selected, ignored = _rank(config.select, rule), _rank(config.ignore, rule)
    if selected > ignored:
        return ""
    return f"ignored by {config.ignore.by}" if ignored else f"not selected by {config.select.by}"


def _rank(chosen: RuleNames, rule: Rule) -> int:
    """Return how specifically a rule is named: 3 by its name, 2 by its topic, 1 by ALL, else 0."""
    names = (ALL, str(rule.topic), rule.name)
    return max((rank for rank, name in enumerate(names, 1) if name in chosen.names), default=0)


def _limited(config: Config, rules: Sequence[Rule]) -> Mapping[str, Rule]:
    """Return the rules whose limits are set, by name."""
    known = {rule.name: rule for rule in rules}
    for name in config.limits:
        if name not in known:
            with_limits = [rule.name for rule in rules if rule.limits]
            raise ConfigError(
                f"{config.by}: limits: unknown rule {name[:60]!r}: {hint(name, with_limits)}"
            )
    return {name: _set(known[name], values, config.by) for name, values in config.limits.items()}


def _set(rule: Rule, values: Mapping[str, float], by: str) -> Rule:
    limits: Any = rule.limits
    known = {one.name: one for one in fields(limits)} if limits else {}
    for name, value in values.items():
        where = f"{by}: limits.{rule.name}"
        if name not in known:
            raise ConfigError(f"{where}: unknown limit {name[:60]!r}: {hint(name, known)}")
        _within(known[name], value, f"{where}.{name}")
    return replace(rule, limits=replace(limits, **values)) if values else rule


def _within(one: Field[Any], value: float, where: str) -> None:
    """See that a limit can be reached: a share above 1 would switch its rule off in silence."""
    least, most = one.metadata.get("least", 0.0), one.metadata.get("most", math.inf)
    if value < least:
        raise ConfigError(f"{where} must be at least {least:g}, not {value:g}.")
    if value > most:
        raise ConfigError(
            f"{where} must be at most {most:g}, not {value:g}: to switch the rule off, ignore it."
        )


def _changed(rule: Rule, by: str) -> list[LimitSet]:
    limits: Any = rule.limits
    known: Any = fields(limits) if limits else ()
    pairs = [(one, getattr(limits, one.name)) for one in known]
    return [
        LimitSet(rule.name, one.name, value, float(one.default), by)
        for one, value in pairs
        if value != one.default
    ]
