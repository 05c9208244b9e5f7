"""The page and the terminal summary of a fleet."""

from tests.fleet.runs import run as run_of
from tests.report.kit import *

MOST_BYTES = 3_000_000


def test_page_and_terminal(golden: Compare) -> None:
    golden("fleet.html", fleet.render(reported()))
    golden("fleet.txt", capture(fleet.sections, reported(prices=("2.5",)), width=80, color=False))


def many(count: int) -> FleetReport:
    rules = ("input-bound", "float32-matmul", "python-input", "unfused-batch-norm")
    rows = [
        run_of(
            f"gs://a-bucket-of-the-team/experiments/resnet-50/run-{number:05}/plugins/profile/2026_11_01_10_00_00",
            hours=1 + number / 7,
            step_ms=20 + number / 9,
            saving_share=(number % 97) / 100,
            script=f"project-{number % 40}/train.py",
            recorded=f"2026-11-{1 + number % 28:02}T10:00:00Z",
            findings=tuple(finding(rule, 0.1) for rule in rules[: number % 5]),
            report=f"reports/{number:016x}.html",
        )
        for number in range(count)
    ]
    return reported(rows)


def test_a_page_has_at_most_3_mb_with_more_than_ten_thousand_runs_and_counts_the_others() -> None:
    page = fleet.render(many(15_000))
    assert len(page.encode()) <= MOST_BYTES
    (counts,) = re.findall(r"The page has the ([\d,]+) runs that waste most; the other ([\d,]+)", page)
    shown, omitted = (int(count.replace(",", "")) for count in counts)
    assert 10_000 < shown == 15_000 - omitted


@cases(
    (reported([]), "No recording was examined"),
    (reported([run_of(saving_share=0.0, findings=())]), "No known change saves time in one run"),
    (reported([run_of()]), "0.8 of 2 device-hours (40 %) could be saved in one run"),
    (
        reported([run_of(hours=None, devices=8, saving_bound="at-most")]),
        "Up to 3.2 of eight devices could be saved while one run trains",
    ),
)
def test_headline(report: FleetReport, headline: str) -> None:
    assert fleet.headline(report) == headline


def test_a_run_without_a_known_change_is_not_called_healthy() -> None:
    made = reported([run_of(saving_share=0.0, findings=())])
    assert fleet.cells(made.runs[0], made)[:3] == ("none known", "", "none known")


def written(report: FleetReport, folder: Path) -> Path:
    (page,) = write_texts(folder, {fleet.PAGE: fleet.render(report)})
    return page


@pytest.fixture(scope="module")
def many_runs(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Page:
    page = browser.new_page()
    page.goto(written(many(250), tmp_path_factory.mktemp("fleet")).as_uri())
    return page


@pytest.fixture(scope="module")
def pages(browser: Browser) -> dict[bool, Page]:
    """Pages for one file after the other, with and without scripts."""
    return {scripts: browser.new_context(java_script_enabled=scripts).new_page() for scripts in (True, False)}


@pytest.mark.browser
def test_axe_finds_no_violation(many_runs: Page) -> None:
    found = Axe().run(many_runs)
    assert found.violations_count == 0, found.generate_report()


def places(page: Page) -> list[str]:
    return page.locator("#runs tbody tr small").all_inner_texts()


AMOUNTS = (
    0.0000042, 0.00067, 0.0042, 0.042, 0.42, 0.996, 1.0, 4.25, 9.996, 42.3, 99.96, 412.6, 999.6, 1234.5, 62185.0,
)  # fmt: skip

SHARES = (0.0, 0.004, 0.05, 0.125, 0.505, 0.994, 0.996, 1.0)


@pytest.mark.browser
@each(1.0, None)
def test_numbers_are_the_same_with_and_without_scripts(
    hours: float | None, pages: dict[bool, Page], tmp_path: Path
) -> None:
    """Those that scripts show are those of the rest of the page, whatever their size."""
    rows = []
    for at, (amount, share) in enumerate(zip(AMOUNTS, cycle(SHARES), strict=False)):
        fields = {"saving_share": share, "saving_bound": "at-most" if at % 2 else "expected", "devices": 1 + at}
        rows.append(run_of(f"/{at:03}", step_ms=amount, hours=None if hours is None else amount, **fields))
    compare_without_scripts(pages, tmp_path, reported(rows), len(AMOUNTS))


@pytest.mark.browser
def test_rows_are_the_same_with_and_without_scripts(pages: dict[bool, Page], tmp_path: Path) -> None:
    compare_without_scripts(pages, tmp_path, reported(), 10)


def compare_without_scripts(pages: dict[bool, Page], tmp_path: Path, report: FleetReport, rows: int) -> None:
    path, texts = written(report, tmp_path), []
    for page in pages.values():
        page.goto(path.as_uri())
        texts.append(page.locator("#runs tbody tr").all_inner_texts())
    assert texts[0] == texts[1]
    assert len(texts[0]) == rows


@pytest.mark.browser
def test_runs_are_searched(many_runs: Page) -> None:
    assert len(places(many_runs)) == 100
    many_runs.fill("#search", "run-00017 RESNET")
    assert [re.findall(r"run-\d+", place) for place in places(many_runs)] == [["run-00017"]]
    assert many_runs.inner_text("#count") == "1 of 250 runs"
    many_runs.fill("#search", "nothing like it")
    assert places(many_runs) == []
    many_runs.fill("#search", "")
    assert many_runs.inner_text("#count") == "250 runs"


@pytest.mark.browser
@cases(("faults", [1]), ("jobs", [0, 1]))
def test_a_fault_and_a_job_lead_to_their_runs(
    section: str, named: list[int], pages: dict[bool, Page], tmp_path: Path
) -> None:
    page = pages[True]
    page.goto(written(reported(), tmp_path).as_uri())
    for row in page.locator(f"section[aria-labelledby={section}] tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        row.locator("a").click()
        assert page.input_value("#search") == " ".join(cells[at] for at in named)
        shown = page.locator("#runs tbody tr").all_inner_texts()
        known = int(cells[2])  # of a job, those whose step time is known
        assert len(shown) == known or (section == "jobs" and len(shown) > known)
        assert section == "faults" or all(cells[at] in text for text in shown for at in named)


@pytest.mark.browser
def test_runs_are_sorted_and_more_are_shown(many_runs: Page) -> None:
    for first in ("run-00249", "run-00000"):
        many_runs.click("#runs th button:text-is('step')")
        assert first in places(many_runs)[0]
    assert many_runs.get_attribute("#runs th:has(button:text-is('step'))", "aria-sort") == "ascending"
    many_runs.click("#more")
    many_runs.click("#more")
    assert len(places(many_runs)) == 250
    assert not many_runs.is_visible("#more")
    assert many_runs.get_attribute("#runs tbody a >> nth=0", "href") == f"reports/{0:016x}.html"


@pytest.mark.browser
@each(1280, 390)
def test_the_page_is_not_wider_than_the_window(width: int, many_runs: Page) -> None:
    many_runs.set_viewport_size({"width": width, "height": 800})
    assert many_runs.evaluate("document.documentElement.scrollWidth") == width
