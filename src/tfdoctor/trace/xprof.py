"""Asks xprof for a second opinion, in a child process, because a malformed trace can abort it.

The child repairs the trace and writes it to a private folder first: xprof writes its cache next to its input and
does not check whether the cache belongs to it.
"""

import html
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

LARGEST_BYTES = 32_000_000
"""Of a trace: xprof reads 10 to 16 MB per second, with twenty times the memory."""

BYTES_PER_BYTE = 40
"""Limit of xprof's address space per byte of trace; it needs about 20 times the file."""

BASE_BYTES = 4_000_000_000
"""Limit of the address space for xprof's library and threads."""

CHILD = Path(__file__).with_name("xprof_child.py")

WAIT_INPUT, HOST_TO_DEVICE = "110", "80"
"""xprof's event types that count as input (steps_db.proto), as JSON keys."""

Answer = Mapping[str, Any]
"""The output of the child: {"tables": the tool's tables, "steps": OpStats' steps in ps}."""


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


@dataclass(frozen=True, slots=True)
class Opinion:
    """xprof's opinion on a trace; ``error`` says why there is none."""

    conclusion: str = ""
    verdict: InputVerdict = InputVerdict.NONE
    input_percent: float | None = None  # of the step
    steps: int = 0
    step_ms: float | None = None
    device_type: str = ""
    diagnostics: tuple[str, ...] = ()
    host_input_percent: float | None = None  # of the trace without devices; GPU only
    error: str = ""


def ask(path: Path, *, timeout_s: float) -> Opinion:
    """Return xprof's opinion; do not raise for a damaged trace, nor write next to it."""
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            most = LARGEST_BYTES // 10**6
            return Opinion(
                error=f"it is asked for traces of up to {most} MB, and this one has {size / 1e6:.0f} MB"
            )
        with tempfile.TemporaryDirectory(prefix="tfdoctor-") as private:
            answers = _run(path, Path(private), BASE_BYTES + BYTES_PER_BYTE * size, timeout_s)
    except OSError as error:  # no trace, no room for the copy, no child
        return Opinion(error=str(error))
    if isinstance(answers, str):
        return Opinion(error=answers)
    return _opinion(answers[0], answers[1] if len(answers) > 1 else None)


def _run(path: Path, private: Path, limit: int, timeout_s: float) -> list[Answer] | str:
    """Return the child's answers, of the whole trace and on a GPU of that without devices; or why not."""
    # -P: this folder has an xprof.py too
    child = [sys.executable, "-P", str(CHILD), str(path), str(private), str(limit)]
    try:
        finished = subprocess.run(  # noqa: S603 - our own child
            child,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout_s:.0f} s"
    lines = finished.stdout.splitlines()
    if finished.returncode and not lines:
        if finished.returncode < 0:
            return f"it was killed by signal {-finished.returncode}"
        return (finished.stderr.strip().splitlines() or ["it failed without a message"])[-1]
    try:
        answers = [json.loads(line) for line in lines]
    except ValueError:
        return "its answer cannot be read"
    well_formed = answers and all(isinstance(answer, dict) for answer in answers)
    return answers if well_formed else "its answer is of an unknown kind"


def _opinion(answer: Answer, host: Answer | None) -> Opinion:
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
        diagnostics=_diagnostics(answer["tables"]),
        host_input_percent=_input_percent(host) if host else None,
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
    waited = sum(
        step["parts_ps"].get(kind, 0)
        for step in answer["steps"]
        for kind in (WAIT_INPUT, HOST_TO_DEVICE)
    )
    return 100 * waited / total if total else None


def _diagnostics(tables: list[dict[str, Any]]) -> tuple[str, ...]:
    table = tables[4] if len(tables) > 4 else {}  # noqa: PLR2004 - the fifth table
    rows = ([cell.get("v") for cell in row.get("c", ())] for row in table.get("rows", ()))
    return tuple(_plain(str(row[-1])) for row in rows if row)


def _number(value: object) -> float | None:
    try:
        return float(str(value).rstrip("%"))
    except ValueError:
        return None


def _plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()
