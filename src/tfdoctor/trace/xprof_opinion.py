"""Reads xprof's opinion on a trace from the answers of its child."""

import html
import re
import statistics
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from tfdoctor.terms.record import Record

WAIT_INPUT, HOST_TO_DEVICE = "110", "80"  # xprof's event types that count as input (steps_db.proto), as JSON keys
Answer = Mapping[str, Any]  # The output of the child: {"tables": the tool's tables, "steps": OpStats' steps in ps}


class InputVerdict(StrEnum):
    """xprof's conclusion about input, by the phrase that identifies it."""

    BOUND = "HIGHLY input-bound"
    PARTLY_BOUND = "MODERATELY input-bound"
    POTENTIAL = "POTENTIALLY input-bound"
    NOT_BOUND = "NOT input-bound"
    NONE = ""  # part of every text, so the last to compare

    @classmethod
    def of(cls, conclusion: str) -> "InputVerdict":
        """Return the verdict in xprof's conclusion."""
        return next(verdict for verdict in cls if verdict in conclusion)


class Opinion(Record):
    """xprof's opinion on a trace; ``error`` says why there is none."""

    conclusion: str = ""
    verdict: InputVerdict = InputVerdict.NONE
    input_percent: float | None = None  # of the step
    steps: int = 0
    step_ms: float | None = None
    device_type: str = ""
    error: str = ""


def opinion(answer: Answer) -> Opinion:
    """Return the opinion in an answer."""
    facts = _facts(answer)
    times = [step["duration_ps"] / 1e9 for step in answer["steps"]]
    conclusion = _plain(str(facts.get("input_conclusion", "")))
    return Opinion(
        conclusion=conclusion,
        verdict=InputVerdict.of(conclusion),
        input_percent=_input_percent(answer),
        steps=len(times),
        step_ms=statistics.fmean(times) if times else None,
        device_type=str(facts.get("hardware_type", "")),
    )


def _facts(answer: Answer) -> Mapping[str, str]:
    """Return the properties of the step table."""
    tables = answer["tables"]
    return tables[1].get("p", {}) if len(tables) > 1 else {}


def _input_percent(answer: Answer) -> float | None:
    """Return the input's percent of step time: for a TPU from the step table, else from OpStats."""
    facts = _facts(answer)
    if answer["steps"] and "infeed_percent_average" in facts:
        return _number(facts["infeed_percent_average"])
    total = sum(step["duration_ps"] for step in answer["steps"])
    waited = sum(step["parts_ps"].get(kind, 0) for step in answer["steps"] for kind in (WAIT_INPUT, HOST_TO_DEVICE))
    return 100 * waited / total if total else None


def _number(value: object) -> float | None:
    try:
        return float(str(value).rstrip("%"))
    except ValueError:
        return None


def _plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^<>]*>", "", text)).strip()
