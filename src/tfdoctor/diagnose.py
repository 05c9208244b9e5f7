"""From a recording to a diagnosis."""

from collections.abc import Iterable
from pathlib import Path

from tfdoctor import __version__, device_portrait, engine, portrait, tpu_portrait
from tfdoctor.diagnosis import Diagnosis, SecondOpinion
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input_pipeline import InputPipeline
from tfdoctor.facts.operations import Operations
from tfdoctor.recording import Recording
from tfdoctor.rule import Rule
from tfdoctor.trace import Trace, xplane, xprof

XPROF_TIMEOUT_S = 120.0
"""xprof reads 10 to 16 MB of trace a second; its opinion is not worth a longer wait."""


def diagnose(
    recording: Recording, rules: Iterable[Rule], title: str, *, ask_xprof: bool = True
) -> Diagnosis:
    """Examine a recording by every rule.

    Raises:
        InputError: the trace is damaged.
    """
    path = recording.traces[0] if recording.traces else None
    chart = Chart([xplane.read(path) if path else Trace(()), recording])
    results = engine.examine(chart, rules)
    operations, pipeline = portrait.operations(chart), portrait.pipeline(chart)
    return Diagnosis(
        version=__version__,
        subject=portrait.subject(chart, title),
        steps=portrait.steps(chart),
        trust=portrait.trust(chart),
        results=results,
        together=engine.together(chart, results),
        xprof=_second_opinion(chart, path) if ask_xprof else None,
        pipeline=pipeline,
        pipeline_missing="" if pipeline else portrait.why_unknown(chart, InputPipeline),
        operations=operations,
        operations_missing="" if operations else portrait.why_unknown(chart, Operations),
        model=portrait.model(chart),
        machine=portrait.machine(chart),
        samples=portrait.samples(chart),
        device_time=device_portrait.device_time(chart) or tpu_portrait.tpu_time(chart),
        device_time_missing=device_portrait.device_time_missing(chart),
        unrecorded=(*portrait.unrecorded(chart), *_other_hosts(recording)),
    )


def _second_opinion(chart: Chart, path: Path | None) -> SecondOpinion | None:
    if path is None:
        return None
    return portrait.second_opinion(chart, xprof.ask(path, timeout_s=XPROF_TIMEOUT_S))


def _other_hosts(recording: Recording) -> list[str]:
    if len(recording.traces) < 2:  # noqa: PLR2004 - one trace, no others
        return []
    return [
        f"{len(recording.traces)} hosts were recorded; the report shows {recording.traces[0].name} alone"
    ]
