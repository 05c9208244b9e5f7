"""Takes the picture of a report that README shows: ``python -m scripts.screenshot``. Needs Chromium.

The report is that of the sample in README's text, so that the picture and the text say the same.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.recording import Recording
from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "sample_traces" / "cpu-input-bound"
PICTURE = ROOT / "docs" / "images" / "report.png"

WIDTH, HEIGHT = 1120, 1150
"""Pixels: down to the timeline, at a width at which README shows the text legibly."""


def main() -> None:
    """Write the picture."""
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    path = next(filter(None, browsers), None)
    if path is None:
        sys.exit("Chromium is not installed: install it, then run this again.")
    report = diagnose(Recording.open(SAMPLE), all_rules(), "input_bound.py", ask_xprof=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(html.render(report), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]")
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
