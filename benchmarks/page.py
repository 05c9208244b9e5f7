"""How fast a report opens and moves in Chromium: ``python -m benchmarks.page [TRACE]``.

Of the report of a sample, or of another trace: its size, the time from navigation to the first text (first
contentful paint, median of LOADS loads of the file in new tabs), and the time between frames while its timeline is
dragged. The timeline is also drawn with BARS bars, more than a report ever has.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Browser, Page

from scripts.chromium import chromium
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import PARTS, Diagnosis, Timeline, TimelineBar, TimelineLane
from tfdoctor.recording import Recording
from tfdoctor.report.formats import html
from tfdoctor.rules import all_rules

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "cpu-input-bound"
LOADS, BARS, LANES, FRAMES = 9, 5_000, 10, 120

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
        TimelineLane(
            f"lane {lane}",
            tuple(
                TimelineBar(
                    number * width, 0.8 * width, PARTS[number % len(PARTS)], f"bar {number}"
                )
                for number in range(each)
            ),
        )
        for lane in range(LANES)
    ]
    return replace(diagnosis, timeline=Timeline(number=1, total_ms=20.0, lanes=tuple(lanes)))


def opened(browser: Browser, file: Path) -> tuple[Page, float]:
    """Open a page; return it with the time to its first text, ms."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    first: float = page.evaluate(FIRST_TEXT)
    return page, first


def dragged(page: Page) -> list[float]:
    """Return the times between frames while the timeline is dragged, ms."""
    page.wait_for_selector("html[data-charts=drawn]")
    page.locator(".timeline").scroll_into_view_if_needed()
    before = page.locator(".timeline .axis").inner_text()
    frames: list[float] = page.evaluate(DRAG, FRAMES)
    if page.locator(".timeline .axis").inner_text() == before:
        sys.exit("The timeline did not move: the frames say nothing.")
    return frames


def row(browser: Browser, name: str, diagnosis: Diagnosis, folder: Path) -> str:
    """Measure one page; return its row of the table."""
    file = folder / "report.html"
    file.write_text(html.render(diagnosis), encoding="utf-8")
    firsts = []
    for _ in range(LOADS):
        page, first = opened(browser, file)
        firsts.append(first)
        frames = dragged(page)
        page.close()
    bars = sum(len(lane.bars) for lane in diagnosis.timeline.lanes) if diagnosis.timeline else 0
    late = quantiles(frames, n=20)[-1]
    size = file.stat().st_size / 1e6
    cells = (f"{size:.2f} MB", f"{median(firsts):.0f} ms", f"{bars:,}", f"{median(frames):.1f} ms")
    return f"| {name} | {' | '.join(cells)} | {late:.1f} ms |"


def main() -> None:
    """Print the table."""
    trace = Path(sys.argv[1]) if sys.argv[1:] else SAMPLE
    diagnosis = diagnose(Recording.open(trace), all_rules(), trace.name, ask_xprof=False)
    print("| report | size | first text | bars | frame while dragging, median | 95th percentile |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        print(row(browser, trace.name, diagnosis, Path(folder)))
        print(row(browser, f"the same, {BARS:,} bars", many_bars(diagnosis), Path(folder)))


if __name__ == "__main__":
    main()
