"""What a page holds in which order: its verdict, its entries and their sums."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnose.kit import chart_of, effects, part, states, times
from tests.report import diagnoses
from tests.report.diagnoses import told
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnose.order import order
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import Takes
from tfdoctor.diagnosis.step import PARTS, StepsSummary
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import PipelineSegment
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import PARTS as EXPOSED
from tfdoctor.recording import Recording
from tfdoctor.report import findings, sections, sentences, terminal, words
from tfdoctor.report.formats import html, json, md
from tfdoctor.report.page import page, prospects
from tfdoctor.report.pictures.palette import PART_COLOURS
from tfdoctor.report.pictures.step_bars import step_bars
from tfdoctor.report.words import PART_LABELS
from tfdoctor.rules import all_rules
from tfdoctor.terms.humanize import counted, milliseconds, place
from tfdoctor.terms.kinds import DeviceKind, RunCall, StepSource
from tfdoctor.terms.units import ratio
from tfdoctor.terms.verdict import Bound, Concern, Edit, Effect, Finding, Location, Measure, Remedy, Stage


def verdict(diagnosis: Diagnosis) -> str:
    shown = page(diagnosis)
    return " ".join((*shown.verdict, *shown.remarks))


def with_steps(**changes: Any) -> Diagnosis:
    full = diagnoses.full()
    return replace(full, steps=replace(full.steps, **changes))


def with_together(**changes: Any) -> Diagnosis:
    full = diagnoses.full()
    assert full.together
    return replace(full, together=replace(full.together, **changes))


def test_the_verdict_says_what_a_step_takes_and_what_changes_it() -> None:
    assert verdict(diagnoses.full()) == (
        "Each step takes 52.0 ms, including 43.1 ms waiting for input. "
        "Three changes would reduce it to about 9 ms (5.8×)."  # noqa: RUF001 - as it is shown
    )


def test_the_headline_is_two_sentences_about_the_untraced_step() -> None:
    full = diagnoses.full()
    assert len(page(diagnoses.run()).verdict) == len(page(diagnoses.unexplained()).verdict) == 2
    outside, near = (
        replace(full, conditions=replace(full.conditions, untraced_ms=untraced)) for untraced in (40.0, 51.0)
    )
    first, second = page(outside).verdict
    assert first == "Each step takes 40.0 ms (52.0 ms while it was traced), 83 % of it waiting for input."
    assert second.startswith("Three changes would make it about 83 % shorter")
    assert page(near).verdict == page(full).verdict


def test_what_was_measured_stands_before_what_was_predicted() -> None:
    shown = page(diagnoses.tried())
    assert shown.verdict[1].startswith("Measured: ")
    assert "would reduce it to" in " ".join(shown.remarks)


def test_a_ceiling_is_called_one_and_an_impossible_total_is_not_shown() -> None:
    assert "reduce it to 9 ms at best" in verdict(with_together(bound=Bound.AT_MOST))
    assert "reduce it to" not in verdict(with_together(ms_per_step=60.0))


def test_outliers_that_raise_the_mean_are_stated_and_no_factor_of_typical_steps() -> None:
    said = verdict(with_steps(mean_ms=90.0))
    start = "A typical step takes 52.0 ms, including 43.1 ms waiting for input; two outliers in "
    assert said.startswith(start)
    assert "so the mean is 90.0 ms." in said
    assert "would reduce typical steps to about 9 ms." in said


def test_stalled_steps_are_part_of_the_mean_that_the_verdict_is_about() -> None:
    said = verdict(with_steps(stalled=2, step_ms=90.0, mean_ms=95.0))
    assert said.startswith("On average, a step takes 90.0 ms, including 43.1 ms waiting for input; 2 of ")
    assert "steps wait long for input, the median step takes 52.0 ms" in said
    assert "so the mean is" not in said


def test_the_cause_of_long_steps_comes_before_the_saving_of_typical_ones() -> None:
    mixed = with_steps(mean_ms=90.0)
    outcome = mixed.results[0].outcome
    assert isinstance(outcome, Finding)
    compiled = replace(mixed.results[0], outcome=replace(outcome, concern=Concern.LONG_STEPS), saving=None)
    shown = page(replace(mixed, results=(*mixed.results, compiled)))
    assert shown.verdict[1] == outcome.summary
    assert "Three changes would reduce typical steps" in " ".join(shown.remarks)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mean_ms": 64.9}, "Each step takes 52.0 ms, including 43.1 ms"),  # near the median: not stated
        ({"mean_ms": None}, "Each step takes 52.0 ms, including 43.1 ms"),
        ({"breakdown_ms": {"device": 52.0}}, "Each step takes 52.0 ms, all computing. "),
        ({"breakdown_ms": {}}, "Each step takes 52.0 ms. "),
        *(
            ({"breakdown_ms": {part: 40.0, "input": 12.0}}, f"Each step takes 52.0 ms, including 40.0 ms {words}.")
            for part, words in (
                ("transfer", "copying between host and device"),
                ("host", "in Python and op dispatch on the host"),
                ("device", "computing"),
                ("collective", "in collectives"),
                ("between", "between steps"),
                ("unknown", "unaccounted for"),
            )
        ),
    ],
)
def test_a_step_is_told_with_its_largest_part(changes: dict[str, Any], said: str) -> None:
    assert f"{verdict(with_steps(**changes))} ".startswith(said)
    assert bool(words.segments(with_steps(**changes).steps)) is (changes != {"breakdown_ms": {}})


def test_a_run_without_accelerators_has_no_time_of_theirs() -> None:
    full = diagnoses.full()
    subject = replace(full.subject, device=DeviceKind.CPU)
    on_cpu = replace(full, subject=subject, device_time=(), device_time_missing="the run used no GPU")
    assert sections.device_time(on_cpu) is None
    assert "GPU time" not in html.render_without_plotly(on_cpu)


def test_device_times_without_steps_are_not_called_per_step() -> None:
    full = diagnoses.full()
    without = replace(full, steps=StepsSummary(source=StepSource.NONE, missing="no marker"))
    tpu = replace(without, subject=replace(full.subject, device=DeviceKind.TPU))
    shown = [sections.device_time(one) for one in (full, without, tpu)]
    titles = ["GPU time per step", "GPU time in the whole trace", "TPU time per program run"]
    assert [one[0] for one in shown if one] == titles


def test_the_words_beside_a_number_are_whole() -> None:
    label = (
        "bfloat16 time relative to float32 (median of benchmarks/precision.py on an AMD EPYC with avx512_bf16, "
        "TensorFlow 2.21; with constant weights 0.47 (0.44 to 0.59 in eight shapes, 2026-11-23))"
    )
    shown = replace(diagnoses.full(), model=(Measure(label, ratio(0.6)),))
    assert md.escaped(label) in md.render(shown)


def test_a_single_step_is_not_each_step() -> None:
    assert page(diagnoses.single_step()).verdict[0].startswith("The only recorded step took 52.0 ms")
    assert not any("p10" in reason for reason in sentences.trust(diagnoses.single_step()))


def test_no_steps_says_why_and_claims_no_health() -> None:
    assert verdict(diagnoses.no_steps()) == (
        "No training step found: the trace contains no step marker and no repeated call. "
        "The health of the run is unknown: two rules not checked."
    )


def test_healthy_counts_what_was_and_was_not_checked() -> None:
    assert " ".join(prospects(diagnoses.healthy())) == (
        "No rule found a change to make: two rules healthy, one rule not checked. "
        "Most of a step takes Conv2D: 2.40 ms (5 %), at 83 % of what this hardware allows."
    )


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_no_report_says_that_nothing_can_change(kind: str) -> None:
    """Rules look for known faults: what takes the time may have another."""
    diagnosis = diagnoses.ALL[kind]()
    assert "nothing to change" not in " ".join((verdict(diagnosis), md.render(diagnosis))).lower()


def test_without_steps_no_speed_is_claimed() -> None:
    shown = verdict(replace(diagnoses.no_steps(), results=diagnoses.healthy().results[:2]))
    assert "The speed of the run is unknown: two rules healthy" in shown


def test_few_checks_are_no_bill_of_health() -> None:
    results = (diagnoses.healthy().results[0], *diagnoses.no_steps().results)
    said = page(replace(diagnoses.healthy(), results=results)).verdict[1]
    assert said.startswith(
        "It is mostly unknown whether less is possible: one rule healthy, two rules not checked."
    )


def test_a_part_without_a_finding_has_its_account_and_is_no_health() -> None:
    """The largest comes first."""
    most, less = sentences.unknown(diagnoses.unexplained())
    assert most == "6.90 ms of each step are host time without a finding."
    assert less.startswith("2.30 ms of each step are compute time")
    (_, _, told), _ = words.accounts(diagnoses.unexplained())
    assert told.startswith("6.90 ms without a finding. ")
    assert "Python at train.py:41 (62 % of the stack samples)" in told


def test_parts_that_findings_name_need_no_line() -> None:
    said = "Matmuls run at 71 % of the rate that this GPU reaches."
    assert words.accounts(diagnoses.full()) == [("device", "device", said)]


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "of the traced step are"), (2, "of each of the two traced steps are"), (3, "of each step are")],
)
def test_few_steps_are_not_called_each_step(number: int, said: str) -> None:
    base = diagnoses.unexplained()
    rows = base.steps.rows[:number]
    few = replace(base, steps=replace(base.steps, rows=rows, count=number))
    assert said in " ".join(sentences.unknown(few))
    assert ("ach step" in verdict(few)) is (number > 2)


def test_a_crash_is_no_health() -> None:
    assert "The health of the run is unknown" in verdict(diagnoses.ALL["errored"]())


def test_findings_without_a_total_name_the_best() -> None:
    alone = replace(diagnoses.full(), together=None)
    assert verdict(alone).endswith("Four problems found; the largest saving is 41.5 ms (80 %) of each step.")
    unpriced = replace(alone, results=tuple(replace(result, saving=None) for result in alone.results))
    assert verdict(unpriced).endswith("Four problems found; the saving could not be computed.")


def test_a_finding_of_a_general_rule_is_a_problem_with_its_time() -> None:
    general = replace(diagnoses.rule("hot-operation", Topic.OPERATIONS), general=True)
    takes = replace(diagnoses.full().results[0], rule=general, saving=None, takes=Takes(1.3, 0.13))
    healthy = diagnoses.healthy()
    said = verdict(replace(healthy, results=(*healthy.results, takes)))
    assert "One problem found; the largest takes 1.30 ms (13 %)" in said
    assert "No rule found a change" not in said


def test_a_poor_recording_is_no_fault_of_the_run() -> None:
    rule = diagnoses.rule("doubtful-recording", Topic.RECORDING)
    fault = diagnoses.full().results[0]
    poor = replace(fault, rule=rule, outcome=rule.counted(fault.outcome))
    healthy = diagnoses.healthy()
    shown = page(replace(healthy, results=(poor, *healthy.results)))
    assert shown.verdict == page(healthy).verdict
    assert not shown.entries


def test_fixes_say_what_where_and_how_much() -> None:
    full = diagnoses.full()
    shown = [
        (findings.what(one.result), place(one.result.place), findings.saving(one, full)[0], findings.severity(one))
        for one in page(full).entries
    ]
    precision = "Compute in bfloat16, keep the variables in float32"
    assert shown == [
        ("Run decode on several threads", "train.py:41", "41.5 ms (80 %)", "critical"),
        ("Print every 100 steps", "callbacks/printer.py:7", "at most 0.40 ms (<1 %)", "note"),
        (precision, "train.py:12", "nothing until input-bound is fixed", "note"),
        ("Train on all of them", "train.py:55", "", "warning"),
    ]


def test_a_place_is_taken_from_the_evidence_when_no_remedy_has_one() -> None:
    assert place(page(diagnoses.huge()).entries[0].result.place) == "model.py:0"


def test_the_bar_has_the_parts_in_order_and_skips_empty_ones() -> None:
    segments = words.segments(diagnoses.full().steps)
    assert [part for part, *_ in segments] == ["input", "host", "device", "between", "unknown"]
    assert sum(fraction for *_, fraction in segments) == pytest.approx(1)


def test_every_part_has_a_label_and_a_colour() -> None:
    assert set(PARTS) == set(PART_LABELS) == set(PART_COLOURS)


def test_calls_of_several_steps_are_counted_as_steps() -> None:
    assert sentences.trust(with_steps(count=200))[0].startswith("200 steps traced")


def test_an_exit_code_lowers_nothing_silently() -> None:
    assert "The run ended with exit code 3." in sentences.trust(diagnoses.hostile())


def test_unknown_steps_give_no_spread() -> None:
    bare = replace(diagnoses.full(), steps=StepsSummary(source=StepSource.NONE))
    assert page(bare).verdict[0] == "No training step found."


def slowed() -> Diagnosis:
    """Return a report about the step without the profiler's cost: 30 of the 53.9 ms that were traced."""
    base = diagnoses.full()
    assert base.together is not None
    parts = {"input": 18.0, "device": 12.0}
    steps = replace(base.steps, untraced_ms=30.0, untraced_breakdown_ms=parts)
    return replace(base, steps=steps, together=replace(base.together, ms_per_step=20.0))


