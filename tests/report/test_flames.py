"""The icicle of the run: each box within the one above it."""

import json
from collections import defaultdict
from dataclasses import replace

from tests.report import diagnoses
from tfdoctor.report.charts import charts
from tfdoctor.report.run import flames
from tfdoctor.report.run.section import section


def test_boxes_are_within_their_parents_and_the_run_is_their_sum() -> None:
    shown = flames.figure(section(diagnoses.run().run))
    assert shown is not None
    icicle = json.loads(shown.figure)["data"][0]
    ms = dict(zip(icicle["ids"], icicle["values"], strict=True))
    inside: dict[str, float] = defaultdict(float)
    for box, parent in zip(icicle["ids"], icicle["parents"], strict=True):
        inside[parent] += ms[box]
    for parent, total in inside.items():
        if parent:
            assert total <= ms[parent] * (1 + 1e-9), parent
    assert inside["run"] == ms["run"]
    assert len(set(icicle["ids"])) == len(icicle["ids"])
    assert "prepare.py:33" in icicle["labels"]


def test_it_comes_first_of_a_run_and_is_absent_without_lines() -> None:
    run = diagnoses.run()
    assert charts(run)[0].name == "account"
    assert run.run is not None
    bare = replace(run.run, rows=tuple(replace(row, lines=()) for row in run.run.rows))
    assert flames.figure(section(bare)) is None
    assert charts(diagnoses.full())[0].name == "steps"
