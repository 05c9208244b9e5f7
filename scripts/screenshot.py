"""Takes the pictures of a report and of a comparison for the docs: ``python -m scripts.screenshot``.

Needs Chromium. They are of the samples in the tutorial, so that the pictures and the text say the same.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from scripts.chromium import chromium
from tfdoctor.compare.compare import compare
from tfdoctor.compare.reports import load
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.report import comparison
from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules

ROOT = Path(__file__).resolve().parent.parent
SAMPLES, PICTURES = ROOT / "sample_traces", ROOT / "docs" / "images"
RUN = SAMPLES / "cpu-outside-steps"
BEFORE, AFTER = SAMPLES / "cpu-input-bound", SAMPLES / "cpu-input-bound-fixed"

WIDTH = 1120
"""Pixels: README shows the text legibly."""


def examined(recording: Recording, title: str) -> Diagnosis:
    """Diagnose a sample."""
    return diagnose(recording, all_rules(), title, ask_xprof=False)


def report() -> str:
    """Return the page of a report."""
    return html.render(examined(Recording.open(RUN), "outside_steps.py"))


def difference() -> str:
    """Return the page of a comparison."""
    before, after = (load(path, examined, all_rules()) for path in (BEFORE, AFTER))
    return comparison.render("html", compare([before], [after]))


PAGES = {
    "report.png": (report, 1050, "html[data-charts=drawn]"),  # down to the changes
    "diff.png": (difference, 790, "html"),  # down to the parts of the step
}
"""The page of each picture, its height in pixels, and what is there when it is drawn."""


def take(browser: Browser, name: str, folder: Path) -> None:
    """Write one picture."""
    make, height, ready = PAGES[name]
    file = folder / f"{name}.html"
    file.write_text(make(), encoding="utf-8")
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
    page.goto(file.as_uri())
    page.wait_for_selector(ready)
    page.screenshot(path=PICTURES / name)
    print(f"wrote {(PICTURES / name).relative_to(ROOT)}")


def main() -> None:
    """Write the pictures named on the command line, or all."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name in sys.argv[1:] or PAGES:
            take(browser, name, Path(folder))


if __name__ == "__main__":
    main()