def test_a_slowed_report_is_about_the_step_without_the_cost_of_tracing() -> None:
    said = verdict(slowed())
    assert "takes 30.0 ms (" in said
    assert "ms while it was traced), including 18.0 ms waiting for input" in said
    assert "to about 10 ms (3.0\N{MULTIPLICATION SIGN})" in said
    assert [time for _, time, *_ in words.segments(slowed().steps)] == ["18.0 ms", "12.0 ms"]
    assert any(sentence.startswith("Traced steps took") for sentence in sentences.trust(slowed()))


@pytest.mark.parametrize("count", [1, 2])
def test_a_few_slowed_steps_are_not_called_each_step(count: int) -> None:
    steps = replace(slowed().steps, count=count, rows=slowed().steps.rows[:count])
    assert "Without tracing, a step takes 30.0 ms (" in verdict(replace(slowed(), steps=steps))


def test_what_was_traced_is_said_beside_bars_without_the_profilers_cost() -> None:
    told = [words.accounts(one)[0][2] for one in (diagnoses.full(), with_steps(untraced_ms=30.0))]
    assert told == [f"{diagnoses.RATE}.", f"{diagnoses.RATE}. These are times of traced steps."]


FIRST = Remedy("choose 32 in a", at=Location("train.py", 3))
INSTEAD = Remedy("Or train in bfloat16", at=Location("train.py", 9))


