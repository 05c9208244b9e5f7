"""Records: values with named fields, which `dataclasses` knows as its own."""

import dataclasses
import importlib
import pickle
import pkgutil
import pprint
from typing import Generic

import tfdoctor
from tests.kit import *
from tfdoctor.terms.record import Record, common, field

Kind = TypeVar("Kind")


class Placed(Record, Generic[Kind]):
    at: Kind


class Line(Placed[str], kw_only=True):
    ms: float
    calls: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


LINE = Line("train.py:3", ms=2.0)


def test_a_record_is_changed_shown_and_taken_apart_as_a_dataclass() -> None:
    assert dataclasses.is_dataclass(LINE)
    assert dataclasses.replace(LINE, ms=3.0) == Line("train.py:3", ms=3.0)
    assert dataclasses.asdict(LINE) == {"at": "train.py:3", "ms": 2.0, "calls": {}, "parts": ()}
    assert [one.name for one in dataclasses.fields(Line)] == ["at", "ms", "calls", "parts"]
    assert repr(LINE) == "Line(at='train.py:3', ms=2.0, calls={}, parts=())"
    assert "train.py:3" in pprint.pformat(LINE, width=10)
    assert pickle.loads(pickle.dumps(LINE)) == LINE  # it goes to another process


def test_a_record_takes_what_others_have_by_the_same_names() -> None:
    """The first one that has it counts, and what is given counts more; one that is not known has nothing."""
    other = Line("train.py:9", ms=1.0, parts=("host",))
    assert common(Placed, None, LINE, other) == Placed("train.py:3")
    assert common(Line, Placed("eval.py:1"), other, ms=7.0) == Line("eval.py:1", ms=7.0, parts=("host",))


def test_a_record_is_frozen_and_has_defaults_of_its_own() -> None:
    with pytest.raises(AttributeError):
        LINE.ms = 4.0  # type: ignore[misc] # what must fail
    assert Line("a", ms=1.0).calls is not Line("a", ms=1.0).calls


def test_records_are_equal_and_hashed_by_their_fields() -> None:
    assert Placed(1) == Placed(1) != Placed(2)
    assert len({Placed(1), Placed(1), Placed(2)}) == 2


def kinds(base: type[Record] = Record) -> Iterator[type[Record]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_no_default_of_a_record_is_a_field_of_dataclasses() -> None:
    for module in pkgutil.walk_packages(tfdoctor.__path__, "tfdoctor."):
        if not module.name.startswith(("tfdoctor.capture", "tfdoctor.__main__")):
            importlib.import_module(module.name)
    given = [one for kind in kinds() for one in kind.__struct_defaults__]
    assert given
    assert not [one for one in given if isinstance(one, dataclasses.Field)]
