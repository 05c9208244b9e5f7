"""The comparison as JSON: docs/reference/json.md describes it."""

import json
from dataclasses import asdict
from typing import Any

from tfdoctor.diagnosis.comparison import RunComparison
from tfdoctor.terms.json_form import number

SCHEMA = 1  # Of comparisons; fields are only ever added


def render(comparison: RunComparison) -> str:
    """Return the comparison as one object in ASCII with sorted keys."""
    content = {"schema": SCHEMA, "kind": "comparison", **plain(asdict(comparison))}
    content["tfdoctor"] = content.pop("version")
    if step := comparison.step:  # as `tfdoctor try` states it: positive is faster
        saved = {"share": -step.change, "low": -step.high, "high": -step.low}
        content["step"]["saved"] = plain(saved)
    return json.dumps(content, sort_keys=True, indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without numbers that JSON does not have, and with no more digits than mean something."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float():
            return number(value)
        case _:
            return value