@pytest.mark.parametrize(
    ("alike", "more"), [(0, ""), (1, ", and one more change"), (7, ", and seven more changes")]
)
def test_a_title_counts_the_changes_that_its_saving_is_of(alike: int, more: str) -> None:
    found = Finding(summary="Padding", evidence=(), remedies=(FIRST, INSTEAD), alike=alike)
    assert findings.what(Result(rule=diagnoses.rule("padding"), outcome=found)) == f"Choose 32 in a{more}"


def test_a_finding_without_a_remedy_is_called_by_its_summary() -> None:
    found = Finding(summary="Padding", evidence=(), remedies=())
    assert findings.what(Result(rule=diagnoses.rule("padding"), outcome=found)) == "Padding."


# One entry for each cause


def named(diagnosis: Diagnosis) -> list[tuple[str, list[str], list[str]]]:
    def names(results: Iterable[Result]) -> list[str]:
        return [result.rule.name for result in results]

    return [(one.result.rule.name, names(one.symptoms), names(one.same)) for one in diagnosis.entries]


def test_a_symptom_is_told_with_its_cause_and_one_edit_is_one_entry() -> None:
    assert named(diagnoses.caused())[0] == ("sequential-map", ["input-bound"], ["hot-stage"])
    assert len(diagnoses.caused().entries) == len(diagnoses.full().entries)


