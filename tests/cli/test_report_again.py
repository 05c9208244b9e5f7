"""`tfdoctor report report.json`: a stored report in other formats, and what needs the recording instead."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.report import diagnoses
from tfdoctor import cli
from tfdoctor.report.formats import html, md
from tfdoctor.report.formats import json as report_json
from tfdoctor.stored.report import finished, read, write
from tfdoctor.terms.errors import InputError


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a stored report, far from any settings."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kept" / "report.json"
    path.parent.mkdir()
    path.write_text(report_json.render(diagnoses.full()), "utf-8")
    return path


def report(*words: object) -> Result:
    return CliRunner().invoke(cli.app, ["report", *map(str, words)])


def test_it_has_all_formats_beside_it_and_stays_as_it_is(stored: Path) -> None:
    before = stored.read_bytes()
    done = report(stored, "--format", "html,json,md,sarif")
    assert done.exit_code == 0, done.output
    assert {path.name for path in stored.parent.iterdir()} == {
        *("report.html", "report.json", "report.md", "report.sarif")
    }
    assert stored.read_bytes() == before
    found = read(json.loads(before), [])
    assert (stored.parent / "report.md").read_text("utf-8") == md.render(found)


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_a_page_of_a_stored_report_is_the_page_of_the_diagnosis(kind: str) -> None:
    made = finished(diagnoses.ALL[kind]())
    rules = {result.rule.name: result.rule for result in made.results}
    again = read(json.loads(json.dumps(write(made))), rules.values())
    assert html.render_without_plotly(again) == html.render_without_plotly(made)


def test_a_compressed_one_of_another_name_gives_its_name_to_the_others(stored: Path) -> None:
    packed = stored.with_name("resnet.json.gz")
    packed.write_bytes(gzip.compress(stored.read_bytes()))
    assert report(packed, "--format", "md").exit_code == 0
    assert (stored.parent / "resnet-report.md").is_file()
    out = stored.parent / "out"
    assert report(packed, "--format", "md", "--out", out).exit_code == 0
    assert [path.name for path in out.iterdir()] == ["report.md"]


def test_a_folder_and_a_link_can_be_given(stored: Path, tmp_path: Path) -> None:
    link = "https://ci.example.org/report.html"
    done = report(stored, "--format", "json", "--out", tmp_path / "new", "--link", link)
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "new" / "report.json").read_text())["link"] == link


def test_findings_and_budgets_fail_it(stored: Path, tmp_path: Path) -> None:
    assert report(stored, "--format", "md").exit_code == 0
    assert report(stored, "--format", "md", "--fail-on", "critical").exit_code == 3
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.tfdoctor.budget]\nstep-ms = 1\n")
    assert report(stored, "--format", "md", "--config", settings).exit_code == 3


def test_it_has_its_patch(stored: Path, tmp_path: Path) -> None:
    patch = b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-caf\xe9\n+tea\n"
    made = replace(diagnoses.full(), patch=patch)
    stored.write_text(report_json.render(made), "utf-8")
    assert report(stored, "--format", "md", "--patch", tmp_path / "fix.diff").exit_code == 0
    assert (tmp_path / "fix.diff").read_bytes() == patch


def test_a_damaged_one_is_named_with_the_field(stored: Path) -> None:
    content = json.loads(stored.read_text())
    content["trust"]["level"] = "great"
    stored.write_text(json.dumps(content))
    done = report(stored)
    assert isinstance(done.exception, InputError)
    assert '(trust.level: expected one of high, medium, low, not "great")' in str(done.exception)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("saving", {"ms_per_step": "much"}, 'saving.ms_per_step: expected a number or null, not "much"'),
        ("topic", "nonsense", "topic: expected one of input, precision, operations"),
        ("remedies", {}, "remedies: expected a list, not an object"),
        ("rule", "python-input", "results[1]: a second result of the rule python-input"),
    ],
)
def test_a_field_is_named_as_the_file_does(stored: Path, field: str, value: object, why: str) -> None:
    content = json.loads(stored.read_text("utf-8"))
    first = content["results"][0]
    first[field] = first[field] | value if isinstance(value, dict) and value else value
    content["results"][1]["rule"] = "python-input"
    stored.write_text(json.dumps(content), "utf-8")
    assert why in str(report(stored).exception)


def test_a_byte_order_mark_is_read(stored: Path) -> None:
    stored.write_bytes(b"\xef\xbb\xbf" + stored.read_bytes())
    assert report(stored, "--format", "md").exit_code == 0


def test_what_is_no_whole_gzip_file_is_refused(stored: Path) -> None:
    packed = stored.with_name("report.json.gz")
    packed.write_bytes(gzip.compress(stored.read_bytes())[:99])
    done = report(packed)
    assert "no whole gzip file" in str(done.exception)


def test_a_rule_that_this_version_does_not_know_is_in_all_formats(stored: Path) -> None:
    content = json.loads(stored.read_text("utf-8"))
    found = content["results"][0]
    found["rule"], found["title"] = "my-rule", "Mine"
    stored.write_text(json.dumps(content), "utf-8")
    done = report(stored, "--format", "html,md,sarif")
    assert done.exit_code == 0, done.output
    (run,) = json.loads((stored.parent / "report.sarif").read_text("utf-8"))["runs"]
    described = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert described["my-rule"]["fullDescription"] == {"text": "Mine."}


def test_a_folder_with_only_a_report_is_that_report(stored: Path) -> None:
    assert report(stored.parent, "--format", "md").exit_code == 0
    assert (stored.parent / "report.md").is_file()
    trace = stored.parent / "plugins" / "profile" / "run" / "host.xplane.pb"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"\n\x7fbroken")
    assert isinstance(report(stored.parent).exception, InputError)  # of the recording


def test_a_report_is_a_baseline_and_has_one(stored: Path, tmp_path: Path) -> None:
    options = ("--format", "md", "--fail-on", "note")
    assert report(stored, *options).exit_code == 3
    assert report(stored, *options, "--baseline", stored).exit_code == 0
    assert report(stored, "--format", "md", "--write-baseline", tmp_path / "known.json").exit_code == 0
    assert report(stored, *options, "--baseline", tmp_path / "known.json").exit_code == 0
    other = json.loads(stored.read_text("utf-8"))
    other["subject"]["command"] = ["python", "other.py"]
    (tmp_path / "other.json").write_text(json.dumps(other))
    done = report(stored, *options, "--baseline", tmp_path / "other.json")
    assert "is the baseline of other.py" in str(done.exception)


def test_what_is_not_written_or_not_shown_is_said(stored: Path) -> None:
    assert "stays as it is" in report(stored, "--format", "json").output
    done = report(stored, "--format", "sarif", "--link", "https://ci.example.org/a")
    assert "--link is shown by md" in done.output


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://a.b/)[x](y", "nope"])
def test_a_stored_link_is_a_web_address(stored: Path, link: str) -> None:
    stored.write_text(json.dumps(json.loads(stored.read_text("utf-8")) | {"link": link}))
    assert "(link: expected a web address" in str(report(stored).exception)
