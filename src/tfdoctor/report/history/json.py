"""The history as JSON: docs/reference/json-history.md describes it."""

import json
from dataclasses import asdict
from typing import Any

from tfdoctor.diagnosis.history_report import History
from tfdoctor.report.comparison import plain

SCHEMA = 1  # Of histories; fields are only ever added


def render(history: History) -> str:
    """Return the history as one object in ASCII with sorted keys."""
    content: dict[str, Any] = {"schema": SCHEMA, "kind": "history", **plain(asdict(history))}
    content["tfdoctor"] = content.pop("version")
    content["failed"] = history.failed
    for series in content["series"]:
        for run in series["runs"]:
            run["checked"] = sorted(run["checked"])
    return json.dumps(content, sort_keys=True, indent=2, allow_nan=False) + "\n"
