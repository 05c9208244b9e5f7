"""A rule as the engine applies it, preconditions included, on facts written by hand."""

import inspect
from typing import Any

from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart, Unavailable, kind_of, needs
from tfdoctor.terms.verdict import Verdict


def rule_of(check: Any) -> Rule:
    """Return the rule of a check, or of its module."""
    module: Any = inspect.getmodule(check)
    return Rule.from_module(module)


def applied(check: Any, *facts: object) -> Verdict:
    """Return the verdict of a rule; a fact that is not given, or None, is unavailable."""
    rule = rule_of(check)
    wanted = (kind for part in (rule.check, *rule.preconditions) for kind in needs(part).values())
    missing = {kind_of(kind): Unavailable("it is not at hand") for kind in wanted}
    known = {type(fact) for fact in facts}
    return rule.apply(Chart(filter(None, facts), {k: v for k, v in missing.items() if k not in known}))


def examined(check: Any, of: Chart) -> Result:
    """Return what the engine makes of a chart by this rule alone."""
    (result,) = engine.examine(of, [rule_of(check)])
    return result
