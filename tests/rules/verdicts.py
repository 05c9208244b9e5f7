"""A verdict as the kind that a test expects, and what it holds."""

from difflib import unified_diff

from tests.edits.kit import edited
from tests.kit import *
from tfdoctor.source_code.splice import Declined
from tfdoctor.terms.verdict import Bound, Finding, Healthy, NotApplicable, Stage, Verdict


def kinds(*verdicts: object) -> list[type]:
    """Return the kind of each verdict."""
    return [type(verdict) for verdict in verdicts]


def as_finding(verdict: object) -> Finding:
    """Return a verdict that must be a finding."""
    assert isinstance(verdict, Finding), verdict
    return verdict


def as_healthy(verdict: object) -> Healthy:
    """Return a verdict that must be healthy."""
    assert isinstance(verdict, Healthy), verdict
    return verdict


def as_not_applicable(verdict: object) -> NotApplicable:
    """Return a verdict that must be not applicable."""
    assert isinstance(verdict, NotApplicable), verdict
    return verdict


def first_action(verdict: object) -> str:
    """Return what the first remedy of a finding says."""
    return as_finding(verdict).remedies[0].action


Effects = list[tuple[Stage, float | None, float, Bound]]


def effects(verdict: object) -> Effects:
    """Return what a finding would shorten: the stage, the time in it (None: all), what is left, and how surely."""
    found: tuple[Any, ...] = as_finding(verdict).effects
    return [(effect.stage, effect.of and effect.of.value, effect.scales, effect.bound) for effect in found]


def near(value: Any, **more: Any) -> Any:
    """Return numbers for a comparison with others that may differ by rounding."""
    return pytest.approx(value, **more)


def described(text: str, judge: Callable[..., Verdict], *given: Any, **more: Any) -> Callable[[], Verdict]:
    """Return an example of a rule's page: what it is in a sentence, and how its facts are judged."""
    example = partial(judge, *given, **more)
    example.__doc__ = text
    return example


def lines_of_edit(name: str, text: str, marked: str) -> str:
    """Return the lines that an edit takes away and those that it makes, or why it declines."""
    try:
        made = edited(name, text, marked)
    except Declined as why:
        return f"declined: {why}"
    return "\n".join(
        line
        for line in unified_diff(text.split("\n"), made.split("\n"), n=0, lineterm="")
        if line[:2] not in {"--", "++", "@@"}
    )
