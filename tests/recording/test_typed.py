"""What JSON becomes when it is read into dataclasses, and what becomes of what does not fit."""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from tests.cases import cases, each
from tfdoctor.recording.agent import StepsSeen, UntracedSteps
from tfdoctor.recording.files import Notes
from tfdoctor.recording.program import DatasetParameters, ProgramRecord, RunSettings
from tfdoctor.recording.typed import WHOLE, Amount, Count, Misfit, read
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.text import LONGEST


class Inner(Record):
    name: str
    size: Count = 1


class Outer(Record):
    text: str = "default"
    flag: bool = False
    share: Amount = 0.5
    at: tuple[str, int] | None = None
    shape: tuple[int | None, ...] = ()
    many: tuple[Inner, ...] = ()
    options: Mapping[str, bool | int] = field(default_factory=dict)
    kind: str = field(default="", name="class")


class Words(Record):
    command: tuple[str, ...] = ()


class Strict(Record):
    items: Annotated[tuple[Inner, ...], WHOLE] = ()


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_what_fits_is_taken() -> None:
    data = {
        "text": "a", "flag": True, "share": 1, "at": ["train.py", 3], "shape": [None, 4],
        "many": [{"name": "x"}, {"name": "y", "size": 2}], "options": {"a": True, "b": 2}, "class": "Map",
    }  # fmt: skip
    faults: list[str] = []
    outer = read(Outer, data, faults)
    assert not faults
    assert outer == Outer(
        text="a", flag=True, share=1, at=("train.py", 3), shape=(None, 4),
        many=(Inner("x"), Inner("y", 2)), options={"a": True, "b": 2}, kind="Map",
    )  # fmt: skip


@cases(
    ({"text": 1}, ".text"),
    ({"flag": 1}, ".flag"),
    ({"flag": "yes"}, ".flag"),
    ({"share": True}, ".share"),
    ({"share": -0.1}, ".share"),
    ({"share": float("nan")}, ".share"),
    ({"share": float("inf")}, ".share"),
    ({"share": 10**400}, ".share"),
    ({"at": ["train.py"]}, ".at"),
    ({"at": [3, "train.py"]}, ".at"),
    ({"at": 7}, ".at"),
    ({"shape": [1, "a"]}, ".shape"),
    ({"shape": [2**63]}, ".shape"),
    ({"shape": {"0": 1}}, ".shape"),
    ({"many": 3}, ".many"),
    ({"many": [{"size": 1}]}, ".many[0]"),
    ({"many": [3]}, ".many[0]"),
    ({"options": [1]}, ".options"),
    ({"options": {"a": "x"}}, ".options.a"),
    ({"class": 3}, ".class"),
)
def test_what_does_not_fit_keeps_its_default_and_is_noted(data: Any, fault: str) -> None:
    faults: list[str] = []
    assert read(Outer, data, faults) == Outer()
    assert faults == [fault]


def test_an_entry_of_a_list_is_lost_alone() -> None:
    faults: list[str] = []
    entries = [{"name": "x", "size": -1}, {"name": None}, {"name": "z"}]
    outer = read(Outer, {"many": entries}, faults)
    assert outer.many == (Inner("x"), Inner("z"))
    assert faults == [".many[0].size", ".many[1]"]


def test_a_list_that_is_judged_as_a_whole_is_lost_as_a_whole() -> None:
    assert read(Strict, {"items": None}, []) == Strict()
    with pytest.raises(Misfit):
        read(Strict, {"items": [{"name": "x"}, {"name": 2}]}, [])


@each(None, [], "text", 3, [{}], {"text": deep(10_000)})
def test_what_is_no_object_does_not_fit(data: object) -> None:
    with pytest.raises(Misfit):
        read(Outer, data, [])


@each({}, {"text": None, "many": None, "at": {}}, {"unknown": 1}, {"options": {"a": None, "b": {}}})
def test_nothing_stands_for_the_default(data: object) -> None:
    faults: list[str] = []
    assert read(Outer, data, faults) == Outer()
    assert not faults


@cases((32, 32), (16.0, 16), ("8", 8), (0, None), (-1, None), ("x", None), (1.5, None))  # fmt: skip
def test_numbers_that_numpy_made_are_read(value: object, size: int | None) -> None:
    assert read(RunSettings, {"batch_size": value}, []).batch_size == size


def test_a_batch_of_none_is_no_size() -> None:
    assert read(DatasetParameters, {"batch_size": 0, "buffer_size": -1}, []) == DatasetParameters(buffer_size=-1)


@each(
    {"graphs": [{"operations": [{"type": "Conv2D"}]}]},
    {"graphs": [{"operations": None}]},
    {"graphs": [], "layers": [{"name": "x"}]},
    {"graphs": [], "datasets": ["x"]},
    {"graphs": 3},
)
def test_a_program_record_that_lost_a_part_is_damaged(record: Any) -> None:
    with pytest.raises(Misfit):
        read(ProgramRecord, record, [])


def test_a_note_names_the_first_places() -> None:
    notes = Notes()
    notes.left_out("tfdoctor.json", [".steps.at", ".clock[0]", "", ".x"])
    notes.left_out("samples.jsonl", [])
    (said,) = notes.damage
    assert said == ("4 damaged values of tfdoctor.json left out: steps.at, clock[0], the whole file, …")
    assert notes.texts == notes.damage


def test_a_text_is_a_name_on_one_line_unless_it_is_exact() -> None:
    assert read(Outer, {"text": "f\n::error::x"}, []).text == "f ::error::x"
    assert read(Words, {"command": ["python", "-c", "a\nb"]}, []).command[-1] == "a\nb"
    assert len(read(Outer, {"text": "x" * 10**6}, []).text) <= LONGEST + 1
    assert list(read(Outer, {"options": {"a\nb": 1}}, []).options) == ["a b"]


def test_the_place_of_a_damaged_value_hides_nothing_and_has_an_end() -> None:
    faults: list[str] = []
    read(Outer, {"options": {"\x1b]0;PWNED\a\n": [], "k" * 10**5: []}}, faults)
    notes = Notes()
    notes.left_out("tfdoctor.json", faults)
    assert r".options.\x1b]0;PWNED\x07" not in notes.texts[0]  # the first place has no dot
    assert r"options.\x1b]0;PWNED\x07" in notes.texts[0]
    assert len(notes.texts[0]) < 500


def test_a_time_of_no_steps_is_damage() -> None:
    faults: list[str] = []
    seen = read(StepsSeen, {"untraced": {"count": 0, "median_ms": 0.8}}, faults)
    assert seen.untraced is None
    assert faults == [".untraced"]
    assert read(StepsSeen, {"untraced": {"count": 0}}, []).untraced == UntracedSteps()
