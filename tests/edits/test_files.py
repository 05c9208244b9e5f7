"""The files as chosen findings change them, for a trial."""

from pathlib import Path

import pytest

from tests.edits.recorded import finding, recorded, remedy
from tests.edits.test_together import JIT, MAP, TEXT
from tfdoctor.edits.patch import changed_files
from tfdoctor.edits.splice import Declined


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TEXT)
    return tmp_path


def test_one_finding_alone_and_two_together(folder: Path) -> None:
    recording = recorded(folder, ["train.py"])
    parallel, jit = finding(*MAP), finding(*JIT)
    path = (folder / "train.py").resolve()
    alone = changed_files(recording, [parallel])
    assert alone == {path: TEXT.replace(".map(f)", ".map(f, num_parallel_calls=tf.data.AUTOTUNE)").encode()}
    both = changed_files(recording, [parallel, jit])[path]
    assert b"num_parallel_calls" in both
    assert b"jit_compile=True" in both
    assert (folder / "train.py").read_text() == TEXT


def test_of_several_remedies_the_first_that_is_an_edit_is_taken(folder: Path) -> None:
    recording = recorded(folder, ["train.py"])
    by_hand = remedy("", line=3)
    found = finding("parallel-map", by_hand, MAP[1], remedy("cache", line=3))
    (text,) = changed_files(recording, [found]).values()
    assert b"num_parallel_calls" in text
    assert b"cache" not in text


def test_a_finding_without_an_edit_says_why(folder: Path) -> None:
    recording = recorded(folder, ["train.py"])
    with pytest.raises(Declined, match="hand"):
        changed_files(recording, [finding("own-rule", remedy("", line=3))])


def test_a_file_that_changed_since_is_refused(folder: Path) -> None:
    recording = recorded(folder, ["train.py"])
    (folder / "train.py").write_text(TEXT + "# later\n")
    with pytest.raises(Declined, match="changed since"):
        changed_files(recording, [finding(*MAP)])
