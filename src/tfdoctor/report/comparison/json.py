"""The comparison as JSON: docs/reference/json.md describes it."""

import json
import math
from dataclasses import asdict
from typing import Any

from tfdoctor.comparison import RunComparison

SCHEMA = 1
"""Of comparisons; fields are only ever added."""

DIGITS = 9
"""Significant digits, as in reports."""


def render(comparison: RunComparison) -> str:
    """Return the comparison as one object in ASCII with sorted keys."""
    content = {"schema": SCHEMA, "kind": "comparison", **_plain(asdict(comparison))}
    content["tfdoctor"] = content.pop("version")
    return json.dumps(content, sort_keys=True, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value without numbers that JSON does not have, and with no more digits than mean something."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        case _:
            return value
