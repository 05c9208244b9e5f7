"""The page as a file: complete, safe and small."""

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs_version

from tests.report import diagnoses
from tests.report.diagnoses import charts
from tfdoctor.report import template
from tfdoctor.report.formats import html
from tfdoctor.report.formats.json import MOST_OPERATIONS, contract
from tfdoctor.report.template import coded, to_html
from tfdoctor.stored.report import read

ASSETS = {"src", "href", "data", "action", "srcset", "poster"}


class Elements(HTMLParser):
    """The elements of a page, with their attributes and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        self._open = dict(attrs).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data


@pytest.fixture(scope="module", params=list(diagnoses.ALL))
def page(request: pytest.FixtureRequest) -> str:
    return html.render_without_plotly(diagnoses.ALL[request.param]())


def test_the_whole_page_is_under_two_megabytes() -> None:
    assert len(html.render(diagnoses.full()).encode()) < 2_000_000


def test_a_page_without_pictures_carries_no_plotly() -> None:
    assert len(html.render(diagnoses.no_steps()).encode()) < 40_000


def test_a_page_of_many_operations_stays_an_attachment() -> None:
    page = html.render(diagnoses.huge())
    assert len(page.encode()) < 2_500_000
    content = json.loads(Elements(page).texts["diagnosis"])
    assert len(content["operations"]) == MOST_OPERATIONS
    assert content["operations_omitted"] == 3000 - MOST_OPERATIONS
    assert len(contract(diagnoses.huge())["operations"]) == 3000
    again = contract(read(content))
    assert again["operations_omitted"] == content["operations_omitted"]


def test_it_is_the_same_every_time() -> None:
    assert html.render(diagnoses.full()) == html.render(diagnoses.full())


def test_every_address_is_inside_the_page(page: str) -> None:
    """Only links for the reader to follow lead out."""
    for tag, attributes in Elements(page).found:
        for name in ASSETS & attributes.keys():
            outward = tag == "a" and attributes[name].startswith("https://")
            assert outward or attributes[name].startswith("#"), (tag, attributes)


def test_every_link_within_the_page_has_its_target(page: str) -> None:
    found = Elements(page).found
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = {a["href"][1:] for tag, a in found if tag == "a" and a["href"].startswith("#")}
    named = {a[key] for _, a in found for key in ("aria-labelledby", "data-figure") if key in a}
    assert inner | named <= set(ids)


def test_hostile_text_adds_no_element_and_no_handler() -> None:
    found = Elements(html.render_without_plotly(diagnoses.hostile())).found
    assert "img" not in {tag for tag, _ in found}
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    scripts = [attributes.get("type", "") for tag, attributes in found if tag == "script"]
    assert scripts.count("") == 1


def test_the_contract_stands_in_the_page(page: str) -> None:
    shown = json.loads(Elements(page).texts["diagnosis"])
    assert shown["schema"] == 1


def test_headings_are_in_order(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Elements(page).found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_have_captions_and_scopes(page: str) -> None:
    found = Elements(page).found
    tags = [tag for tag, _ in found]
    assert tags.count("table") == tags.count("caption")
    assert all("scope" in attributes for tag, attributes in found if tag == "th")


def test_the_policy_allows_our_script_only(page: str) -> None:
    policy = next(a["content"] for tag, a in Elements(page).found if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy.lower().replace("http-equiv", "")


def test_plotly_survives_its_packing() -> None:
    packed = template.plotly()
    assert not set(packed) - set(template.ALPHABET)
    assert "<" not in packed
    script = gzip.decompress(base64.b85decode(packed.replace(",", "<"))).decode()
    assert script.startswith(f"/*! plotly.js {get_plotlyjs_version().split('.')[0]}.")


def test_a_page_is_smaller_than_a_megabyte() -> None:
    assert len(html.render(diagnoses.full()).encode()) < 1_000_000


@given(st.binary(max_size=40))
def test_base_85_is_that_of_the_standard_library(data: bytes) -> None:
    assert template.base_85(data) == base64.b85encode(data).decode().replace("<", ",")


def test_only_figures_with_data_are_drawn() -> None:
    assert [chart.name for chart in charts(diagnoses.full())] == ["steps", "pipeline", "operations", "roofline"]
    assert charts(diagnoses.no_steps()) == ()


def test_plotly_gets_no_markup_from_names() -> None:
    for chart in charts(diagnoses.hostile()):
        assert "<img" not in chart.figure
        assert "<b>" not in chart.figure


def test_smaller_operations_are_drawn_together_and_all_listed() -> None:
    chart = charts(diagnoses.huge())[2]
    assert "2,900 smaller operations" in chart.figure
    assert len(chart.table.rows) == 3000


def test_a_sentence_shows_code_between_backticks_and_no_markup() -> None:
    assert coded("run `a <b>` & c") == "run <code>a &lt;b&gt;</code> &amp; c"
    assert coded("one ` <i>") == "one ` &lt;i&gt;"


def test_numbers_that_are_none_are_not_drawn() -> None:
    for chart in charts(diagnoses.unknown_numbers()):
        assert "NaN" not in chart.figure
        assert "Infinity" not in chart.figure


def test_prose_is_text_code_and_links_to_https() -> None:
    shown = to_html("a `b` [c](https://d.test) [e](javascript:x) <img src=x> ![f](https://g.test/h.png)")
    assert "<code>b</code>" in shown
    assert '<a href="https://d.test">c</a>' in shown
    assert "<img" not in shown
    assert 'href="javascript' not in shown


def test_a_timeline_without_marked_work_links_no_finding() -> None:
    """As in an edited report: the rules that it names are those of its bars."""
    full = diagnoses.full()
    assert full.timeline is not None
    assert 'aria-label="Findings about work of this step"' in html.render_without_plotly(full)
    unmarked = tuple(  # as in reports of before bars had rules
        replace(lane, bars=tuple(bar._replace(rules=-1) for bar in lane.bars)) for lane in full.timeline.lanes
    )
    for lanes in ((), unmarked):
        other = replace(full, timeline=replace(full.timeline, rules=((), ("input-bound",)), lanes=lanes))
        assert 'aria-label="Findings about work of this step"' not in html.render_without_plotly(other)
