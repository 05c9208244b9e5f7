"""The command line: what it takes, and how it refuses."""

from tests.cli.kit import *
from tfdoctor import __version__
from tfdoctor.cli import FOUND
from tfdoctor.cli.gates import exit_code
from tfdoctor.compare import baseline
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.recording import Recording
from tfdoctor.report.formats import render
from tfdoctor.rulebook.config import FailOn
from tfdoctor.rules import all_rules
from tfdoctor.stored.report import read, write
from tfdoctor.terms.verdict import Finding, Location, Remedy, Severity

HEAVY = {"google", "jinja2", "keras", "numpy", "plotly", "psutil", "rich", "tensorflow", "xprof"}
"""What `--help` and a wrong option must not wait for."""


def test_the_version_and_help_are_printed() -> None:
    assert run("--version") == (0, f"tfdoctor {__version__}")
    for command in ((), ("profile",), ("report",)):
        assert run(*command, "--help")[1].startswith("Usage: ")


def test_the_page_is_opened_in_the_browser_or_named(tmp_path: Path) -> None:
    """A program that notes what it is asked to open stands in for the browser."""
    browser, asked, page = tmp_path / "browser", tmp_path / "asked", tmp_path / "report.html"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{asked}"\n')
    browser.chmod(0o755)
    (tmp_path / "report.json").write_text(report_of(SLOW))
    words = ("report", str(tmp_path / "report.json"), "--format", "html", "--open")
    assert cli(*words, folder=tmp_path, BROWSER=f"{browser} %s").returncode == 0
    assert asked.read_text().strip() == page.as_uri()
    ran = cli(*words, folder=tmp_path, BROWSER=str(tmp_path / "none"), PATH=str(tmp_path))
    assert (ran.returncode, f"no browser was found: open {page} yourself." in ran.stderr) == (0, True)


def test_the_markdown_report_links_to_the_page(tmp_path: Path) -> None:
    """Trap: a bracket in the address would end the link."""
    url = "https://ci.test/a(b)/report.html?x=1"
    assert run("report", SLOW, "--link", url, "--format", "md", "--out", tmp_path)[0] == 0
    assert "(https://ci.test/a%28b%29/report.html?x=1)" in (tmp_path / "report.md").read_text()


def test_one_blank_line_stands_before_the_files(tmp_path: Path) -> None:
    before, _, _ = tfdoctor("report", str(SLOW), "--out", str(tmp_path)).stdout.partition("wrote ")
    assert re.search(r"[^\n]\n\n$", before)


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    code = "import sys, tfdoctor.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert HEAVY & set(child.stdout.split()) == set()


REPORTED = """
import sys
from tfdoctor import cli
from tfdoctor.trace import xprof

class Asked(xprof.Asked):
    def __init__(self, path):
        print("asked:", *{name.partition(".")[0] for name in sys.modules})
        super().__init__(path)

xprof.Asked = Asked
try:
    cli.main()
finally:
    print("done:", *{name.partition(".")[0] for name in sys.modules})
"""


@each("json", "html")
def test_a_report_imports_what_it_needs_when_it_needs_it(file_format: str, tmp_path: Path) -> None:
    words = ("report", str(SLOW), "--format", file_format, "--out", tmp_path)
    child = subprocess.run([sys.executable, "-c", REPORTED, *words], capture_output=True, text=True, check=True)
    lines = dict(line.split(": ", 1) for line in child.stdout.splitlines() if ": " in line)
    asked, done = set(lines["asked"].split()), set(lines["done"].split())
    page = {"jinja2"}

    assert asked & {"numpy", "plotly", "tensorflow", *page} == set()
    assert done & {"plotly", "tensorflow", *page} == (page if file_format == "html" else set())


@cases((Topic.RECORDING, 0), (Topic.INPUT, FOUND))
def test_a_remark_on_the_recording_is_no_finding(topic: Topic, code: int, tmp_path: Path) -> None:
    """No gate, no format for reviews, no baseline, no comparison and no report of an earlier version has it."""
    at = Location("input_bound.py", 47)
    fault = Finding(summary="x", evidence=(), remedies=(Remedy("y", at=at),), severity=Severity.CRITICAL)
    rule = replace(next(iter(all_rules())), topic=topic, own=True, check=lambda: fault, limits=None)
    recording = Recording.open(SLOW)
    diagnosis = diagnose(recording, [replace(rule, preconditions=())], "x", ask_xprof=False)
    found = bool(code)
    baseline.write(diagnosis, "train.py", tmp_path / "b.json")
    texts = (render("sarif", diagnosis), render("gitlab", diagnosis), (tmp_path / "b.json").read_text())
    assert exit_code(diagnosis, FailOn.NOTE) == code
    assert [rule.name in text for text in texts] == [found] * 3
    assert (bool(diagnosis.entries), any(one.finding for one in diagnosis.results)) == (found, found)
    assert ("x: y" in diagnosis.trust.reasons) is not found
    earlier = json.loads(json.dumps(write(diagnosis)))
    earlier["results"][0] |= {"outcome": "finding", "severity": "critical"}
    assert exit_code(read(earlier, [rule]), FailOn.NOTE) == code


def test_a_report_in_a_named_folder_is_called_report(alone: Path) -> None:
    """Trap: the name followed what was read and not where it is written, so that --out could have either."""
    (trace,) = SLOW.rglob("*.xplane.pb")
    for words in ((trace, "--out", "out"), (trace,), (SLOW, "--out", "of-recording")):
        run("report", *words, "--format", "json,md")
    written = {str(path.relative_to(alone)) for path in alone.rglob("*report.*")}
    names = ("of-recording/report", "out/report", "tfdoctor-report")
    assert written == {f"{name}.{kind}" for name in names for kind in ("json", "md")}
