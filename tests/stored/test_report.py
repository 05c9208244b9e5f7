"""A diagnosis is stored without a loss, whatever is in it."""

from dataclasses import is_dataclass
from functools import reduce
from math import nan
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import jsonschema
from msgspec import Meta

from scripts.report_schema import schema
from tests.kit import *
from tests.report import diagnoses
from tfdoctor.diagnosis import DeviceWord, Diagnosis, Labelled
from tfdoctor.diagnosis.results import UNSAID, ResultForm
from tfdoctor.diagnosis.step import PARTS, Parts, Timeline
from tfdoctor.diagnosis.trials import NotTried
from tfdoctor.report import terminal
from tfdoctor.report.formats import html, render
from tfdoctor.report.formats import json as report_json
from tfdoctor.stored.files import of_text
from tfdoctor.stored.report import NoReportError, finished, read, write
from tfdoctor.terms import json_form as form
from tfdoctor.terms import verdict
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.text import BLOCK_LIMIT, legible
from tfdoctor.terms.units import Quantity, Unit
from tfdoctor.terms.verdict import Evidence, Finding, Healthy, Location, Measure, Severity, Table

VALIDATOR = jsonschema.Draft202012Validator(schema())


def again(diagnosis: Diagnosis) -> Diagnosis:
    """Return what is read of the text of a report."""
    rules = {result.rule.name: result.rule for result in diagnosis.results}
    return read(json.loads(json.dumps(write(diagnosis), allow_nan=False)), rules.values())


@each(*diagnoses.ALL)
def test_what_is_read_is_what_was_written(name: str) -> None:
    made = finished(diagnoses.ALL[name]())
    rounded = again(made)
    assert write(rounded) == write(made)
    assert repr(again(rounded)) == repr(rounded)  # NaN is not equal to itself


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


@each(
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
    assert timeline.rules == ((),)


# Any damage


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a report, the first items of each list alone."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:4])
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*path, key))


@cache
def stored() -> list[Any]:
    return [json.loads(report_json.render(make())) for make in diagnoses.ALL.values()]


PLACES = st.deferred(
    lambda: st.sampled_from([(at, path) for at, content in enumerate(stored()) for path in places_in(content)])
)
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.5, 1e300, 1e15, -1e15, 2**53, 10**400),
    *("", "text", "<script>", "\ud800", [], [None], [[]], {}, {"a": 1}),
)
MISSING = object()


@settings(max_examples=60, deadline=None)
@given(PLACES, st.sampled_from([*ODD, MISSING]))
def test_a_damaged_report_is_refused_or_rendered(where: tuple[int, tuple[Any, ...]], odd: Any) -> None:
    content = json.loads(json.dumps(stored()[where[0]]))
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


NUMBERS = st.floats(-1e12, 1e12).map(lambda value: form.number(value) or 0.0)
TIMES = st.floats(1e-3, 1e12).map(lambda value: form.number(value) or 1.0)
TEXTS = st.text(max_size=5).map(legible)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple)
KNOWN: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    form.Count: st.integers(0, 99),
    form.Signed: st.integers(-99, 99),
    bool: st.booleans(),
    **dict.fromkeys((form.Number, form.Ms), NUMBERS),
    **dict.fromkeys((form.Share, form.Positive), TIMES),
    form.Text: st.binary(max_size=9),
    NoneType: st.none(),
    Quantity: st.builds(Quantity, NUMBERS, st.sampled_from(Unit)),
    Parts: st.just({}) | st.fixed_dictionaries(dict.fromkeys(PARTS, NUMBERS)),
    verdict.SeverityWord: st.sampled_from(Severity),
    DeviceWord: st.none() | st.sampled_from(DeviceKind),
    Labelled: PAIRS,
    NotTried: PAIRS,
    form.WebAddress: st.sampled_from(["", "https://ci.example.org/report.html"]),
    form.Moment: st.sampled_from(["", "2026-11-28T12:50:31Z"]),
    verdict.Edit | None: st.none(),
    **dict.fromkeys((ResultForm, Timeline), st.nothing()),  # made diagnoses have them
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return any values of a type, with the digits that a report keeps."""
    for known in (KNOWN, ANY_OF):
        if kind in known:
            return known[kind]
    if get_origin(kind) is not None:
        return compounds(kind)
    return records(kind) if is_dataclass(kind) else st.sampled_from(list(kind))


def compounds(kind: Any) -> st.SearchStrategy[Any]:
    """Return any values of a union, a tuple, a mapping, or a type with markers."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated and kind.__metadata__ == (Meta(min_length=1),):
        return st.lists(values(get_args(inner[0])[0]), min_size=1, max_size=2).map(tuple)
    if origin is Annotated:
        return values(inner[0] if kind.__metadata__[-1] == form.OMIT and len(inner) == 2 else Annotated[inner[:-1]])
    if origin in (Union, UnionType):
        return st.one_of([values(part) for part in inner])
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=3).map(legible), values(inner[1]), max_size=2)
    if origin is tuple and inner[-1] is not Ellipsis:
        return st.tuples(*map(values, inner))
    items = values(inner[0])
    return st.just(()) if items.is_empty else st.lists(items, max_size=2).map(tuple)


