"""What JSON becomes when it is read into dataclasses, and what becomes of what does not fit."""

from typing import Annotated

from tests.kit import *
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


def taken(data: Any, kind: type[Record] = Outer) -> tuple[object, list[str]]:
    """Return what is read, and which places do not fit."""
    faults: list[str] = []
    return read(kind, data, faults), faults


def test_what_fits_is_taken() -> None:
    data = {
        "text": "a", "flag": True, "share": 1, "at": ["train.py", 3], "shape": [None, 4],
        "many": [{"name": "x"}, {"name": "y", "size": 2}], "options": {"a": True, "b": 2}, "class": "Map",
    }  # fmt: skip
    outer = Outer(
        text="a", flag=True, share=1, at=("train.py", 3), shape=(None, 4),
        many=(Inner("x"), Inner("y", 2)), options={"a": True, "b": 2}, kind="Map",
    )  # fmt: skip
    assert taken(data) == (outer, [])


UNFIT: dict[str, tuple[Any, ...]] = {
    ".text": ({"text": 1},),
    ".flag": ({"flag": 1}, {"flag": "yes"}),
    ".share": tuple({"share": value} for value in (True, -0.1, float("nan"), float("inf"), 10**400)),
    ".at": ({"at": ["train.py"]}, {"at": [3, "train.py"]}, {"at": 7}),
    ".shape": ({"shape": [1, "a"]}, {"shape": [2**63]}, {"shape": {"0": 1}}),
    ".many": ({"many": 3},),
    ".many[0]": ({"many": [{"size": 1}]}, {"many": [3]}),
    ".options": ({"options": [1]},),
    ".options.a": ({"options": {"a": "x"}},),
    ".class": ({"class": 3},),
}


@cases(*((data, fault) for fault, found in UNFIT.items() for data in found))
def test_what_does_not_fit_keeps_its_default_and_is_noted(data: Any, fault: str) -> None:
    assert taken(data) == (Outer(), [fault])


@each({}, {"text": None, "many": None, "at": {}}, {"unknown": 1}, {"options": {"a": None, "b": {}}})
def test_nothing_stands_for_the_default(data: object) -> None:
    assert taken(data) == (Outer(), [])


def test_an_entry_of_a_list_is_lost_alone() -> None:
    entries = [{"name": "x", "size": -1}, {"name": None}, {"name": "z"}]
    kept = Outer(many=(Inner("x"), Inner("z")))
    assert taken({"many": entries}) == (kept, [".many[0].size", ".many[1]"])


@cases(
    *((Outer, data) for data in (None, "text", 3)),
    (Outer, []),
    (Outer, [{}]),
    (Outer, {"text": deep(10_000)}),
    (Strict, {"items": [{"name": "x"}, {"name": 2}]}),  # a list that is judged as a whole is lost as a whole
    # A program record that lost a part is damaged:
    (ProgramRecord, {"graphs": [{"operations": [{"type": "Conv2D"}]}]}),
    (ProgramRecord, {"graphs": [{"operations": None}]}),
    (ProgramRecord, {"graphs": [], "layers": [{"name": "x"}]}),
    (ProgramRecord, {"graphs": [], "datasets": ["x"]}),
    (ProgramRecord, {"graphs": 3}),
)
def test_what_is_no_such_object_does_not_fit(kind: type[Record], data: object) -> None:
    with pytest.raises(Misfit):
        read(kind, data, [])


def test_a_list_that_is_missing_is_empty() -> None:
    assert taken({"items": None}, Strict) == (Strict(), [])


@cases((32, 32), (16.0, 16), ("8", 8), (0, None), (-1, None), ("x", None), (1.5, None))
def test_numbers_that_numpy_made_are_read(value: object, size: int | None) -> None:
    assert read(RunSettings, {"batch_size": value}, []).batch_size == size


def test_a_batch_of_none_is_no_size() -> None:
    assert read(DatasetParameters, {"batch_size": 0, "buffer_size": -1}, []) == DatasetParameters(buffer_size=-1)


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
    notes = Notes()
    notes.left_out("tfdoctor.json", taken({"options": {"\x1b]0;PWNED\a\n": [], "k" * 10**5: []}})[1])
    (said,) = notes.texts
    assert re.search(r"[^.]options\.\\x1b]0;PWNED\\x07", said)  # the first place has no dot
    assert len(said) < 500


def test_a_time_of_no_steps_is_damage() -> None:
    assert taken({"untraced": {"count": 0, "median_ms": 0.8}}, StepsSeen) == (StepsSeen(), [".untraced"])
    assert read(StepsSeen, {"untraced": {"count": 0}}, []).untraced == UntracedSteps()
