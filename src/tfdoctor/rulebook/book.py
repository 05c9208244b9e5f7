"""The rules that apply: tfdoctor's and the user's own, chosen and set as the user wants."""

from dataclasses import dataclass

from tfdoctor.diagnosis import Settings
from tfdoctor.rule import Rule
from tfdoctor.rulebook import config, own_rules
from tfdoctor.rulebook.config import Config
from tfdoctor.rules import all_rules


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules to apply, how they were chosen, and every rule there is."""

    rules: tuple[Rule, ...]
    settings: Settings
    known: tuple[Rule, ...]


def rulebook(wanted: Config) -> Rulebook:
    """Return the rules by a configuration.

    Raises:
        ConfigError: it names what does not exist, or a rule of the user's own is none.
    """
    built_in = all_rules()
    own = own_rules.load(wanted.rules, {rule.name for rule in built_in})
    known = tuple(sorted((*built_in, *own), key=lambda rule: rule.name))
    rules, settings = config.applied(wanted, known)
    return Rulebook(rules, settings, known)
