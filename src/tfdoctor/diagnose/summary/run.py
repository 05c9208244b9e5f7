"""The run in a report: what ran, its steps, its input pipeline and its operations."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from tfdoctor.diagnose.summary.devices import Row, measures
from tfdoctor.diagnosis import SecondOpinion, Subject, Trust
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.diagnosis.work import DeviceRates, OperationRow, PipelineStage
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.iterators import consumer
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.quality import Quality
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import DISTORTED, SlowSteps
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest, Revision
from tfdoctor.terms.humanize import percent
from tfdoctor.terms.kinds import DeviceKind, StepSource, TrustLevel
from tfdoctor.terms.record import common
from tfdoctor.terms.run_time import SlowStepsSummary
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Measure, Remark
from tfdoctor.trace.model import Trace
from tfdoctor.trace.xprof import InputVerdict, Opinion

SAME_OPINION = 0.05  # Share of the step. Two figures for the input wait that differ by less agree.
NS_PER_S = 1e9
STEP_OF_MODEL = "measured step (median)"
# Methods of datasets whose classes have other names.
METHODS = {"ParallelMap": "map", "ParallelBatch": "batch", "ParallelInterleave": "interleave"}

# Versions that TensorFlow was built for; the machine may have others.
BUILD = {"cuda": "TensorFlow's build for CUDA", "cudnn": "TensorFlow's build for cuDNN"}

# What the trust in savings says of the step model.
PARTLY = "the step model explains the measured step only in part, so savings are estimates"
UNPREDICTED = (
    "the profiler's cost was estimated from untraced steps and left out of the step and its parts; because it is "
    "most of the traced step, no saving of a step is predicted"
)
CORRECTED = (
    "the profiler's cost was estimated from untraced steps and left out of the step, its parts and the savings, "
    "which are therefore estimates; evidence and charts show the traced steps"
)


def subject(chart: Chart, title: str) -> Subject:
    """Describe what was examined."""
    device, hardware, framework = chart.get(Device), chart.get(Hardware), chart.get(Framework)
    trace, manifest = chart.fact(Trace), chart.fact(Recording).manifest or Manifest()
    seen, revision = device if device and device.visible else None, manifest.revision or Revision()
    # Of a framework that is not TensorFlow the trace alone gives the version.
    foreign = {framework.name: framework.version or "version unknown"} if framework and framework.foreign else {}
    return Subject(
        title=title,
        command=manifest.command,
        device=device.kind if device else None,
        device_name=hardware.name if hardware else "",
        devices_used=seen.used if seen else None,
        devices_visible=seen.visible if seen else None,
        framework={BUILD.get(name, name): one for name, one in manifest.versions.items() if one} | foreign,
        hosts=tuple(filter(None, trace.hostnames)),
        exit_code=manifest.outcome.exit_code,
        recorded=_moment(manifest.recorded_unix_ns),
        commit=revision.commit,
        committed=_moment(revision.committed_unix_ns),
        changed=revision.changed,
    )


def _moment(unix_ns: int) -> str:
    """Return a time in ISO 8601, in UTC; "" for 0, which is unknown."""
    moment = datetime.fromtimestamp(unix_ns / NS_PER_S, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if unix_ns else ""


def steps(chart: Chart) -> StepsSummary:
    """Summarize the steps and the parts of their time."""
    traced, breakdown, step_model = chart.get(Steps), chart.get(Breakdown), chart.get(StepModel)
    untraced, slow = step_model.exposed if step_model and step_model.tracing else {}, chart.get(SlowSteps)
    if traced is None or breakdown is None:
        return StepsSummary(source=StepSource.NONE, missing=chart.why_missing(Steps), too_few=True)
    rows = tuple(
        StepRow(number=step.number, total_ms=step.total_ms, parts_ms=parts, steady=steady)
        for step, parts, steady in zip(traced.steps, breakdown.steps, traced.steady, strict=True)
        if step.total_ms > 0
    )
    return common(
        StepsSummary,
        traced,
        rows=rows,
        p10_ms=traced.percentile_ms(10),
        p90_ms=traced.percentile_ms(90),
        between_ms=breakdown["between"],
        stalled=sum(traced.stalled),
        step_ms=traced.usual_ms,
        breakdown_ms={str(part): value for part, value in breakdown.median.items()},
        untraced_ms=sum(untraced.values()) if untraced else None,
        untraced_breakdown_ms={str(part): value for part, value in untraced.items()},
        slow=common(SlowStepsSummary, slow) if slow and slow.prevail else None,
    )


def trust(chart: Chart, results: Iterable[Result] = ()) -> Trust:
    """State how far the figures can be trusted; called last, when every failed fact is known.

    Rules of the user's own have remarks of their own; ours say what the quality of the recording says.
    """
    quality = chart.get(Quality)
    reasons = [doubt.advice for doubt in quality.doubts] if quality else []
    level = quality.level if quality else TrustLevel.LOW
    model, breakdown = chart.get(StepModel), chart.get(Breakdown)
    doubt = ""
    if model is None and breakdown is not None:
        why = "" if chart.failed(StepModel) else f": {chart.why_missing(StepModel)}"
        doubt = f"savings are unknown{why}"
    elif model is not None and not model.trusted:
        estimated = UNPREDICTED if model.distorted else CORRECTED
        doubt = estimated if model.tracing and model.slowdown > DISTORTED else PARTLY
    if doubt:
        reasons.append(doubt)
        level = TrustLevel.MEDIUM if level is TrustLevel.HIGH else level
    own = (
        ": ".join((one.outcome.summary, *(remedy.action for remedy in one.outcome.remedies)))
        for one in results
        if one.rule.own and isinstance(one.outcome, Remark)
    )
    return Trust(level=level, reasons=(*reasons, *own, *map(str, chart.defects)))


def pipeline(chart: Chart) -> tuple[PipelineStage, ...]:
    """List the input pipeline's stages, consumers first."""
    input_pipeline = chart.get(InputPipeline)
    if input_pipeline is None:
        return ()
    index = {stage.path: at for at, stage in enumerate(input_pipeline.stages)}
    rows = []
    for stage in input_pipeline.stages:
        written, note = "", "own threads" if stage.asynchronous else ""
        if stage.dataset and stage.dataset.kind:  # the call that made it, as in the user's source
            name = stage.dataset.kind.strip("_").removesuffix("Dataset").removesuffix("V2")
            written = f".{METHODS.get(name, name.lower())}({stage.dataset.function})"
        if stage.injected:
            note = "added by tf.data"
        elif stage.python_ms > stage.work_ms / 2:
            note = "runs Python"
        row = PipelineStage(
            name=stage.kind, parent=index.get(consumer(stage.path)), self_ms=stage.work_ms,
            parallelism=stage.concurrency, calls=stage.calls, critical=stage in input_pipeline.limiting,
            written=written, at=stage.at, note=note,
        )  # fmt: skip
        rows.append(row)
    return tuple(rows)


