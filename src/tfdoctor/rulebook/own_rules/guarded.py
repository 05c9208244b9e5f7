"""A rule of the user's own, called so that whatever it does is one sentence that names its file."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path

from tfdoctor.errors import ConfigError
from tfdoctor.facts.chart import Unavailable
from tfdoctor.rule import Rule
from tfdoctor.rulebook.own_rules.lines import line_of
from tfdoctor.rulebook.own_rules.verdicts import fault
from tfdoctor.verdict import Verdict


def guarded(rule: Rule, path: Path) -> Rule:
    """Return a rule whose functions return a verdict or raise a ConfigError."""
    return replace(
        rule,
        check=_guarded(rule.check, "check", path),
        sick=_guarded(rule.sick, "sick", path),
        healthy=_guarded(rule.healthy, "healthy", path),
    )


def _guarded(function: Callable[..., Verdict], name: str, path: Path) -> Callable[..., Verdict]:
    @wraps(function)
    def call(*facts: object, **named: object) -> Verdict:
        try:
            found = function(*facts, **named)
        except Unavailable:
            raise
        except (Exception, SystemExit) as error:
            said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":.")
            raise ConfigError(f"{path}{line_of(error, path)}: {name} failed: {said}.") from error
        if wrong := fault(found):
            raise ConfigError(f"{path}: {name} returned {wrong}.")
        return found

    return call
