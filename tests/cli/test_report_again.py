"""`tfdoctor report report.json`: a stored report in other formats, and what needs the recording instead."""

from tests.cli.kit import *
from tests.report import diagnoses
from tfdoctor.report.formats import html, md
from tfdoctor.report.formats import json as report_json
from tfdoctor.stored.report import finished, read, write


@pytest.fixture
def stored(alone: Path) -> Path:
    """Return the path of a stored report, far from any settings."""
    path = alone / "kept" / "report.json"
    path.parent.mkdir()
    path.write_text(report_json.render(diagnoses.full()), "utf-8")
    return path


def report(*words: object, formats: str = "md") -> int:
    return run("report", *words, "--format", formats)[0]


def changed(stored: Path, change: Callable[[Any], object]) -> None:
    """Change what the file contains."""
    content = json.loads(stored.read_text("utf-8"))
    change(content)
    stored.write_text(json.dumps(content), "utf-8")


def test_it_has_all_formats_beside_it_and_stays_as_it_is(stored: Path) -> None:
    before = stored.read_bytes()
    code, output = run("report", stored, "--format", "html,json,md,sarif")
    assert (code, "stays as it is" in output) == (0, True)
    names = {path.name for path in stored.parent.iterdir()}
    assert names == {"report.html", "report.json", "report.md", "report.sarif"}
    assert stored.read_bytes() == before
    found = read(json.loads(before), [])
    assert (stored.parent / "report.md").read_text("utf-8") == md.render(found)


@each(*diagnoses.ALL)
def test_a_page_of_a_stored_report_is_the_page_of_the_diagnosis(kind: str) -> None:
    made = finished(diagnoses.ALL[kind]())
    rules = {result.rule.name: result.rule for result in made.results}
    again = read(json.loads(json.dumps(write(made))), rules.values())
    assert html.render_without_plotly(again) == html.render_without_plotly(made)


def test_a_compressed_one_of_another_name_gives_its_name_to_the_others(stored: Path) -> None:
    packed, out = stored.with_name("resnet.json.gz"), stored.parent / "out"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + stored.read_bytes()))  # with a byte order mark
    assert (report(packed), report(packed, "--out", out)) == (0, 0)
    assert (stored.parent / "resnet-report.md").is_file()
    assert [path.name for path in out.iterdir()] == ["report.md"]


def test_a_folder_and_a_link_can_be_given(stored: Path) -> None:
    link = "https://ci.example.org/report.html"
    assert report(stored, "--out", "new", "--link", link, formats="json") == 0
    assert json.loads(Path("new/report.json").read_text())["link"] == link
    assert "--link is shown by md" in run("report", stored, "--format", "sarif", "--link", link)[1]


def test_findings_and_budgets_fail_it(stored: Path) -> None:
    assert [report(stored), report(stored, "--fail-on", "critical")] == [0, 3]
    Path("pyproject.toml").write_text("[tool.tfdoctor.budget]\nstep-ms = 1\n")
    assert report(stored, "--config", "pyproject.toml") == 3


def test_it_has_its_patch(stored: Path) -> None:
    patch = b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-caf\xe9\n+tea\n"
    stored.write_text(report_json.render(replace(diagnoses.full(), patch=patch)), "utf-8")
    assert report(stored, "--patch", "fix.diff") == 0
    assert Path("fix.diff").read_bytes() == patch


RULE = diagnoses.full().results[0].rule.name


@cases(
    ("trust level", "great", "(trust.level: invalid enum value 'great')"),
    ("results 0 saving ms_per_step", "much", "saving.ms_per_step: expected a number >="),
    ("results 0 topic", "nonsense", "topic: invalid enum value 'nonsense'"),
    ("results 0 remedies", {}, "remedies: expected `array`, got `object`"),
    ("results 1 rule", RULE, f"results[1]: a second result of the rule {RULE}"),
    *(
        ("link", link, "(link: expected `str` of another form")
        for link in ("javascript:alert(1)", "https://a.b/)[x](y", "no")
    ),
)
def test_a_damaged_one_is_named_with_the_field(field: str, value: object, why: str, stored: Path) -> None:
    content = json.loads(stored.read_text("utf-8"))
    *way, last = (int(name) if name.isdigit() else name for name in field.split())
    functools.reduce(operator.getitem, way, content)[last] = value
    stored.write_text(json.dumps(content), "utf-8")
    assert why in refused(f"report {stored}")


def test_what_is_no_whole_gzip_file_is_refused(stored: Path) -> None:
    packed = stored.with_name("report.json.gz")
    packed.write_bytes(gzip.compress(stored.read_bytes())[:99])
    assert "no whole gzip file" in refused(f"report {packed}")


def test_a_rule_that_this_version_does_not_know_is_in_all_formats(stored: Path) -> None:
    changed(stored, lambda content: content["results"][0].update(rule="my-rule", title="Mine"))
    assert report(stored, formats="html,md,sarif") == 0
    (sarif,) = json.loads((stored.parent / "report.sarif").read_text("utf-8"))["runs"]
    described = {rule["id"]: rule for rule in sarif["tool"]["driver"]["rules"]}
    assert described["my-rule"]["fullDescription"] == {"text": "Mine."}


def test_a_folder_with_only_a_report_is_that_report(stored: Path) -> None:
    assert (report(stored.parent), (stored.parent / "report.md").is_file()) == (0, True)
    trace = stored.parent / "plugins" / "profile" / "run" / "host.xplane.pb"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"\n\x7fbroken")
    refused(f"report {stored.parent}")  # of the recording


def test_a_report_is_a_baseline_and_has_one(stored: Path) -> None:
    note = (stored, "--fail-on", "note")
    assert [report(*note), report(*note, "--baseline", stored)] == [3, 0]
    assert [report(stored, "--write-baseline", "known.json"), report(*note, "--baseline", "known.json")] == [0, 0]
    other = Path(shutil.copy(stored, "other.json"))
    changed(other, lambda content: content["subject"].update(command=["python", "other.py"]))
    assert "is the baseline of other.py" in refused(
        f"report {stored} --fail-on note --format md --baseline {other}"
    )
