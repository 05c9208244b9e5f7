"""The icicle of the run: each box within the one above it."""

import json
from collections import defaultdict
from dataclasses import replace

from tests.report import diagnoses
from tfdoctor.report import icicle
from tfdoctor.report.charts import charts
from tfdoctor.report.run.section import section


def test_boxes_are_within_their_parents_and_the_run_is_their_sum() -> None:
    shown = icicle.figure(section(diagnoses.run().run))
    assert shown is not None
    drawn = json.loads(shown.figure)["data"][0]
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
    assert icicle.figure(section(bare)) is None
    assert charts(diagnoses.full())[0].name == "steps"
