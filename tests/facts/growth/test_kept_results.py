"""KeptResults: which statement of a loop keeps what training made, as the log and the table tell it."""

import json
from pathlib import Path

import pytest

from tests.builders import recording
from tests.run_logs import FOLDER, Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.growth.memory_trends import KeptResult, KeptResults, kept_table
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.run_file import run_log
from tfdoctor.recording.run_log import KeptStatement
from tfdoctor.terms.kinds import KeptValue
from tfdoctor.terms.verdict import Finding, Location, Remedy, Severity, Table

AT = Location("train.py", 47)
LOSSES = KeptResult(AT, "history", "(loss, z)", KeptValue.RESULT, each=True)
OTHER = KeptResult(Location("train.py", 12), "memory", "transition")
MODEL = KeptResult(Location("train.py", 60), "models", "model", KeptValue.MODEL, fits=True)
HISTORY = KeptResult(Location("train.py", 61), "runs", "run", KeptValue.HISTORY, fits=True, each=True)


def test_statements_become_places_in_the_order_of_lines() -> None:
    run = Run()
    run.python(1.0)
    run.kept = [
        KeptStatement((f"{FOLDER}/train.py", 47), "history", "(loss, z)", KeptValue.RESULT, each=True),
        KeptStatement((f"{FOLDER}/train.py", 12), "memory", "transition"),
    ]
    assert KeptResults.measure(run.recording()) == KeptResults((OTHER, LOSSES))


def test_without_an_account_of_the_run_nothing_is_known() -> None:
    with pytest.raises(Unavailable, match="not recorded"):
        KeptResults.measure(recording())


def test_the_log_is_read_as_the_agent_writes_it(tmp_path: Path) -> None:
    lines = (
        {"kind": "process", "pid": 7},
        {"kind": "kept", "at": ["/p/train.py", 47], "container": "history", "value": "(loss, z)",
         "what": "result", "fits": False, "each": True},
        {"kind": "kept", "container": "no line"},
    )  # fmt: skip
    (tmp_path / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    log = run_log(tmp_path, Notes())
    assert log is not None
    assert log.kept == (KeptStatement(("/p/train.py", 47), "history", "(loss, z)", KeptValue.RESULT, each=True),)


@pytest.mark.parametrize(
    ("statements", "of_steps", "of_fits"),
    [
        ((), None, None),
        ((OTHER,), None, None),
        ((LOSSES, OTHER), LOSSES, None),
        ((LOSSES, KeptResult(AT, "more", "z", KeptValue.RESULT)), None, None),
        ((MODEL, LOSSES), LOSSES, MODEL),
        ((HISTORY,), None, HISTORY),
        ((MODEL, HISTORY), None, None),
        ((KeptResult(AT, "x", "y", KeptValue.RESULT, fits=True),), None, None),
    ],
)
def test_one_is_named_only_if_it_is_the_only_one(
    statements: tuple[KeptResult, ...], of_steps: KeptResult | None, of_fits: KeptResult | None
) -> None:
    kept = KeptResults(statements)
    assert (kept.of_steps, kept.of_fits) == (of_steps, of_fits)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (LOSSES, "train.py:47 adds (loss, z) to history in each step"),
        (OTHER, "train.py:12 adds transition to memory in the loop"),
        (MODEL, "train.py:60 adds model to models in the loop"),
        (HISTORY, "train.py:61 adds run, which holds the model, to runs after each fit"),
    ],
)
def test_it_is_told_as_a_clause(statement: KeptResult, words: str) -> None:
    assert statement.clause == words


def test_the_table_has_three_rows_at_most_and_a_place_for_the_named_one_alone() -> None:
    kept = KeptResults((OTHER, OTHER, LOSSES, HISTORY))
    (table,) = kept_table(kept, LOSSES)
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [AT, "train.py:61", "train.py:12"]
    (without,) = kept_table(kept, None)
    finding = Finding(summary="", evidence=(without,), remedies=(Remedy("Change it"),), severity=Severity.NOTE)
    assert finding.at is None
    assert kept_table(KeptResults(()), None) == kept_table(None, None) == ()
