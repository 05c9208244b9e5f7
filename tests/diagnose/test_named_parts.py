"""What one finding names, in operations of its own, is not named again."""

from pathlib import Path

import pytest

from tfdoctor.diagnose import engine
from tfdoctor.diagnose.accounts import unexplained
from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.facts.operations.step_parts import BatchNorms
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-float32-convnet"


@pytest.mark.parametrize("rule", ["unfused-batch-norm"])
def test_the_operations_of_a_layer_are_left_out_of_what_is_unexplained(rule: str) -> None:
    chart = chart_of(Recording.open(SAMPLE))
    results = engine.examine(chart, [one for one in all_rules() if one.name == rule])
    norms = chart.fact(BatchNorms).unfused
    names = {name for norm in norms for name in norm.names}
    left = unexplained(chart, results)
    assert len(names) > len(norms)
    assert left is not None
    assert names <= left.subjects
