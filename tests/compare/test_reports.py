"""What can be compared, and how anything else is refused."""

import json
from pathlib import Path

import pytest

from tests.compare.made import report
from tfdoctor.compare.reports import load
from tfdoctor.report.formats.json import contract
from tfdoctor.stored.files import of_text
from tfdoctor.terms.errors import InputError

PLACE = Path("report.json")
REPORT = contract(report([]))
STEPS = contract(report([1.0]))["steps"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!DOCTYPE html><html></html>", "is an HTML report: name the report.json"),
        ("", "is not JSON"),
        ("[1, 2", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a report of tfdoctor"),
        ('{"schema": 1}', "is not a report of tfdoctor"),
        (json.dumps(REPORT | {"schema": 2}), "has schema 2, and this tfdoctor reads schema 1"),
        (
            json.dumps(REPORT | {"steps": STEPS | {"step_ms": -1}}),
            r"is damaged \(steps.step_ms: expected a number > 0, not -1\)",
        ),
        (json.dumps(REPORT | {"subject": 3}), r"\(subject: expected an object, not 3\)"),
        (json.dumps(REPORT | {"results": None}), r"\(results: expected a list, not null\)"),
        (json.dumps(REPORT | {"schema": True}), "is not a report of tfdoctor"),
        (json.dumps(REPORT | {"operations_omitted": -1}), "expected a whole number ≥ 0, not -1"),
        (
            json.dumps(REPORT | {"steps": STEPS | {"step_ms": 1e300}}),
            r"\(steps.step_ms: expected a number ≤ 1e\+15, not a larger one\)",
        ),
        (json.dumps(REPORT | {"steps": STEPS | {"step_ms": float("nan")}}), "is not JSON"),
        (
            json.dumps(REPORT | {"steps": STEPS | {"rows": [STEPS["rows"][0] | {"total_ms": 0}]}}),
            r"\(steps.rows\[0\].total_ms: expected a number > 0",
        ),
        (json.dumps(REPORT | {"operations": [{"operation": 1}]}), r"\(operations\[0\].layer: it is missing\)"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        of_text(text, PLACE)
    assert str(caught.value).count(". ") == 0


def test_a_report_without_newer_fields_is_read() -> None:
    first = ("schema", "tfdoctor", "subject", "steps", "trust", "results", "breakdown_ms")
    read = of_text(json.dumps({name: REPORT[name] for name in first}), PLACE)
    assert read.conditions.cpu_model == ""
    assert read.run is None


def test_a_report_is_read_without_a_diagnosis(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))

    def never(*_: object) -> None:
        pytest.fail("a JSON report needs no diagnosis")

    assert load(path, never, ()).subject.title == "train.py"  # type: ignore[arg-type]  # it is not called


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load(path, lambda *_: pytest.fail("not a recording"), ())
