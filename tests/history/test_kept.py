"""The file of baselines and accepted changes: written, read again, and refused where it is damaged."""

from tests.facts.kit import Told
from tests.kit import *
from tfdoctor.compare.baseline import keep
from tfdoctor.diagnosis.history_report import Accepted, NamedBaseline
from tfdoctor.history.runs import ANOTHER, KeptHistory
from tfdoctor.history.runs import read_kept as read

ACCEPTED = Accepted("train.py", "step-ms", "abc123", "Ann", "2026-03-01", "larger crops")
BASELINE = NamedBaseline("release-1", "train.py", "abc123", "2026-03-01", "step", {"step-ms": 50.0})
KEPT = KeptHistory().with_entry(ACCEPTED).with_entry(BASELINE)
TOLD = Told()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    keep(KEPT, tmp_path / "kept.json", ANOTHER)
    assert (read(tmp_path / "kept.json"), read(tmp_path / "none.json")) == (KEPT, KeptHistory())


def test_the_same_entry_is_replaced_and_others_are_kept() -> None:
    other, again = replace(ACCEPTED, what="run-s"), replace(ACCEPTED, by="Bob", on="2026-03-02", why="and longer")
    faster = replace(BASELINE, commit="def", recorded="2026-03-02", values={"step-ms": 40.0})
    kept = KEPT.with_entry(other).with_entry(again).with_entry(faster)
    assert (kept.accepted, kept.baselines) == ((other, again), (faster,))


@TOLD
def the_file_is_for_people_to_read(folder: Path) -> object:
    keep(KeptHistory().with_entry(ACCEPTED), folder / "kept.json", ANOTHER)
    return (folder / "kept.json").read_text().splitlines()


def damaged(content: str, folder: Path) -> None:
    (folder / "kept.json").write_text(content)
    read(folder / "kept.json")


TOLD[damaged] = {
    "no JSON": "{",
    "a list": "[]",
    "no entries": '{"schema": 1}',
    "a later schema": '{"schema": 2, "baselines": [], "accepted": []}',
    "an entry that lacks fields": '{"schema": 1, "baselines": [], "accepted": [{"by": 3}]}',
    "an entry that is a number": '{"schema": 1, "baselines": [3], "accepted": []}',
}


@TOLD
def it_cannot_be_written(folder: Path) -> None:
    keep(KeptHistory(), folder / "none" / "kept.json", ANOTHER)


TOLD.add("it could not be written", lambda folder: read(folder / "none" / "kept.json", to_write=True))
TOLD[lambda name, folder: read(folder / name)] = {"it cannot be read": ""}
test_kept = TOLD.test("kept")
