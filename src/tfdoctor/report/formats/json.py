"""The report as JSON: the contract for other programs, documented in docs/reference/json.md."""

import json
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import EntryRow
from tfdoctor.report import sentences
from tfdoctor.stored import report
from tfdoctor.terms.json_form import as_json, number

# Operations in the contract of a page, as its tables show: EfficientNetB0 has 1,223, which take 280 kB.
MOST_OPERATIONS = 100

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the contract, sorted and in ASCII."""
    text = _written(contract(diagnosis))
    try:
        return msgspec.json.format(text, indent=2) + "\n"
    except msgspec.DecodeError:  # it has halves of characters, such as bytes of a patch that are not UTF-8
        return json.dumps(json.loads(text), indent=2) + "\n"


def render_for_page(diagnosis: Diagnosis) -> str:
    """Return the contract on one line, with the operations that fit into a page."""
    cut = max(0, len(diagnosis.operations) - MOST_OPERATIONS)
    shown = replace(
        diagnosis,
        operations=diagnosis.operations[:MOST_OPERATIONS],
        operations_omitted=diagnosis.operations_omitted + cut,
    )
    content = contract(shown)
    content.pop("patch", None)  # the page shows the edits, and the file of the report has the rest
    for result in content["results"]:
        result.pop("stated", None)  # the models' input, 120 kB of one finding of EfficientNetB0
    return _written(content)


def _written(content: Object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def contract(diagnosis: Diagnosis) -> Object:
    """Return the diagnosis as it is stored, with what readers need not compute: entries, shares, sentences."""
    content, run = report.write(diagnosis), diagnosis.run
    for phase, row in zip(content["run"]["phases"], run.rows, strict=True) if run else ():
        phase["share"] = number(row.ms / run.total_ms) if run and run.total_ms else None
    shown = [
        EntryRow(
            rule=entry.result.rule.name,
            symptoms=tuple(result.rule.name for result in entry.symptoms),
            same=tuple(result.rule.name for result in entry.same),
            in_together=entry.in_sum,
            included_in=entry.included_in,
            in_run_together=entry.in_run_sum if diagnosis.run_together else UNSET,
        )
        for entry in diagnosis.entries
    ]
    return {**content, "unknown": list(sentences.unknown(diagnosis)), "entries": as_json(shown)}
