"""A fleet as one HTML file that works offline: the first rows without scripts, all with them."""

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.fleet.view import COLUMNS, FleetView
from tfdoctor.report.template import fill


def render(report: FleetReport) -> str:
    """Return the whole page."""
    return fill("fleet.html.jinja", view=FleetView.of(report), columns=COLUMNS)
