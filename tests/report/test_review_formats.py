"""SARIF, GitLab and GitHub: valid by the published schemas, complete, escaped, and stable when lines move."""

from tests.report.kit import *
from tfdoctor.report.formats import render

SCHEMA = Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json"

COMMAND = re.compile(r"::(error|warning|notice)( [^:]*)?::(.*)")


VALIDATOR = Draft4Validator(json.loads(SCHEMA.read_text("utf-8")))


def results(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    (run,) = json.loads(render("sarif", diagnosis))["runs"]
    found: list[dict[str, Any]] = run["results"]
    return found


def with_first(**changes: Any) -> Diagnosis:
    """Return the full report, with changes of what the first result found."""
    first, *others = full().results
    outcome = replace(findings.finding(first), **changes)
    return replace(full(), results=(replace(first, outcome=outcome), *others))


def at(path: str, line: int) -> tuple[Remedy]:
    return (Remedy("Change it", at=Location(path, line)),)


@each(*diagnoses.ALL)
def test_sarif_is_valid_by_its_schema_and_what_gitlab_and_github_read_is_complete(kind: str) -> None:
    """GitLab hides all objects after an incomplete one. Trap: no line break or "::" of a name begins a command."""
    assert [one.message for one in VALIDATOR.iter_errors(json.loads(rendered("sarif", kind)))] == []
    for found in json.loads(rendered("gitlab", kind)):
        assert set(found) == {"check_name", "description", "fingerprint", "location", "severity"}
        assert all(found.values())
        assert found["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert found["location"]["lines"]["begin"] >= 1
        assert not found["location"]["path"].startswith(("/", "./"))
    lines = rendered("github", kind).split("\n")[:-1]
    assert "\r" not in "".join(lines)
    assert lines == ["tfdoctor: no finding to annotate."] or all(COMMAND.fullmatch(line) for line in lines)


def test_the_schema_refuses_what_is_no_sarif() -> None:
    assert list(VALIDATOR.iter_errors({"version": "2.1.0", "runs": [{"results": []}]}))


def test_a_saving_whose_share_is_unknown_is_left_out() -> None:
    first, *others = full().results
    unknown = replace(first, saving=replace(sure(first.saving), share=math.nan))
    assert "savingMsPerStep" not in results(replace(full(), results=(unknown, *others)))[0].get("properties", {})


def test_paths_are_those_in_the_repository() -> None:
    base = replace(full(), repository={"train.py": "models/big net/train.py"})
    uri = results(base)[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    path = json.loads(render("gitlab", base))[0]["location"]["path"]
    assert (uri, path) == ("models/big%20net/train.py", "models/big net/train.py")


LAYER = "keras/layer.py"
OUTSIDE = (
    f"/usr/lib/python3/{LAYER}", "~/x.py", "s3://a/b.py", f".venv/lib/python3.12/site-packages/{LAYER}",
    "../shared/input.py", "In [3]", "C:\\\\jobs\\\\train.py",
)  # fmt: skip


@each(*OUTSIDE)
def test_a_finding_outside_of_the_repository_is_at_the_training_call(path: str) -> None:
    diagnosis = finding_at(Location(path, 3), *FALLBACKS)
    (found,) = shown(diagnosis)
    assert found[:2] == ("train.py", 52)
    assert re.search(r"The line, .*:3, is in no file of the repository: this is the training call\.$", found[2])


FALLBACKS = (
    Place("train.py", 52, PlaceKind.TRAINING_CALL),
    Place("train.py", 1, PlaceKind.SCRIPT),
    Place("logs/vm.xplane.pb", 1, PlaceKind.TRACE),
)


def finding_at(at: Location | None, *fallbacks: Place) -> Diagnosis:
    first = with_first(remedies=(Remedy("Change it", at=at),), evidence=()).results[0]
    return replace(full(), results=(replace(first, fallbacks=fallbacks),), order=None, repository={})


def shown(diagnosis: Diagnosis) -> list[tuple[str, int, str]]:
    """Return the path, the line and the message of each finding; the same in all formats."""
    sarif = [
        (place["artifactLocation"]["uri"], place["region"]["startLine"], one["message"]["text"])
        for one in results(diagnosis)
        for place in [one["locations"][0]["physicalLocation"]]
    ]
    gitlab = [
        (one["location"]["path"], one["location"]["lines"]["begin"], one["description"])
        for one in json.loads(render("gitlab", diagnosis))
    ]
    errors = re.findall(r"::error file=(.*?),line=(\d+),.*?::(.*)", render("github", diagnosis))
    assert sarif == gitlab == [(path, int(line), told.replace("%25", "%")) for path, line, told in errors]
    return sarif


@cases(
    (0, "train.py:52 (training call)", "the training call"),
    (1, "train.py (script)", "the script"),
    (2, "vm.xplane.pb (trace)", "the trace"),
)
def test_a_finding_without_a_line_is_in_every_format(known: int, where: str, said: str) -> None:
    """Trap: no text claims that the place is the finding's line."""
    diagnosis, at = finding_at(None, *FALLBACKS[known:]), FALLBACKS[known]
    (found,) = shown(diagnosis)
    assert found[:2] == (at.path, at.line)
    assert found[2].endswith(f" The line is unknown: this is {said}.")
    for name in ("html", "md"):
        assert render(name, diagnosis).count(where) >= 2  # in the table, and in the finding
    (result,) = json.loads(render("json", diagnosis))["results"]
    assert result["at"] == {"path": at.path, "line": at.line, "kind": at.kind.value}
    assert where in terminal.render(diagnosis, width=100, color=False)


def test_the_first_change_is_where_the_table_says() -> None:
    """Trap: an edit may begin above the line of its finding, such as at the imports."""
    base = finding_at(Location("train.py", 41))
    edit = Edit(Location("train.py", 5), "import tf\n...\nold", "import tf\n...\nnew")
    edited = replace(base, results=(diagnoses.edited(base.results[0], edit),))
    (change,) = changes(edited.results[0])
    assert (change.where, change.begins) == ("train.py:41", "train.py:5")
    assert "at `train.py:41` (the edit begins at `train.py:5`)" in render("md", edited)
    assert 'Before, from <code class="place">train.py:5</code>' in render("html", edited)


@each("train.py", "src/In/train.py", "a~b/site-packages.py")
def test_a_relative_path_is_kept_where_the_file_is_not_on_this_machine(path: str) -> None:
    (found,) = json.loads(render("gitlab", finding_at(Location(path, 3))))
    assert found["location"] == {"path": path, "lines": {"begin": 3}}


def test_fingerprints_survive_moved_lines_and_other_figures() -> None:
    after = with_first(summary="Other figures.", remedies=at("train.py", 99))
    names = [[one["partialFingerprints"] for one in results(each)] for each in (full(), after)]
    assert names[0] == names[1]
    marks = [one["fingerprint"] for one in json.loads(render("gitlab", full()))]
    assert len(set(marks)) == len(marks)


def test_a_fix_replaces_characters_of_the_file_and_is_described_by_its_change() -> None:
    """Trap: the first change of the finding may be made by hand."""
    edit = Edit(Location("train.py", 41), "a", "b", replacements=(Replacement((41, 5), (41, 9), "new"),))
    result = diagnoses.edited(full().results[0], edit)
    found = findings.finding(result)
    by_hand = replace(found.remedies[0], action="Do it by hand", edit=None)
    two = replace(result, outcome=replace(found, remedies=(by_hand, *found.remedies)))
    region = {"startLine": 41, "startColumn": 5, "endLine": 41, "endColumn": 9}
    for one in (result, two):
        (fix,) = results(replace(full(), results=(one,)))[0]["fixes"]
        (change,) = fix["artifactChanges"]
        assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "new"}}]
        assert fix["description"]["text"] == found.remedies[0].action


def test_a_level_has_at_most_ten_annotations() -> None:
    firsts = [with_first(remedies=at("a.py", n + 1)).results[0] for n in range(15)]
    many = [replace(one, rule=diagnoses.rule(f"rule-{n}"), severity=Severity.NOTE) for n, one in enumerate(firsts)]
    lines = render("github", replace(full(), results=tuple(many))).splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("::notice title=tfdoctor::More findings: rule-9, rule-10")


# Budgets and known findings


def test_an_entry_with_a_new_symptom_is_not_known() -> None:
    """A command that fails because of the symptom must show it as new."""
    for symptom, state in ((False, "new"), (True, "unchanged")):
        marked = tuple(
            replace(one, known=symptom or (bool(one.finding) and one.rule.name != "input-bound"))
            for one in caused().results
        )
        told = results(replace(caused(), results=marked, baseline=BaselineUse(file="b.json")))
        assert told[0]["baselineState"] == state


@each("sarif", "gitlab", "github")
def test_a_path_that_is_no_unicode_is_written(file_format: str) -> None:
    assert render(file_format, finding_at(Location("b\udce9.py", 3))).encode()
