"""The comparison as one HTML file that works offline and without scripts."""

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.report.comparison import json
from tfdoctor.report.comparison.view import ComparisonView
from tfdoctor.report.template import fill


def render(comparison: RunComparison) -> str:
    """Return the whole page."""
    view, contract = ComparisonView.of(comparison), json.render(comparison).strip()
    return fill("comparison.html.jinja", view=view, contract=contract)
