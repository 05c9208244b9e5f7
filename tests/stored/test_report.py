"""A diagnosis is stored without a loss, whatever is in it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import reduce
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report import diagnoses
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import PARTS, Diagnosis, Result, Timeline
from tfdoctor.recording import Recording
from tfdoctor.report import terminal
from tfdoctor.report.formats import html, render
from tfdoctor.report.formats import json as report_json
from tfdoctor.rules import all_rules
from tfdoctor.stored.converter import form_of, has, markers
from tfdoctor.stored.files import of_text
from tfdoctor.stored.report import NoReportError, read, reports, settled, write
from tfdoctor.stored.results import UNSAID
from tfdoctor.stored.schema import schema
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.json_form import AllOf, AsText, NotEmpty, OfPattern, OneUnit, Pairs, number
from tfdoctor.terms.text import BLOCK_LIMIT, legible
from tfdoctor.terms.units import Quantity, Unit, ms
from tfdoctor.terms.verdict import Evidence, Finding, Healthy

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*/"))


def again(diagnosis: Diagnosis) -> Diagnosis:
    """Return what is read of the text of a report."""
    rules = {result.rule.name: result.rule for result in diagnosis.results}
    return read(json.loads(json.dumps(write(diagnosis), allow_nan=False)), rules.values())


@pytest.mark.parametrize("name", diagnoses.ALL)
def test_what_is_read_is_what_was_written(name: str) -> None:
    made = diagnoses.ALL[name]()
    rounded = again(made)
    assert write(rounded) == write(made)
    assert repr(again(rounded)) == repr(rounded)  # NaN is not equal to itself


@pytest.mark.parametrize("path", SAMPLES, ids=[path.name for path in SAMPLES])
def test_the_diagnosis_of_a_recording_is_stored_without_a_loss(path: Path) -> None:
    made = settled(diagnose(Recording.open(path), all_rules(), path.name, ask_xprof=False))
    assert again(made) == made
    read_again = read(json.loads(report_json.render(made)), all_rules())
    for name in ("html", "md", "sarif"):
        assert render(name, read_again) == render(name, made)  # also with the keys in order


def test_a_report_of_an_earlier_version_keeps_places_and_what_the_patch_lacks() -> None:
    content = json.loads(json.dumps(write(diagnoses.full())))
    for result in content["results"]:
        for name in ("title", "stated", "fallbacks"):
            result.pop(name, None)
    found = content["results"][0]
    found["at"] = {"path": "train.py", "line": 1, "kind": "script"}
    place = {"path": "train.py", "line": 3}
    edit = {"at": place, "before": "a", "after": "b", "in_patch": False}
    found["remedies"] = [{"action": "do", "code": "", "at": None, "trial": "", "edit": edit}]
    result = read(content).results[0]
    assert [place.kind.value for place in result.fallbacks] == ["script"]
    assert result.edits[0].missing == UNSAID


@pytest.mark.parametrize(
    "damage",
    [
        {"names": [[]]},
        {"parts": 3},
        {"step": [1]},
        {"hidden": None},
        {"lanes": [{"name": 1, "bars": []}]},
        *(
            {"lanes": [{"name": "", "bars": [row]}]}
            for row in ([1, 2], [1e308, 1, 0, 0, 1], [0, 1, 0, 10**9, 1], [0, 1, 0, 0, "<i>"])
        ),
        {"lanes": [{"name": "", "bars": [[0, 1, 0, 0, 1, 1]]}], "rules": [["a"]]},
        {"rules": None},
    ],
)
def test_a_damaged_timeline_is_refused(damage: dict[str, Any]) -> None:
    content = json.loads(json.dumps(write(diagnoses.full())))
    content["timeline"] |= damage
    with pytest.raises(NoReportError, match=r"^timeline"):
        read(content)


def test_bars_of_earlier_reports_are_about_no_finding() -> None:
    content = json.loads(json.dumps(write(diagnoses.full())))
    del content["timeline"]["rules"]
    for lane in content["timeline"]["lanes"]:
        lane["bars"] = [row[:5] for row in lane["bars"]]
    timeline = read(content).timeline
    assert timeline is not None
    assert {bar.rules for lane in timeline.lanes for bar in lane.bars} == {()}


# Any damage


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a report, the first items of each list alone."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:4])
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*path, key))


STORED = [json.loads(report_json.render(make())) for make in diagnoses.ALL.values()]
PLACES = [(report, path) for report, content in enumerate(STORED) for path in places_in(content)]
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.5, 1e300, 1e15, -1e15, 2**53, 10**400),
    *("", "text", "<script>", "\ud800", [], [None], [[]], {}, {"a": 1}),
)
MISSING = object()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from([*ODD, MISSING]))
def test_a_damaged_report_is_refused_or_rendered(where: tuple[int, tuple[Any, ...]], odd: Any) -> None:
    content = json.loads(json.dumps(STORED[where[0]]))
    *above, last = where[1]
    holder = reduce(lambda inner, key: inner[key], above, content)
    if odd is MISSING:
        del holder[last]
    else:
        holder[last] = odd
    try:
        found = of_text(json.dumps(content), Path("report.json"))
    except InputError:
        return  # with one sentence
    page = html.render_without_plotly(found)
    for text in (page, render("md", found), render("sarif", found), terminal.render(found)):
        assert text.encode()


# Any values of all types


NUMBERS = st.floats(-1e12, 1e12).map(lambda value: number(value) or 0.0)
TIMES = st.floats(1e-3, 1e12).map(lambda value: number(value) or 1.0)
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5).map(legible),
    int: st.integers(0, 99),
    bool: st.booleans(),
    float: TIMES,
    bytes: st.binary(max_size=9),
    NoneType: st.none(),
    Quantity: st.builds(Quantity, NUMBERS, st.sampled_from(Unit)),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return any values of a type, with the digits that a report keeps."""
    if get_origin(kind) is not None:
        return compounds(get_origin(kind), get_args(kind))
    if kind in (Result, Timeline):  # made diagnoses have them
        return st.nothing()
    if is_dataclass(kind) and kind is not Quantity:
        return records(kind)
    return SCALARS[kind] if kind in SCALARS else st.sampled_from(list(kind))


