"""How large pages are, and how fast they open and move, in Chromium: ``python -m benchmarks.page [REPORT ...]``.

Of each report of the gallery, or of other recordings and stored reports: the size of the page, its height before
anything is unfolded in a window that is WIDTH wide, the rules of axe-core that it breaks, the time from navigation
to the first text (first contentful paint, median of LOADS loads of the file in new tabs), and that between frames
while its timeline is dragged. The last row is a sample whose timeline has BARS bars, more than a report ever has.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from benchmarks.gallery import REPORTS
from benchmarks.pages import table
from scripts.chromium import chromium
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnose.summary.timeline import TimelineWork, drawn
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.recording import Recording
from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import COMPRESSED, open_report, report_at

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "cpu-input-bound"
LOADS, BARS, LANES, FRAMES, WIDTH = 5, 5_000, 10, 120, 1280

COLUMNS = ("page", "size", "height", "axe violations", "first text", "bars", "frame, median", "95 %")

FIRST_TEXT = """() => new Promise(done => new PerformanceObserver(
    list => done(list.getEntriesByName('first-contentful-paint')[0].startTime)
).observe({type: 'paint', buffered: true}))"""

DRAG = """count => new Promise(done => {
    const canvas = document.querySelector('.timeline canvas'), box = canvas.getBoundingClientRect();
    const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {
        bubbles: true, pointerId: 1, isPrimary: true, button: 0, buttons: 1, clientX: x, clientY: box.top + 5}));
    for (let i = 0; i < 3; i++) document.querySelector('.timeline button').click();
    const frames = []; let last = 0, number = 0;
    send('pointerdown', box.left + box.width / 2);
    const next = now => {
        if (last) frames.push(now - last);
        last = now;
        if (number++ === count) { send('pointerup', box.left); return done(frames); }
        send('pointermove', box.left + box.width * (0.5 + 0.4 * Math.sin(number / 20)));
        requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
})"""


def many_bars(diagnosis: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose timeline has BARS bars."""
    each = BARS // LANES
    width = 20.0 / each
    lanes = [
        (
            f"lane {lane}",
            tuple(
                TimelineWork(number * width, 0.8 * width, PARTS[number % len(PARTS)], f"bar {number}")
                for number in range(each)
            ),
        )
        for lane in range(LANES)
    ]
    return replace(diagnosis, timeline=drawn(1, 20.0, lanes))


def opened(browser: Browser, file: Path) -> tuple[Page, float]:
    """Open a page; return it with the time to its first text, ms."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 800})
    page.goto(file.as_uri())
    first: float = page.evaluate(FIRST_TEXT)
    return page, first


def dragged(page: Page) -> list[float]:
    """Return the times between frames while the timeline is dragged, ms."""
    page.locator(".timeline").scroll_into_view_if_needed()
    before = page.locator(".timeline .axis").inner_text()
    frames: list[float] = page.evaluate(DRAG, FRAMES)
    if page.locator(".timeline .axis").inner_text() == before:
        sys.exit("The timeline did not move: the frames say nothing.")
    return frames


def row(browser: Browser, name: str, diagnosis: Diagnosis, folder: Path) -> list[str]:
    """Measure one page; return its row of the table."""
    file = folder / "report.html"
    file.write_text(html.render(diagnosis), encoding="utf-8")
    firsts = []
    for _ in range(LOADS):
        page, first = opened(browser, file)
        firsts.append(first)
        page.wait_for_selector("html[data-charts=drawn]", state="attached")
        height = page.evaluate("document.documentElement.scrollHeight")
        found = Axe().run(page).violations_count if len(firsts) == LOADS else 0
        frames = dragged(page) if diagnosis.timeline else [0.0, 0.0]
        page.close()
    bars = sum(len(lane.bars) for lane in diagnosis.timeline.lanes) if diagnosis.timeline else 0
    moves = (median(frames), quantiles(frames, n=20)[-1])
    shape = (f"{file.stat().st_size / 1e6:.2f} MB", f"{height:,} px", f"{found}")
    speed = (f"{median(firsts):.0f} ms", f"{bars:,}", *(f"{time:.1f} ms" for time in moves))
    return [name, *shape, *speed]


def diagnosed(path: Path) -> Diagnosis:
    """Return a stored report, or the diagnosis of a recording."""
    stored = report_at(path)
    if stored:
        return open_report(stored, all_rules())
    return diagnose(Recording.open(path), all_rules(), path.name, ask_xprof=False)


def rows(paths: list[Path]) -> Iterator[list[str]]:
    """Measure the pages of these, and the last one's row."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        for path in paths:
            yield row(browser, path.name.removesuffix(COMPRESSED), diagnosed(path), folder)
        yield row(browser, f"a sample, {BARS:,} bars", many_bars(diagnosed(SAMPLE)), folder)


def main() -> None:
    """Print the table."""
    for line in table(COLUMNS, rows([*map(Path, sys.argv[1:])] or sorted(REPORTS.glob(f"*{COMPRESSED}")))):
        print(line, flush=True)


if __name__ == "__main__":
    main()
