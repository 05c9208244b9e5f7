"""The file of baselines and accepted changes: written, read again, and refused where it is damaged."""

import json
from pathlib import Path

import pytest

from tests.cases import cases
from tfdoctor.compare.baseline import keep
from tfdoctor.diagnosis.history_report import Accepted, NamedBaseline
from tfdoctor.history.runs import ANOTHER, KeptHistory
from tfdoctor.history.runs import read_kept as read
from tfdoctor.terms.errors import InputError, OutputError

ACCEPTED = Accepted("train.py", "step-ms", "abc123", "Ann", "2026-03-01", "larger crops")
BASELINE = NamedBaseline("release-1", "train.py", "abc123", "2026-03-01", "step", {"step-ms": 50.0})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    kept = KeptHistory().with_entry(ACCEPTED).with_entry(BASELINE)
    keep(kept, tmp_path / "kept.json", ANOTHER)
    assert read(tmp_path / "kept.json") == kept
    assert read(tmp_path / "none.json") == KeptHistory()


def test_the_same_entry_is_replaced_and_others_are_kept() -> None:
    kept = KeptHistory().with_entry(ACCEPTED)
    other = Accepted("train.py", "run-s", "abc123", "Ann", "2026-03-01", "larger crops")
    again = Accepted("train.py", "step-ms", "abc123", "Bob", "2026-03-02", "and longer")
    assert kept.with_entry(other).with_entry(again).accepted == (other, again)
    faster = NamedBaseline("release-1", "train.py", "def", "2026-03-02", "step", {"step-ms": 40.0})
    assert KeptHistory().with_entry(BASELINE).with_entry(faster).baselines == (faster,)


@cases(
    ("{", "is not JSON"),
    ("[]", "is no file of `tfdoctor history`"),
    ('{"schema": 1}', "is no file of `tfdoctor history`"),
    ('{"schema": 2, "baselines": [], "accepted": []}', "a schema that this tfdoctor does not"),
    ('{"schema": 1, "baselines": [], "accepted": [{"by": 3}]}', "is damaged"),
    ('{"schema": 1, "baselines": [3], "accepted": []}', "is damaged"),
)
def test_a_damaged_file_is_refused_in_one_sentence(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_file_that_cannot_be_written_or_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        keep(KeptHistory(), tmp_path / "none" / "kept.json", ANOTHER)
    with pytest.raises(OutputError, match="none is no folder: choose another file"):
        read(tmp_path / "none" / "kept.json", to_write=True)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)


def test_the_file_is_for_people_to_read(tmp_path: Path) -> None:
    keep(KeptHistory().with_entry(ACCEPTED), tmp_path / "kept.json", ANOTHER)
    content = json.loads((tmp_path / "kept.json").read_text())
    assert content["accepted"] == [
        {
            "program": "train.py",
            "what": "step-ms",
            "commit": "abc123",
            "by": "Ann",
            "on": "2026-03-01",
            "why": "larger crops",
        }
    ]
