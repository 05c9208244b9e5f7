"""The rules to apply: built-in and the user's own, selected and set by the configuration."""

from collections.abc import Sequence
from dataclasses import replace

from tfdoctor.diagnosis import Settings
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.rulebook import config, own_rules
from tfdoctor.rulebook.config import Config
from tfdoctor.rules import all_rules
from tfdoctor.terms.record import Record


class Rulebook(Record):
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
    own = _with_edits(own_rules.load(wanted.rules, {rule.name for rule in built_in}), built_in)
    known = tuple(sorted((*built_in, *own), key=lambda rule: rule.name))
    rules, settings = config.applied(wanted, known)
    return Rulebook(rules, settings, known)


def _with_edits(own: Sequence[Rule], built_in: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the user's own rules, which may use the edit of every built-in one."""
    modules = tuple(name for rule in built_in for name in rule.edit_modules)
    return tuple(replace(rule, edit_modules=(*rule.edit_modules, *modules)) for rule in own)
