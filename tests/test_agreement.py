"""One report contradicts itself nowhere and leaves no large part of a step unmentioned, on every sample."""

from tests import agreement
from tests.kit import *
from tfdoctor.diagnose.diagnose import chart_of, diagnose, diagnosed
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.gates import Settings
from tfdoctor.facts.chart import Chart
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.report.formats import json as report_json
from tfdoctor.report.formats import render
from tfdoctor.rules import all_rules
from tfdoctor.stored.report import finished, read, write
from tfdoctor.terms.kinds import TRACED_LONGER

SAMPLES = Path(__file__).parent.parent / "sample_traces"
TRACES = sorted((Path(__file__).parent / "facts" / "traces").glob("*.xplane.pb.gz"))
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


@cache
def examined(name: str) -> tuple[Chart, Diagnosis]:
    chart = chart_of(Recording.open(SAMPLES / name))
    return chart, diagnosed(chart, all_rules(), name)


def test_there_are_samples() -> None:
    assert len(NAMES) > 1
    assert TRACES


@each(*NAMES)
def test_facts_agree_and_a_report_says_one_thing_of_every_large_part(name: str) -> None:
    chart, diagnosis = examined(name)
    assert not list(agreement.disagreements(chart))
    assert not list(agreement.unaccounted(chart, diagnosis.results))
    assert not list(agreement.other_steps(diagnosis))
    assert not agreement.calls_healthy(diagnosis)


@each(*NAMES)
def test_the_diagnosis_of_a_recording_is_stored_without_a_loss(name: str) -> None:
    made = finished(replace(examined(name)[1], settings=Settings()))
    content = json.loads(report_json.render(made))
    assert read(json.loads(json.dumps(write(made), allow_nan=False)), all_rules()) == made
    for kind in ("html", "md", "sarif"):
        assert render(kind, read(content, all_rules())) == render(kind, made)  # also with the keys in order


@each(*TRACES, ids=lambda path: path.name)
def test_all_figures_of_a_report_on_a_trace_are_of_one_step(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "host.xplane.pb").write_bytes(gzip.decompress(trace.read_bytes()))
    recording = Recording.open(tmp_path)
    found = diagnose(recording, all_rules(), trace.name, ask_xprof=False)
    assert not list(agreement.other_steps(found))


@each(1.04, 1.6)
@pytest.mark.parametrize("name", [n for n in NAMES if (SAMPLES / n / "tfdoctor.json").exists()])
def test_all_figures_are_of_one_step_where_tracing_slowed_it(slower: float, name: str) -> None:
    diagnosis = diagnose(slowed(name, slower), all_rules(), name, ask_xprof=False)
    steps = diagnosis.steps
    assert not list(agreement.other_steps(diagnosis))
    assert steps.median_ms is not None
    noticed = slower >= TRACED_LONGER
    assert steps.shown_ms == pytest.approx(steps.median_ms / (slower if noticed else 1))


def slowed(name: str, slower: float) -> Recording:
    """Return a sample of which the untraced steps were so many times as fast."""
    recording = Recording.open(SAMPLES / name)
    assert recording.manifest is not None
    untraced = UntracedSteps(90, 10.0, "steps", traced_ms=10.0 * slower)
    seen = replace(recording.manifest.steps, untraced=untraced)
    return replace(recording, manifest=replace(recording.manifest, steps=seen))
