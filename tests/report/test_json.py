"""The contract for other programs."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.report import diagnoses
from tfdoctor.report.formats import json as report_json
from tfdoctor.stored.report import finished
from tfdoctor.stored.schema import schema
from tfdoctor.terms.text import legible
from tfdoctor.terms.verdict import Remark, Remedy

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "json.md"

TOP = {
    *("schema", "tfdoctor", "subject", "steps", "breakdown_ms", "trust", "results"),
    *("together", "xprof", "run", "run_together"),
}
RESULT = {
    *("rule", "topic", "outcome", "severity", "summary", "reason", "saving", "run", "takes", "measured"),
    *("known", "at", "title"),
    *("evidence", "remedies"),
}
SOMETIMES = {"traceback", "stated", "fallbacks", "own", "general"}
STEPS = {"count", "source", "median_ms", "mean_ms", "p10_ms", "p90_ms", "between_ms"}
SUBJECT = {
    *("command", "device", "device_name", "devices_used", "devices_visible", "framework"),
    *("hosts", "exit_code"),
}


def report(name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    loaded: dict[str, Any] = json.loads(report_json.render(finished(diagnoses.ALL[name]())), parse_constant=refuse)
    return loaded


@pytest.mark.parametrize("name", diagnoses.ALL)
def test_the_contract_is_kept(name: str) -> None:
    shown = report(name)
    assert shown.keys() >= TOP
    assert shown["schema"] == 1
    assert shown["subject"].keys() >= SUBJECT
    assert shown["steps"].keys() >= STEPS
    assert set(shown["breakdown_ms"]) == {
        "input", "transfer", "host", "device", "collective", "between", "unknown",
    }  # fmt: skip
    for result in shown["results"]:
        assert result.keys() - SOMETIMES == RESULT
        assert result["outcome"] in {"finding", "healthy", "not-applicable", "errored"}
        assert result["severity"] in {"critical", "warning", "note", None}
        assert (result["measured"] is None) or name == "tried"
        for item in result["evidence"]:
            assert set(item) in ({"label", "value", "unit", "limit"}, {"columns", "rows"})
        for remedy in result["remedies"]:
            assert set(remedy) - {"by_hand", "width"} == {"action", "code", "at", "trial", "edit"}


def test_no_steps_are_zero_steps_of_no_source() -> None:
    shown = report("no-steps")
    assert shown["steps"]["count"] == 0
    assert shown["steps"]["source"] == "none"
    assert shown["steps"]["median_ms"] is None
    assert set(shown["breakdown_ms"].values()) == {None}


def test_unknown_numbers_are_null() -> None:
    measure = report("hostile")["results"][0]["evidence"][0]
    assert measure["value"] is None
    assert measure["limit"] is None


def test_cells_keep_their_type() -> None:
    row = report("full")["results"][0]["evidence"][2]["rows"][0]
    assert row[:3] == ["Map", {"path": "train.py", "line": 41}, {"value": 41.2, "unit": "ms"}]


def test_names_are_exact_but_hide_nothing() -> None:
    """A program that prints a name prints no control character."""
    title = report("hostile")["subject"]["title"]
    assert title.startswith(diagnoses.HOSTILE)
    assert title == legible(diagnoses.HOSTILE + diagnoses.INVISIBLE)
    assert r"\x1b[31mf" in title


def test_it_is_sorted_ascii_and_the_same_every_time() -> None:
    text = report_json.render(diagnoses.hostile())
    assert text.isascii()
    assert text == report_json.render(diagnoses.hostile())
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


SCHEMA = schema()


@pytest.mark.parametrize("name", diagnoses.ALL)
def test_it_is_valid(name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert [error.message for error in validator.iter_errors(report(name))] == []


def test_a_remark_is_valid_and_its_remedies_have_no_edits() -> None:
    made = diagnoses.full()
    remark = Remark(summary="few steps", remedies=(Remedy(action="train longer"),))
    made = replace(made, results=(replace(made.results[0], outcome=remark, severity=None),))
    written = json.loads(report_json.render(made))
    assert written["results"][0]["remedies"][0]["edit"] is None
    jsonschema.Draft202012Validator(SCHEMA).validate(written)


def test_the_published_schema_is_that_of_the_types() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(DOCUMENT.with_name("report.schema.json").read_text()) == SCHEMA


def properties_of(value: Any) -> set[str]:
    """Return the names of all fields that a schema has."""
    match value:
        case {"properties": dict(names)}:
            return set(names).union(*map(properties_of, value.values()))
        case dict():
            return set().union(*map(properties_of, value.values()))
        case list():
            return set().union(*map(properties_of, value))
        case _:
            return set()


def test_every_field_is_documented() -> None:
    names = {
        part for name in re.findall(r"`([^`]+)`", DOCUMENT.read_text()) for part in re.split(r"\[\]\.|\.", name)
    }
    assert properties_of(SCHEMA) - names == set()


def test_every_documented_field_exists() -> None:
    rows = re.findall(r"^\| (`.+?) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    fields = {re.split(r"\[\]\.|\.", name)[-1] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert fields - properties_of(SCHEMA) == set()


def test_a_report_of_one_host_does_not_speak_of_several() -> None:
    assert "hosts" not in report("full")
    assert report("several-hosts")["hosts"]["straggler"] == "worker-1"


def test_a_report_by_the_rules_as_they_come_does_not_speak_of_settings() -> None:
    assert not {"settings", "order"} & set(report("full"))
    shown = report("configured")
    assert shown["settings"]["off"][0] == {
        "rule": "cost",
        "title": "What the waste costs",
        "why": "ignored by pyproject.toml",
    }
    assert shown["order"]["turns"][0]["rule"] == "input-bound"
