"""What a page holds in which order: its verdict, its entries and their sums."""

from tests.report.kit import *
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.report import sections, words
from tfdoctor.report.page import page


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


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_no_report_says_that_nothing_can_change(kind: str) -> None:
    """Rules look for known faults: what takes the time may have another."""
    diagnosis = diagnoses.ALL[kind]()
    assert "nothing to change" not in " ".join((*page(diagnosis).verdict, md.render(diagnosis))).lower()


def test_a_poor_recording_is_no_fault_of_the_run() -> None:
    rule, fault = diagnoses.rule("doubtful-recording", Topic.RECORDING), diagnoses.full().results[0]
    poor = replace(fault, rule=rule, outcome=rule.counted(fault.outcome))
    assert not page(replace(diagnoses.healthy(), results=(poor, *diagnoses.healthy().results))).entries


def test_a_place_is_taken_from_the_evidence_when_no_remedy_has_one() -> None:
    assert place(page(diagnoses.huge()).entries[0].result.place) == "model.py:0"


def test_the_bar_has_the_parts_in_order_and_skips_empty_ones() -> None:
    segments = words.segments(diagnoses.full().steps)
    assert [part for part, *_ in segments] == ["input", "host", "device", "between", "unknown"]
    assert sum(fraction for *_, fraction in segments) == pytest.approx(1)


def test_every_part_has_a_label_and_a_colour() -> None:
    assert set(PARTS) == set(PART_LABELS) == set(PART_COLOURS)


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


def shortens(entry: Entry) -> bool:
    saving = entry.result.saving
    return saving is not None and saving.ms_per_step > 0


def agree(diagnosis: Diagnosis) -> None:
    """Compare the sum of the verdict with the list, the predicted bar and the contract."""
    found, together = diagnosis.entries, diagnosis.together
    counts = [entry for entry in found if entry.in_sum]
    contract = json_format.contract(diagnosis)
    assert [one["in_together"] for one in contract["entries"]] == [e.in_sum for e in found]
    if together is None:
        assert not counts
        return
    named = set().union(*(entry.names for entry in counts))
    assert set(together.rules) <= named
    assert all(entry.names & set(together.rules) for entry in counts)
    assert all(bool(e.included_in) is (shortens(e) and not e.in_sum) for e in found)
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
    entry = json_format.contract(diagnosis)["entries"][1]
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
