"""The charts: what is written over the steps' outliers, and that plotly knows every part of each."""

import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from tests.report import diagnoses, test_history
from tfdoctor.report.charts import charts
from tfdoctor.report.figures import Figure, figure_json
from tfdoctor.report.history.charts import charts as history_charts


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