def operations(chart: Chart) -> tuple[OperationRow, ...]:
    """List the compute time, one row per layer and operation type."""
    timed, breakdown = chart.get(Operations), chart.get(Breakdown)
    if timed is None or breakdown is None:
        return ()
    groups, rows = defaultdict[tuple[str, str], list[OperationTime]](list), []
    for row in timed.rows:
        groups[row.layer, row.type].append(row)
    for (layer, kind), group in groups.items():
        total, first = sum(row.ms for row in group), group[0]
        shapes = (  # of the first two operands, as "float32[32,?] x float32[10]"
            f"{dtype}[{','.join('?' if size is None else str(size) for size in shape)}]"
            for dtype, shape in (first.operation.inputs[:2] if first.operation else ())
            if shape is not None
        )
        summed = OperationRow(
            layer=layer, operation=kind, self_ms=total, at=first.at, detail=" x ".join(shapes),
            share=total / breakdown.step_ms if breakdown.step_ms else 0.0,
            flops=_per_step([(row.flops, row.calls) for row in group]),
            nbytes=_per_step([(row.nbytes, row.calls) for row in group]),
        )  # fmt: skip
        rows.append(summed)
    return tuple(sorted(rows, key=lambda row: -row.self_ms))


def _per_step(amounts: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the sum of amounts per call times calls; None where one is unknown."""
    known = [amount * calls for amount, calls in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def rates(chart: Chart) -> DeviceRates | None:
    """Return what the device can do at most; of a CPU the rate at which this run's own operations stream."""
    hardware, timed = chart.get(Hardware), chart.get(Operations)
    if hardware is None or timed is None:
        return None
    on_cpu = hardware.kind == DeviceKind.CPU
    streamed = timed.streaming_rate if on_cpu else hardware.bandwidth_bytes_s
    if not streamed and not hardware.peak_flop_s:
        return None
    return DeviceRates(flop_s=hardware.peak_flop_s, bytes_s=streamed, measured=on_cpu)


def model(chart: Chart) -> tuple[Measure, ...]:
    """Return every number that the step model uses."""
    known = chart.get(StepModel)
    if known is None:
        return ()
    rows: list[Row] = [(STEP_OF_MODEL, ms, sum(known.traced.values()))]
    rows.append(("step without the profiler's cost", ms, known.step_ms if known.tracing else None))
    for part, value in known.exposed.items():
        rows.append((f"{'input wait' if part == 'input' else part}, not overlapped", ms, value or None))
    for segment in known.segments:
        work = "input work, overlapped" if segment.overlapped else "input work before the step"
        name = " > ".join(path.rpartition("::")[2] for path in segment.stages)
        rows.append((f"{work}: {name}", ms, segment.ms))
    rows.append(("launch work on the host", ms, known.host_work if known.device != DeviceKind.CPU else None))
    rows.append(("share of busy cores", ratio, known.busy_share))
    rows.append(("unexplained by the model", ms, known.residual))
    return measures(rows)


def second_opinion(chart: Chart, opinion: Opinion | None) -> SecondOpinion | None:
    """Compare xprof's verdict with ours, and say why they differ; None where it was not asked."""
    if opinion is None:
        return None
    if opinion.error:
        return SecondOpinion(conclusion=f"xprof gave no verdict: {opinion.error}", agrees=None)
    breakdown, device, verdict = chart.get(Breakdown), chart.get(Device), opinion.verdict
    if breakdown is None or device is None or opinion.input_percent is None or not opinion.steps:
        return SecondOpinion(conclusion=opinion.conclusion or "xprof measured no step time", agrees=None)
    ours, theirs = breakdown["input"] / breakdown.step_ms, opinion.input_percent / 100
    bound = verdict is not InputVerdict.NOT_BOUND
    same_verdict = verdict is InputVerdict.NONE or bound == breakdown.waits_for_input
    if abs(ours - theirs) <= SAME_OPINION and same_verdict:
        return SecondOpinion(conclusion=opinion.conclusion, agrees=True)
    why = (
        "xprof ignores the first and last step and the time between steps, and counts input work as waiting where "
        "the two overlap."
    )
    if verdict is InputVerdict.POTENTIAL:
        why = "xprof counts time that it cannot assign as potential input."
    elif device.kind == DeviceKind.GPU:
        why = (
            "On a GPU, xprof counts copies to the device as input and ignores host events, including the wait for "
            "tf.data."
        )
    figures = f"tfdoctor measures {percent(ours)} input wait, xprof {percent(theirs)}."
    return SecondOpinion(conclusion=opinion.conclusion, agrees=False, why=f"{figures} {why}")
