"""What a page holds in which order: its verdict, its entries and their sums."""

from tests.report.kit import *
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.report import sections
from tfdoctor.report.page import page


def test_a_run_without_accelerators_has_no_time_of_theirs() -> None:
    subject = replace(full().subject, device=DeviceKind.CPU)
    on_cpu = replace(full(), subject=subject, device_time=(), device_time_missing="the run used no GPU")
    assert sections.device_time(on_cpu) is None
    assert "GPU time" not in html.render_without_plotly(on_cpu)


def test_device_times_without_steps_are_not_called_per_step() -> None:
    without = replace(full(), steps=StepsSummary(source=StepSource.NONE, missing="no marker"))
    tpu = replace(without, subject=replace(full().subject, device=DeviceKind.TPU))
    titles = [sure(sections.device_time(one))[0] for one in (full(), without, tpu)]
    assert titles == ["GPU time per step", "GPU time in the whole trace", "TPU time per program run"]


def test_the_words_beside_a_number_are_whole() -> None:
    label = (
        "bfloat16 time relative to float32 (median of benchmarks/precision.py on an AMD EPYC with avx512_bf16, "
        "TensorFlow 2.21; with constant weights 0.47 (0.44 to 0.59 in eight shapes, 2026-11-23))"
    )
    shown = replace(diagnoses.full(), model=(Measure(label, ratio(0.6)),))
    assert md.escaped(label) in md.render(shown)


@each(*diagnoses.ALL)
def test_no_report_says_that_nothing_can_change(kind: str) -> None:
    """Rules look for known faults: what takes the time may have another."""
    assert "nothing to change" not in " ".join((*page(diagnoses.ALL[kind]()).verdict, rendered("md", kind))).lower()


def test_a_place_is_taken_from_the_evidence_when_no_remedy_has_one() -> None:
    assert place(page(diagnoses.huge()).entries[0].result.place) == "model.py:0"


def test_every_part_has_a_label_and_a_colour() -> None:
    assert set(PARTS) == set(PART_LABELS) == set(PART_COLOURS)


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


@each(*SAMPLES, ids=[folder.name for folder in SAMPLES])
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
    entry = {"rule": "some", "symptoms": [], "same": [], "in_together": False, "included_in": ["whole"]}
    assert json_format.contract(diagnosis)["entries"][1] == entry


def test_a_symptom_that_listed_causes_explain_is_no_part_of_the_sum() -> None:
    """The wait is no change of its own: the sum is what the listed causes give."""
    chart = chart_of(PipelineSegment({"map": 90.0}, overlapped=True), input=70.0, device=30.0)
    waits = states("waits", Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST))
    decode = states("decode", Effect(Stage.INPUT, 0.5, "map", bound=Bound.AT_MOST), part(10, "op"))
    files = states("files", Effect(Stage.INPUT, 0.2, "map", bound=Bound.AT_MOST))
    diagnosis = made(chart, waits, decode, files)
    together = sure(diagnosis.together)
    assert (set(together.rules), {entry.in_sum for entry in diagnosis.entries}) == ({"decode", "files"}, {True})
    listed = [r.saving.ms_per_step for r in diagnosis.results if r.rule.name != "waits" and r.saving]
    assert together.ms_per_step <= sum(listed)
    agree(diagnosis)
