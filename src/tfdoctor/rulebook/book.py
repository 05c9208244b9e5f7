"""The rules to apply: built-in and the user's own, selected and set by the configuration."""

from dataclasses import dataclass

from tfdoctor.diagnosis import Settings
from tfdoctor.rule import Rule
from tfdoctor.rulebook import config, own_rules
from tfdoctor.rulebook.config import Config
from tfdoctor.rules import all_rules


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules to apply, how they were selected, and all known rules."""

    rules: tuple[Rule, ...]
    settings: Settings
    known: tuple[Rule, ...]


def rulebook(wanted: Config) -> Rulebook:
    """Return the rules of a configuration.

    Raises:
        ConfigError: a name in it does not exist, or one of the user's own rules is invalid.
    """
    built_in = all_rules()
    own = own_rules.load(wanted.rules, {rule.name for rule in built_in})
    known = tuple(sorted((*built_in, *own), key=lambda rule: rule.name))
    rules, settings = config.applied(wanted, known)
    return Rulebook(rules, settings, known)
