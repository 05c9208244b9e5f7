"""A rule as the engine applies it, preconditions included, on facts written by hand."""

from types import ModuleType

from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart, Unavailable, kind_of, needs
from tfdoctor.terms.verdict import Verdict


def applied(module: ModuleType, *facts: object) -> Verdict:
    """Return the verdict of a rule's module; a fact that is not given, or None, is unavailable."""
    rule = Rule.from_module(module)
    wanted = (kind for part in (rule.check, *rule.preconditions) for kind in needs(part).values())
    missing = {kind_of(kind): Unavailable("it is not at hand") for kind in wanted}
    known = {type(fact) for fact in facts}
    return rule.apply(Chart(filter(None, facts), {k: v for k, v in missing.items() if k not in known}))
