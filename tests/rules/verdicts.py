"""A verdict as the kind that a test expects, and parts of it."""

from collections.abc import Callable

import pytest

from tfdoctor.terms.verdict import Finding, Healthy, Measure, NotApplicable, Table


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


def said(verdict: object) -> str:
    """Return the summary, or the reason why nothing was judged."""
    assert isinstance(verdict, Finding | Healthy | NotApplicable), verdict
    return verdict.reason if isinstance(verdict, NotApplicable) else verdict.summary


def scales(verdict: object) -> dict[str, float]:
    """Return what the effects of a finding leave, by subject."""
    return {effect.subject: effect.scales for effect in as_finding(verdict).effects}


def measured(verdict: object, words: str = "") -> dict[str, float]:
    """Return the numbers of the evidence whose labels hold the words."""
    assert isinstance(verdict, Finding | Healthy), verdict
    measures = [one for one in verdict.evidence if isinstance(one, Measure) and words in one.label]
    return {one.label: one.value.value for one in measures}


def table(verdict: object) -> Table:
    """Return the last table of the evidence."""
    assert isinstance(verdict, Finding | Healthy), verdict
    return [one for one in verdict.evidence if isinstance(one, Table)][-1]


def each_is(*rows: tuple[object, type] | tuple[object, type, str]) -> Callable[..., None]:
    """Return a test: each verdict is of its kind, and says the words that may be given."""

    @pytest.mark.parametrize(("verdict", "kind", "words"), [(*row, "")[:3] for row in rows])
    def test(verdict: object, kind: type, words: str) -> None:
        assert isinstance(verdict, kind), verdict
        assert words in said(verdict), verdict

    return test