def test_findings_without_relations_are_entries_of_their_own() -> None:
    names = [name for name, symptoms, same in named(diagnoses.full()) if not symptoms + same]
    assert names == ["input-bound", "between-steps", "float32-matmul", "idle-device"]


@pytest.mark.parametrize(
    ("ms", "names"),
    [
        # Trap: 41.5 ms of wait must not vanish behind a cause of 5 ms.
        (5.0, [("input-bound", [], []), ("sequential-map", [], ["hot-stage"])]),
        (None, [("sequential-map", ["input-bound"], ["hot-stage"])]),
    ],
)
def test_a_symptom_keeps_its_entry_where_its_causes_are_known_to_explain_little(
    ms: float | None, names: list[tuple[str, list[str], list[str]]]
) -> None:
    base = diagnoses.caused()
    symptom, *causes = base.results[:3]
    assert symptom.saving
    saving = replace(symptom.saving, ms_per_step=ms) if ms else None
    weaker = [replace(cause, saving=saving) for cause in causes]
    assert named(replace(base, results=(symptom, *weaker, *base.results[3:])))[: len(names)] == names


def test_a_general_cause_has_not_the_saving_of_a_symptom_that_a_specific_one_explains() -> None:
    """A stage beside the slow one would stand first, with all of the wait as its saving."""
    base = diagnoses.caused()
    symptom, specific, general = base.results[:3]
    assert isinstance(general.outcome, Finding)
    less = replace(general.outcome, remedies=(Remedy("Let it handle less"),))
    rule = replace(general.rule, general=True)
    general = replace(general, rule=rule, saving=None, takes=Takes(12.0, 0.23), outcome=less)
    found = replace(base, results=(symptom, general, specific))
    causes = {name: symptoms for name, symptoms, _ in named(found)}
    assert causes == {"sequential-map": ["input-bound"], "hot-stage": []}
    assert {one.result.rule.name for one in found.entries if one.priced.saving} == {"sequential-map"}


