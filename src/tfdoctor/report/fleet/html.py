"""A fleet as one HTML file that works offline: the first rows without scripts, all with them."""

from markupsafe import Markup

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.fleet.view import COLUMNS, FleetView
from tfdoctor.report.palette import DARK_PAGE, LIGHT_PAGE
from tfdoctor.report.template import asset, environment, in_script, script_hash


def render(report: FleetReport) -> str:
    """Return the whole page."""
    script = asset("fleet.js")
    view = FleetView.of(report)
    return (
        environment()
        .get_template("fleet.html.jinja")
        .render(
            view=view,
            columns=COLUMNS,
            surfaces=(LIGHT_PAGE, DARK_PAGE),
            style=Markup(asset("report.css")),  # noqa: S704 - our own file
            own_style=Markup(asset("fleet.css")),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            script_hash=script_hash(script),
            data=in_script(view.data),
        )
    )
