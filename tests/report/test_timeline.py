"""The timeline as paths and as data: nothing is lost, nothing grows."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report import diagnoses
from tfdoctor.diagnose.summary.timeline import TimelineWork, drawn
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.report.formats import html
from tfdoctor.report.pictures.timeline import caption, lanes, ticks
from tfdoctor.terms.json_form import as_json

RECTANGLE = re.compile(r"M(\d+) 0h(\d+)v14h-(\d+)z")

spans = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 10)), max_size=60).map(sorted)


def test_the_paths_show_each_part_where_it_was() -> None:
    names, words, paths = zip(*lanes(diagnoses.timeline()), strict=True)
    assert names == ("step", "input: .map(decode)", "operations", "")
    assert list(paths[0]) == ["input", "host", "device", "between"]
    assert paths[0]["input"] == "M0 0h829v14h-829z"
    assert words[0].startswith("step: input wait 83 %, host 1 %, device 15 %")
    assert "3 pieces of work" in caption(diagnoses.timeline()).lower().replace("three", "3")


@given(spans)
def test_rectangles_do_not_overlap_and_cover_all_bars(found: list[tuple[float, float]]) -> None:
    bars = tuple(TimelineWork(start, time, "device", "x") for start, time in found)
    ((_, _, paths),) = lanes(drawn(1, 50.0, [("a", bars)]))
    rectangles = [
        (int(start), int(start) + int(width))
        for path in paths.values()
        for start, width, back in RECTANGLE.findall(path)
        if width == back
    ]
    assert len(rectangles) <= 1000
    assert all(end < start for (_, end), (start, _) in pairwise(rectangles))
    for start, time in found:
        middle = 1000 * (start + time / 2) / 50.0
        assert any(low - 1 <= middle <= high + 1 for low, high in rectangles)


def test_the_contract_has_each_name_once() -> None:
    found = as_json(diagnoses.timeline())
    assert len(found["names"]) == len(set(found["names"]))
    assert found["lanes"][0]["bars"][0] == [0.0, 43100.0, PARTS.index("input"), 0, 1, 0]
    assert found["rules"][found["lanes"][1]["bars"][0][5]] == ["input-bound", "sequential-map"]
    assert found["lanes"][3]["bars"][0][4] == 17


def test_a_report_without_a_timeline_has_no_section() -> None:
    page = html.render_without_plotly(replace(diagnoses.full(), timeline=None))
    assert 'class="timeline"' not in page


@pytest.mark.parametrize(
    ("total_ms", "labels"),
    [
        (52.0, ["0", "10.0 ms", "20.0 ms", "30.0 ms", "40.0 ms"]),
        (1.0, ["0", "0.20 ms", "0.40 ms", "0.60 ms", "0.80 ms"]),
        (0.09, ["0", "0.02 ms", "0.04 ms", "0.06 ms"]),
    ],
)
def test_the_axis_has_round_times(total_ms: float, labels: list[str]) -> None:
    bars = (TimelineWork(0.0, total_ms, "device", "x"),)
    shown = drawn(1, total_ms, [("a", bars)])
    assert [label for _, label in ticks(shown)] == labels