@pytest.mark.parametrize(("time", "told"), [(22.0, True), (21.0, False)])
def test_two_ceilings_of_one_stage_are_one_entry(time: float, *, told: bool) -> None:
    """A general rule names the stage that steps wait for, and states its time; its saving is that of the wait."""
    base = diagnoses.caused()
    symptom, *_, general = base.results[:3]
    rule = replace(general.rule, general=True)
    general = replace(general, rule=rule, saving=None, takes=Takes(time, time / 52.0))
    effect = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    assert isinstance(symptom.outcome, Finding)
    symptom = replace(symptom, outcome=replace(symptom.outcome, effects=(effect,)))
    both = replace(base, results=(symptom, general))
    assert len(both.entries) == (1 if told else 2)
    first = page(both).fixes[0]
    assert first.result.rule.name == ("hot-stage" if told else "input-bound")
    assert findings.saving(first, both) == ("41.5 ms (80 %)", "")
    assert findings.severity(first) == "critical"


def test_edits_that_differ_are_entries_of_their_own() -> None:
    base, at = diagnoses.caused(), Location("train.py", 41)
    symptom, *causes = base.results[:3]
    edited = [diagnoses.edited(one, Edit(at, "x", new)) for one, new in zip(causes, "yz", strict=True)]
    names = named(replace(base, results=(symptom, *edited)))
    assert names == [("sequential-map", ["input-bound"], []), ("hot-stage", ["input-bound"], [])]


def test_the_ceiling_is_no_sentence_where_the_symptom_is_told_with_its_cause() -> None:
    assert not any("upper bound" in sentence for sentence in page(diagnoses.caused()).order)


def test_every_format_names_the_rules_of_an_entry() -> None:
    diagnosis = diagnoses.caused()
    words = "sequential-map, a cause of input-bound, also hot-stage"
    assert words in " ".join(terminal.render(diagnosis, width=100, color=False).split())
    assert "`sequential-map`, a cause of input-bound, also hot-stage" in md.render(diagnosis)
    text = html.render_without_plotly(diagnosis)
    finding = text.split('<article id="finding-1"')[1].split("</article>")[0]
    assert "The same change is advised by <code>hot-stage</code>" in finding
    assert "Evidence of input-bound" in finding
    assert 'id="finding-5"' not in text


def test_findings_about_the_same_calls_of_the_step_and_of_the_run_are_one_entry() -> None:
    base = diagnoses.full()
    about = ((RunCall.PREDICT, 30), (RunCall.PREDICT, 30), (RunCall.PREDICT, 31), (RunCall.SAVE, 30))
    results = tuple(_about(result, *own) for result, own in zip(base.results, about, strict=False))
    found = named(replace(base, results=results, order=None))
    assert [same for _, _, same in found] == [[results[1].rule.name], [], []]


def _about(result: Result, call: RunCall, line: int) -> Result:
    assert isinstance(result.outcome, Finding)
    remedy = replace(result.outcome.remedies[0], at=Location("train.py", line))
    outcome = replace(result.outcome, about=call, remedies=(remedy,))
    return replace(result, outcome=outcome)


# One sum everywhere


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
    model, results = chart.fact(StepModel), engine.examine(chart, rules)
    steps = replace(diagnoses.steps(20), median_ms=model.step_ms, breakdown_ms=dict(model.exposed), step_ms=None)
    together = savings.together(chart, results)
    return replace(diagnoses.full(), steps=steps, results=results, order=order(chart, results), together=together)


@given(
    parts=st.fixed_dictionaries({str(one): times for one in EXPOSED}),
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
    shown = " ".join(terminal.render(diagnosis, width=120, color=False).split())
    for text in (md.render(diagnosis), html.render_without_plotly(diagnosis), shown):
        assert words in text
    entry = json.contract(diagnosis)["entries"][1]
    names = {"rule": "some", "symptoms": [], "same": []}
    assert entry == names | {"in_together": False, "included_in": ["whole"]}


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
