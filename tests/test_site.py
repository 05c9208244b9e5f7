"""The manual as a site: it is built without a warning, works from the file system, and refuses dead links."""

from playwright.sync_api import Browser

from tests.kit import *
from tests.report import diagnoses
from tfdoctor.report.formats import json as report_json
from tfdoctor.rules import all_rules

ROOT = Path(__file__).parent.parent


def build(docs: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet", "-c", "scripts/site", *more]
    command = [sys.executable, "-m", "sphinx", *options, "-d", f"{out}.doctrees", str(docs), str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with a report in its gallery; its looks would take twice as long as all the rest."""
    docs = tmp_path_factory.mktemp("manual") / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for folder in ("examples", "src", "benchmarks", "scripts", "sample_traces", "tests"):
        (docs.parent / folder).symlink_to(ROOT / folder)  # what pages link to
    for page in ROOT.glob("*.*"):
        (docs.parent / page.name).symlink_to(page)
    for report in (docs / "gallery").glob("*.json.gz"):
        report.unlink()  # one is enough to render
    made = gzip.compress(report_json.render(diagnoses.full()).encode())
    (docs / "gallery" / "made-up.json.gz").write_bytes(made)
    (docs / "gallery" / "made-up.md").write_text("## A report\n")
    with (docs / "gallery" / "index.md").open("a") as index:
        index.write("\n[report](made-up.json.gz), [Markdown](made-up.md)\n")
    out = docs.parent / "site"
    done = build(docs, out, "-D", "html_theme=basic", "-D", "smartquotes=0")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two pages, as it looks."""
    docs = tmp_path_factory.mktemp("small") / "docs"
    (docs / "rules").mkdir(parents=True)
    (docs / "index.md").write_text("# Manual\n\n## Rules\n\n- [A rule](rules/missing-prefetch.md)\n")
    (docs / "rules" / "missing-prefetch.md").write_text("# Batches are not prefetched\n\n`missing-prefetch`\n")
    done = build(docs, docs.parent / "site")
    assert done.returncode == 0, done.stderr
    return docs.parent / "site"


def test_every_rule_has_a_page_in_the_site(site: Path) -> None:
    for rule in all_rules():
        assert (site / "rules" / f"{rule.name}.html").is_file()


def test_the_site_asks_no_other_host(small: Path) -> None:
    page = (small / "index.html").read_text()
    assert "furo" in page
    for kind in ('<script src="http', '<link rel="stylesheet" href="http', "@import", "fonts.g"):
        assert kind not in page


def test_the_gallery_shows_its_reports(site: Path) -> None:
    page = (site / "gallery" / "index.html").read_text()
    assert '<iframe src="made-up.html"' in page
    assert '<a href="made-up.md">' in page
    assert '<a href="made-up.html">' in page
    assert "train.py" in (site / "gallery" / "made-up.html").read_text()
    assert (site / "gallery" / "made-up.md").is_file()


@pytest.mark.browser
@each("missing-prefetch", "batches prefetched")
def test_rules_are_found_without_a_server(words: str, browser: Browser, small: Path) -> None:
    page = browser.new_page()
    page.goto((small / "index.html").as_uri())
    page.fill("input[name=q]", words)
    page.press("input[name=q]", "Enter")
    page.click("ul.search li a:has-text('Batches are not prefetched')")
    assert page.locator("h1").inner_text().startswith("Batches are not prefetched")
    page.close()


FAULTS = """# Manual

- [Gone](gone.md)
- [Page](page.md#nowhere)
- [code](../code.py)
"""


def test_dead_links_and_lost_pages_fail_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(FAULTS)
    (docs / "page.md").write_text("# Page\n")
    (docs / "lost.md").write_text("# Nothing leads to it\n")
    done = build(docs, tmp_path / "site")
    assert done.returncode != 0
    for why in ("gone", "nowhere", "code.py", "lost.md"):
        assert why in done.stderr
