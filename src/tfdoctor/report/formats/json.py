"""The report as JSON: the contract for other programs, documented in docs/reference/json.md."""

import json
from dataclasses import replace
from typing import Any

from tfdoctor.diagnosis import Diagnosis, RunAccount
from tfdoctor.report import sentences
from tfdoctor.report.entries import Entry, entries
from tfdoctor.stored import report
from tfdoctor.terms.json_form import number

MOST_OPERATIONS = 500
"""Operations in the contract of a page: EfficientNetB0 has 1,223, which take 280 kB."""

FOR_EDITS = ("patch",)
"""What a page leaves out: it shows the edits, and the file of the report has the rest."""

Object = dict[str, Any]


def render(diagnosis: Diagnosis) -> str:
    """Return the contract, sorted and in ASCII."""
    return _written(contract(diagnosis), indent=2, separators=(",", ": ")) + "\n"


def render_for_page(diagnosis: Diagnosis) -> str:
    """Return the contract on one line, with the operations that fit into a page."""
    cut = max(0, len(diagnosis.operations) - MOST_OPERATIONS)
    shown = replace(
        diagnosis,
        operations=diagnosis.operations[:MOST_OPERATIONS],
        operations_omitted=diagnosis.operations_omitted + cut,
    )
    content = contract(shown)
    content = {name: value for name, value in content.items() if name not in FOR_EDITS}
    return _written(content, indent=None, separators=(",", ":"))


def _written(content: Object, *, indent: int | None, separators: tuple[str, str]) -> str:
    return json.dumps(
        content, sort_keys=True, indent=indent, separators=separators, allow_nan=False
    )


def contract(diagnosis: Diagnosis) -> Object:
    """Return the diagnosis as it is stored, with what readers need not compute: entries, shares, sentences."""
    of_run = diagnosis.run_together is not None
    return {
        **_with_shares(report.write(diagnosis), diagnosis.run),
        "unknown": list(sentences.unknown(diagnosis)),
        "entries": [_entry(entry, of_run=of_run) for entry in entries(diagnosis)],
    }


def _with_shares(content: Object, run: RunAccount | None) -> Object:
    """Add the share that each phase has of the run."""
    for phase, row in zip(content["run"]["phases"], run.rows, strict=True) if run else ():
        phase["share"] = number(row.ms / run.total_ms) if run and run.total_ms else None
    return content


def _entry(entry: Entry, *, of_run: bool) -> Object:
    return {
        "rule": entry.result.rule.name,
        "symptoms": [result.rule.name for result in entry.symptoms],
        "same": [result.rule.name for result in entry.same],
        "in_together": entry.in_sum,
        "included_in": list(entry.included_in),
        **({"in_run_together": entry.in_run_sum} if of_run else {}),
    }
