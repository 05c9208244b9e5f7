"""One sum everywhere: the verdict counts the changes of the list that the predicted step has."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnose.test_engine import chart_of, effects, part, states, times
from tests.report import diagnoses
from tests.report.diagnoses import told
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnose.order import order
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import PipelineSegment
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import PARTS
from tfdoctor.recording import Recording
from tfdoctor.report import terminal
from tfdoctor.report.formats import html, json, md
from tfdoctor.report.pictures.step_bars import step_bars
from tfdoctor.rules import all_rules
from tfdoctor.terms.humanize import counted, milliseconds
from tfdoctor.terms.verdict import Bound, Effect, Stage

SAMPLES = sorted(path for path in (Path(__file__).parents[2] / "sample_traces").iterdir() if path.is_dir())
SUM = " would reduce "


def saves(entry: Entry) -> bool:
    saving = entry.result.saving
    return saving is not None and saving.ms_per_step > 0


def agree(diagnosis: Diagnosis) -> None:
    """Compare the sum of the verdict with the list, the predicted bar and the contract."""
    found, together = diagnosis.entries, diagnosis.together
    counts = [entry for entry in found if entry.in_sum]
    contract = json.contract(diagnosis)
    assert [one["in_together"] for one in contract["entries"]] == [e.in_sum for e in found]
    if together is None:
        assert not counts
        return
    named = set().union(*(entry.names for entry in counts))
    assert set(together.rules) <= named
    assert all(entry.names & set(together.rules) for entry in counts)
    assert all(bool(e.included_in) is (saves(e) and not e.in_sum) for e in found)
    said = told(diagnosis)[-1]
    if SUM in said:
        assert counted(len(counts), "change").capitalize() + SUM in said
        predicted = next(bar for bar in step_bars(diagnosis) if bar.label == "predicted")
        after = (diagnosis.steps.shown_ms or 0.0) - together.ms_per_step
        assert predicted.time.removesuffix(" at best") == milliseconds(after)


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_the_verdict_counts_the_changes_of_its_sum_in_the_samples(folder: Path) -> None:
    agree(diagnose(Recording.open(folder), all_rules(), folder.name, ask_xprof=False))


def made(chart: Chart, *rules: Rule) -> Diagnosis:
    """A report on these findings alone, of the step of the chart."""
    step = chart.fact(StepModel).step_ms
    results = engine.examine(chart, rules)
    exposed = dict(chart.fact(StepModel).exposed)
    steps = replace(diagnoses.steps(20), median_ms=step, breakdown_ms=exposed, step_ms=None)
    return replace(
        diagnoses.full(),
        steps=steps,
        results=results,
        order=order(chart, results),
        together=savings.together(chart, results),
    )


@given(
    parts=st.fixed_dictionaries({str(one): times for one in PARTS}),
    ahead=times,
    stated=st.lists(st.lists(effects, min_size=1, max_size=2), min_size=1, max_size=5),
)
def test_the_verdict_counts_the_changes_of_its_sum(
    parts: dict[str, float], ahead: float, stated: list[list[Effect]]
) -> None:
    chart = chart_of(PipelineSegment({"map": ahead}, overlapped=True), **{**parts, "unknown": 1.0})
    agree(made(chart, *(states(f"rule-{n}", *mine) for n, mine in enumerate(stated))))


def of_which_one_includes_the_other() -> Diagnosis:
    """Removing 40 of 100 ms of an operation includes 15 of it: the sum has one change."""
    whole, some = part(40, "conv"), part(15, "conv", bound=Bound.AT_MOST)
    return made(chart_of(device=100.0), states("whole", replace(whole, of=part(40).of)), states("some", some))


def test_a_saving_outside_of_the_sum_says_what_includes_it() -> None:
    diagnosis = of_which_one_includes_the_other()
    assert "One change would reduce it to about 60 ms" in told(diagnosis)[-1]
    words = "at most 15.0 ms (15 %), included in whole"
    assert words in md.render(diagnosis)
    assert words in html.render_without_plotly(diagnosis)
    assert words in " ".join(terminal.render(diagnosis, width=120, color=False).split())
    assert json.contract(diagnosis)["entries"][1] == {
        "rule": "some",
        "symptoms": [],
        "same": [],
        "in_together": False,
        "included_in": ["whole"],
    }


def test_a_symptom_that_listed_causes_explain_is_no_part_of_the_sum() -> None:
    """The wait is no change of its own: the sum is what the listed causes give."""
    chart = chart_of(PipelineSegment({"map": 90.0}, overlapped=True), input=70.0, device=30.0)
    waits = states("waits", Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST))
    decode = states("decode", Effect(Stage.INPUT, 0.5, "map", bound=Bound.AT_MOST), part(10, "op"))
    files = states("files", Effect(Stage.INPUT, 0.2, "map", bound=Bound.AT_MOST))
    diagnosis = made(chart, waits, decode, files)
    assert diagnosis.together is not None
    assert set(diagnosis.together.rules) == {"decode", "files"}
    assert all(entry.in_sum for entry in diagnosis.entries)
    listed = [r.saving.ms_per_step for r in diagnosis.results if r.rule.name != "waits" and r.saving]
    assert diagnosis.together.ms_per_step <= sum(listed)
    agree(diagnosis)