def compounds(origin: Any, parts: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Return any values of a union, a tuple or a mapping."""
    if origin is Annotated:
        return values(parts[0])
    if origin in (Union, UnionType):
        return st.one_of([values(part) for part in parts])
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=3).map(legible), values(parts[1]), max_size=2)
    if parts[-1] is not Ellipsis:
        return st.tuples(*map(values, parts))
    inner = values(parts[0])
    return st.just(()) if inner.is_empty else st.lists(inner, max_size=2).map(tuple)


def records(kind: Any) -> st.SearchStrategy[Any]:
    """Return any values of a dataclass, whose quantities of one unit have one."""

    @st.composite
    def record(draw: st.DrawFn) -> Any:
        unit = draw(st.sampled_from(Unit))
        shared = st.builds(Quantity, NUMBERS, st.just(unit))
        fields = {
            field.name: draw(
                (shared if NoneType not in get_args(of) else st.none() | shared)
                if has(marked, OneUnit)
                else of_form(of, marked)
            )
            for field, of, marked in markers(kind)
        }
        return kind(**fields)

    return record()


def of_form(kind: Any, marked: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Return any values of a field with these markers."""
    form = form_of(marked)
    if has(marked, OfPattern):
        (one,) = (one for one in marked if isinstance(one, OfPattern))
        known = ("", "https://ci.example.org/report.html", "2026-11-28T12:50:31Z")
        return st.sampled_from([text for text in known if re.fullmatch(one.pattern, text)])
    if has(marked, NotEmpty):
        return st.lists(values(get_args(kind)[0]), min_size=1, max_size=2).map(tuple)
    if isinstance(form, AllOf):
        return st.just({}) | st.fixed_dictionaries(dict.fromkeys(PARTS, NUMBERS))
    if form is None or isinstance(form, AsText | Pairs) or kind is not Quantity:
        return values(kind)
    return NUMBERS.map(ms)


@settings(max_examples=10, deadline=None)
@given(records(Diagnosis))
def test_any_diagnosis_is_stored_without_a_loss(made: Diagnosis) -> None:
    content = json.loads(json.dumps(write(made), allow_nan=False))
    assert read(content) == made
    jsonschema.validate(content | {"unknown": [], "entries": []}, schema())


@settings(max_examples=10, deadline=None)
@given(records(Finding) | records(Healthy) | values(Evidence))
def test_any_verdict_is_stored_without_a_loss(made: Any) -> None:
    converter, kind = reports(), type(made)
    assert converter.structure(json.loads(json.dumps(converter.unstructure(made))), kind) == made


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("operations", 0, "flops"), -1.0, "operations[0].flops: expected a number ≥ 0, not -1.0"),
        (("operations", 0, "bytes"), -1.0, "operations[0].bytes: expected a number ≥ 0, not -1.0"),
        (("subject", "recorded"), "\x1b]0;x\a", "subject.recorded: expected a moment"),
        (("subject", "recorded"), "2026-11-28T12:50:31Z\n", "subject.recorded: expected a moment"),
        (("subject", "committed"), "\ud800", "subject.committed: expected a moment"),
    ],
)
def test_what_is_no_amount_and_no_moment_is_refused(place: Any, value: Any, fault: str) -> None:
    content = json.loads(report_json.render(diagnoses.ALL["full"]()))
    holder = reduce(lambda within, key: within[key], place[:-1], content)
    holder[place[-1]] = value
    with pytest.raises(NoReportError) as refused:
        read(content)
    assert str(refused.value).startswith(fault)


def test_texts_of_a_report_hide_and_command_nothing_and_have_an_end() -> None:
    content = json.loads(report_json.render(diagnoses.ALL["full"]()))
    content["subject"]["title"] = "a\x1b[2J\u202eb\ud800"
    content["subject"]["framework"] = {"\x9bk": "1" * 1_000_000}
    shown = read(content).subject
    assert shown.title == r"a\x1b[2J\u202eb\ud800"
    assert [key for key in shown.framework if "k" in key] == [r"\x9bk"]
    assert max(map(len, shown.framework.values())) <= BLOCK_LIMIT


def test_an_unknown_field_may_be_of_any_depth() -> None:
    content = json.loads(report_json.render(diagnoses.ALL["full"]()))
    content["later"] = json.loads("[" * 900 + "]" * 900)
    assert read(content).subject == diagnoses.ALL["full"]().subject
