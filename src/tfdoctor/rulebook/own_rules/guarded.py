"""Calls the user's own rules; any failure becomes one sentence that names the file."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path

from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Unavailable
from tfdoctor.rulebook.own_rules.lines import line_of
from tfdoctor.rulebook.own_rules.verdicts import fault
from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.verdict import Verdict


def guarded(rule: Rule, path: Path) -> Rule:
    """Return the rule with functions that return a verdict or raise a ConfigError."""
    return replace(
        rule,
        check=_guarded(rule.check, "check", path),
        sick=_guarded(rule.sick, "sick", path) if rule.sick else None,
        healthy=_guarded(rule.healthy, "healthy", path) if rule.healthy else None,
    )


def _guarded(function: Callable[..., Verdict], name: str, path: Path) -> Callable[..., Verdict]:
    @wraps(function)
    def call(*facts: object, **named: object) -> Verdict:
        try:
            verdict = function(*facts, **named)
        except Unavailable:
            raise
        except (Exception, SystemExit) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":.")
            line = line_of(error, path)
            raise ConfigError(f"{path}{line}: {name} failed: {message}.") from error
        if wrong := fault(verdict):
            raise ConfigError(f"{path}: {name} returned {wrong}.")
        return verdict

    return call
