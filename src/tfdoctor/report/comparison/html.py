"""The comparison as one HTML file that works offline and without scripts."""

from markupsafe import Markup

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.report.comparison import json
from tfdoctor.report.comparison.view import ComparisonView
from tfdoctor.report.palette import DARK_PAGE, LIGHT_PAGE, PART_COLOURS
from tfdoctor.report.template import asset, environment, in_script


def render(comparison: RunComparison) -> str:
    """Return the whole page."""
    return (
        environment()
        .get_template("comparison.html.jinja")
        .render(
            view=ComparisonView.of(comparison),
            colours=PART_COLOURS,
            surfaces=(LIGHT_PAGE, DARK_PAGE),
            style=Markup(asset("report.css")),  # noqa: S704 - our own file
            contract=in_script(json.render(comparison).strip()),
        )
    )
