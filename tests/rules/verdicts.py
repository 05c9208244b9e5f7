"""A verdict as the kind that a test expects."""

from tfdoctor.terms.verdict import Finding, Healthy, NotApplicable


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