@st.composite
def records(draw: st.DrawFn, kind: Any) -> Any:
    """Return any values of a record, whose quantities of one unit have one."""
    unit = draw(st.sampled_from(Unit))
    shared = st.builds(Quantity, NUMBERS, st.just(unit)) if kind is Measure else KNOWN[Quantity]
    hints = get_type_hints(kind, include_extras=True)
    strategies = {Quantity: shared, Quantity | None: st.none() | shared}
    return kind(
        **{name: draw(strategies[hint] if hint in strategies else values(hint)) for name, hint in hints.items()}
    )


ANY_OF: Mapping[Any, st.SearchStrategy[Any]] = {
    verdict.Cell: TEXTS | KNOWN[Quantity] | records(Location),
    Evidence: st.deferred(lambda: records(Measure) | records(Table)),
    verdict.MeasureForm: records(Measure),
}


@settings(max_examples=10, deadline=None)
@given(records(Diagnosis))
def test_any_diagnosis_is_stored_without_a_loss(made: Diagnosis) -> None:
    content = json.loads(json.dumps(write(made), allow_nan=False))
    assert read(content) == made
    VALIDATOR.validate(content | {"unknown": [], "entries": []})


@settings(max_examples=10, deadline=None)
@given(records(Finding) | records(Healthy) | records(Measure) | records(Table))
def test_any_verdict_is_stored_without_a_loss(made: Any) -> None:
    kind = type(made) if isinstance(made, Finding | Healthy) else Evidence
    assert form.converted(json.loads(json.dumps(form.as_json(made))), kind) == made


@cases(
    (("operations", 0, "flops"), -1.0, "operations[0].flops: expected a number >= 0"),
    (("operations", 0, "bytes"), -1.0, "operations[0].bytes: expected a number >= 0"),
    (("subject", "recorded"), "\x1b]0;x\a", "subject.recorded: expected `str` of another form"),
    (("subject", "recorded"), "2026-11-28T12:50:31Z\n", "subject.recorded: expected `str` of another form"),
    (("subject", "committed"), "\ud800", "subject.committed: expected `str` of another form"),
)
def test_what_is_no_amount_and_no_moment_is_refused(place: Any, value: Any, fault: str) -> None:
    content = json.loads(report_json.render(diagnoses.full()))
    holder = reduce(lambda within, key: within[key], place[:-1], content)
    holder[place[-1]] = value
    with pytest.raises(NoReportError) as refused:
        read(content)
    assert str(refused.value).startswith(fault)


def test_texts_of_a_report_hide_and_command_nothing_and_have_an_end() -> None:
    content = json.loads(report_json.render(diagnoses.full()))
    content["subject"]["title"] = "a\x1b[2J\u202eb\ud800"
    content["subject"]["framework"] = {"\x9bk": "1" * 1_000_000}
    content["later"] = json.loads("[" * 900 + "]" * 900)  # an unknown field may be of any depth
    shown = read(content).subject
    assert shown.title == r"a\x1b[2J\u202eb\ud800"
    assert [key for key in shown.framework if "k" in key] == [r"\x9bk"]
    assert max(map(len, shown.framework.values())) <= BLOCK_LIMIT


def test_an_unknown_number_that_may_be_missing_is_none_before_it_is_stored() -> None:
    made = replace(diagnoses.full(), steps=replace(diagnoses.full().steps, median_ms=nan))
    assert finished(made).steps.median_ms is None
    assert read(write(made)).steps.median_ms is None
