"""Renderings of a fleet: a page and a terminal summary."""

from pathlib import Path

from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.report.files import write_texts
from tfdoctor.report.fleet.html import render

PAGE = "fleet.html"


def write(report: FleetReport, folder: Path) -> Path:
    """Write the page and return its path.

    Raises:
        OutputError: the folder cannot be written to, or something else has the name of the page.
    """
    path = folder / PAGE
    write_texts(folder, {path: render(report)})
    return path
