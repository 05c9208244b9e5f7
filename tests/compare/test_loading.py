"""What can be compared, and how anything else is refused."""

import json
from pathlib import Path

import pytest

from tfdoctor.compare.loading import load, of_json
from tfdoctor.errors import InputError

PLACE = Path("report.json")
REPORT = {"schema": 1, "tfdoctor": "0.1.0", "subject": {}, "steps": {"rows": []}, "results": []}


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
        (json.dumps(REPORT | {"steps": {"step_ms": -1}}), r"is damaged \(steps.step_ms\)"),
        (json.dumps(REPORT | {"subject": 3}), "is damaged"),
        (json.dumps(REPORT | {"results": None}), "is damaged"),
        (json.dumps(REPORT | {"steps": {"rows": [{"total_ms": 0}]}}), "is damaged"),
        (json.dumps(REPORT | {"operations": [{"operation": 1}]}), r"damaged \(operations\[0\]"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        of_json(text, PLACE)
    assert str(caught.value).count(". ") == 0


def test_a_report_without_newer_fields_is_read() -> None:
    report = of_json(json.dumps(REPORT), PLACE)
    assert report.step_ms is None
    assert report.conditions.cpu_model == ""


def test_a_report_is_read_without_a_diagnosis(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))

    def never(*_: object) -> None:
        pytest.fail("a JSON report needs no diagnosis")

    assert load(path, never).schema == 1  # type: ignore[arg-type]  # it is not called


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load(path, lambda *_: pytest.fail("not a recording"))
