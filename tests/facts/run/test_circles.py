"""Pipelines that take what they make, and long or doubled ones, end in time without a failed fact or rule."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.mutation.cases import write_intact
from scripts.mutation.originals import ON_CPU, originals
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnose.engine import examine
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.verdict import Errored

LONG = 3000


def stages(first: dict[str, Any], number: int, times: int, kind: str) -> list[dict[str, Any]]:
    """Return so many stages, each of which takes the next one so many times."""
    return [
        {**first, "id": at, "class": kind, "inputs": [at + 1] * times * (at < number - 1)} for at in range(number)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        lambda found: [{**one, "inputs": [one["id"]]} for one in found],
        lambda found: [{**one, "inputs": [found[at - 1]["id"]]} for at, one in enumerate(found)],
        lambda found: [{**one, "inputs": [other["id"] for other in found]} for one in found],
        lambda found: stages(found[0], LONG, 1, "RepeatDataset"),
        lambda found: stages(found[0], 60, 2, "RepeatDataset"),
        lambda found: stages(found[0], 60, 2, "ZipDataset"),
    ],
    ids=["itself", "circle", "all", "long", "doubled", "doubled-zip"],
)
def test_a_pipeline_of_any_shape_breaks_nothing(changed: Any, tmp_path: Path) -> None:
    original = next(one for one in originals() if one.name == ON_CPU)
    program = deepcopy(original.program)
    program["datasets"] = changed(program["datasets"])
    write_intact(tmp_path, replace(original, program=program))
    chart = chart_of(Recording.open(tmp_path))
    outcomes = [result.outcome for result in examine(chart, tuple(all_rules()))]
    assert [one.traceback for one in outcomes if isinstance(one, Errored)] == []
    assert not chart.defects


@pytest.mark.parametrize("kind", ["Identity", "AddV2", "Cast"])
def test_a_graph_in_circles_breaks_nothing(kind: str, tmp_path: Path) -> None:
    original = next(one for one in originals() if one.name == ON_CPU)
    program = deepcopy(original.program)
    for graph in program["graphs"]:
        number = len(graph["operations"])
        for at, one in enumerate(graph["operations"]):
            one |= {"from": [(at + 1) % number, (at + 2) % number], "type": kind}
    write_intact(tmp_path, replace(original, program=program))
    chart = chart_of(Recording.open(tmp_path))
    outcomes = [result.outcome for result in examine(chart, tuple(all_rules()))]
    assert [one.traceback for one in outcomes if isinstance(one, Errored)] == []
    assert not chart.defects
