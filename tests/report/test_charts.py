"""The charts: what is written over outliers, boxes within boxes, text that can be read, parts that plotly knows."""

import json
from collections import defaultdict
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from tests.report import diagnoses, test_history
from tests.report.diagnoses import charts
from tfdoctor.diagnosis.work import Profile, PythonPart
from tfdoctor.report.history import charts as history_charts
from tfdoctor.report.pictures.figures import Figure, figure_json
from tfdoctor.report.pictures.palette import PART_COLOURS, SHARE_SCALE, ink, shade
from tfdoctor.report.run import PHASE_COLOURS
from tfdoctor.terms.run_time import PhaseLine
from tfdoctor.terms.verdict import Location


@pytest.mark.parametrize(
    ("outliers", "written"),
    [
        ({3: 429.0, 4: 990.0}, ["▲", "990 ms<br>▲"]),
        ({3: 429.0, 13: 990.0}, ["429 ms<br>▲", "990 ms<br>▲"]),
        (dict.fromkeys(range(0, 20, 4), 400.0), ["▲"] * 5),
    ],
)
def test_times_of_outliers_in_a_row_do_not_stand_over_each_other(
    outliers: dict[int, float], written: list[str]
) -> None:
    shown = diagnoses.full()
    rows = tuple(
        replace(shown.steps.rows[0], number=at, total_ms=outliers.get(at, 52.0), steady=at not in outliers)
        for at in range(20)
    )
    made = charts(replace(shown, steps=replace(shown.steps, rows=rows)))
    (steps,) = (one for one in made if one.name == "steps")
    notes = json.loads(steps.figure)["layout"]["annotations"]
    assert [note["text"] for note in notes] == written


def drawn() -> list[Figure]:
    shown = (diagnoses.full(), diagnoses.unexplained(), diagnoses.tried(), diagnoses.run())
    regressed = [figure for series in test_history.regressed().series for figure in history_charts(series, 1)]
    return [*(figure for one in shown for figure in charts(one)), *regressed]


def test_plotly_knows_every_part_of_a_figure() -> None:
    kinds = {trace.type for one in drawn() for trace in go.Figure(json.loads(one.figure)).data}  # else a ValueError
    assert kinds == {"bar", "treemap", "icicle", "scatter"}


def test_a_number_that_json_does_not_know_is_null() -> None:
    assert json.loads(figure_json([{"y": [1.0, float("nan"), float("inf")]}], {}))["data"] == [
        {"y": [1.0, None, None]}
    ]


def test_a_figure_can_stand_in_a_script_element() -> None:
    made = figure_json([{"text": "</script>"}], {})
    assert "<" not in made
    assert json.loads(made)["data"] == [{"text": "</script>"}]


@pytest.mark.parametrize(
    ("untraced_ms", "said"), [(None, "per step, by layer"), (20.0, "per step while it was traced, by")]
)
def test_times_of_operations_say_that_the_profiler_ran(untraced_ms: float | None, said: str) -> None:
    shown = diagnoses.full()
    made = charts(replace(shown, steps=replace(shown.steps, untraced_ms=untraced_ms)))
    assert said in next(one.description for one in made if one.name == "operations")


def test_boxes_are_within_their_parents_and_the_run_is_their_sum() -> None:
    drawn = json.loads(charts(diagnoses.run())[0].figure)["data"][0]
    ms = dict(zip(drawn["ids"], drawn["values"], strict=True))
    inside: dict[str, float] = defaultdict(float)
    for box, parent in zip(drawn["ids"], drawn["parents"], strict=True):
        inside[parent] += ms[box]
    for parent, total in inside.items():
        if parent:
            assert total <= ms[parent] * (1 + 1e-9), parent
    assert inside["run"] == ms["run"]
    assert len(set(drawn["ids"])) == len(drawn["ids"])
    assert "prepare.py:33" in drawn["labels"]


def test_it_comes_first_of_a_run_and_is_absent_without_lines() -> None:
    run = diagnoses.run()
    assert charts(run)[0].name == "account"
    assert run.run is not None
    bare = replace(run.run, rows=tuple(replace(row, lines=()) for row in run.run.rows))
    assert charts(replace(run, run=bare))[0].name == "steps"
    assert charts(diagnoses.full())[0].name == "steps"


def test_a_line_of_the_step_contains_what_it_calls() -> None:
    lines = (
        PhaseLine(at=Location("train.py", 7), ms=3.0, calls="numpy.histogram", samples=30),
        PhaseLine(at=Location("train.py", 7), ms=1.0, samples=10),
        PhaseLine(at=None, ms=0.5, calls="a.b.c", samples=5),
    )
    profile = Profile(python=(PythonPart(part="host", ms=5.0, lines=lines),))
    (shown,) = (one for one in charts(replace(diagnoses.full(), profile=profile)) if one.name == "python")
    drawn = json.loads(shown.figure)["data"][0]
    boxes = list(zip(drawn["parents"], drawn["labels"], drawn["values"], strict=True))
    assert boxes == [
        ("", "Python of a step", 5.0),
        ("step", "host", 5.0),
        ("host", "train.py:7", 4.0),
        ("host 0", "numpy.histogram", 3.0),
        ("host", "no line of the program", 0.5),
        ("host 1", "b.c", 0.5),
    ]
    assert shown.table.rows[1] == ("host", "train.py:7", "", "1.00 ms")


def test_a_step_without_samples_of_python_has_no_icicle() -> None:
    assert "python" not in [one.name for one in charts(replace(diagnoses.full(), profile=Profile()))]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "colour", sorted({*PART_COLOURS.values(), *PHASE_COLOURS.values(), *(shade(at / 20) for at in range(21))})
)
def test_text_on_every_colour_can_be_read(colour: str) -> None:
    dark, light = sorted((luminance(colour), luminance(ink(colour))))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_scale_has_its_own_colours_at_its_stops() -> None:
    assert [shade(at) for at, _ in SHARE_SCALE] == [colour for _, colour in SHARE_SCALE]
