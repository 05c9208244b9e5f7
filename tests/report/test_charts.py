"""The chart of the steps: what is written over its outliers."""

import json
from dataclasses import replace

import pytest

from tests.report import diagnoses
from tfdoctor.report.charts import charts


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
