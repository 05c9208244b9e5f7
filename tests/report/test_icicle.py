"""The icicle of the run: each box within the one above it."""

import json
from collections import defaultdict
from dataclasses import replace

from tests.report import diagnoses
from tfdoctor.diagnosis.work import PhaseLine, Profile, PythonPart
from tfdoctor.report import icicle
from tfdoctor.report.charts import charts
from tfdoctor.report.run.section import section
from tfdoctor.terms.verdict import Location


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


def test_a_line_of_the_step_contains_what_it_calls() -> None:
    lines = (
        PhaseLine(at=Location("train.py", 7), ms=3.0, calls="numpy.histogram", samples=30),
        PhaseLine(at=Location("train.py", 7), ms=1.0, samples=10),
        PhaseLine(at=None, ms=0.5, calls="a.b.c", samples=5),
    )
    shown = icicle.step_figure(Profile(python=(PythonPart(part="host", ms=5.0, lines=lines),)))
    assert shown is not None
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
    assert icicle.step_figure(Profile()) is None
