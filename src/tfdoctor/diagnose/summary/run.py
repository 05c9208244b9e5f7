"""What a report shows beside the verdicts: the run, its steps, its pipeline, where the time went."""

import re
from collections import defaultdict

from tfdoctor.diagnosis import (
    OperationRow,
    PipelineStage,
    SecondOpinion,
    StepRow,
    StepsSummary,
    Subject,
    Trust,
)
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.quality import Quality
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_model import StepModel
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import percent
from tfdoctor.kinds import DeviceKind, StepSource, TrustLevel
from tfdoctor.recording import Manifest, Recording
from tfdoctor.trace import Trace
from tfdoctor.trace.xprof import Opinion
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import Measure

SAME_OPINION = 0.05
"""Of the step: two figures for the input's share this close agree."""


def subject(chart: Chart, title: str) -> Subject:
    """Describe what was examined."""
    device, hardware, framework = chart.get(Device), chart.get(Hardware), chart.get(Framework)
    trace, manifest = chart.fact(Trace), chart.fact(Recording).manifest
    return Subject(
        title=title,
        command=manifest.command if manifest else (),
        device=device.kind if device else None,
        device_name=hardware.name if hardware else "",
        devices_used=device.used if device and device.visible else None,
        devices_visible=(device.visible or None) if device else None,
        framework=_framework(manifest) | (_foreign(framework) if framework else {}),
        hosts=tuple(filter(None, trace.hostnames)),
        exit_code=manifest.outcome.exit_code if manifest else None,
    )


def _framework(manifest: Manifest | None) -> dict[str, str]:
    versions = (manifest.versions if manifest else None) or {}
    return {BUILD.get(name, name): str(version) for name, version in versions.items() if version}


BUILD = {"cuda": "TensorFlow's build for CUDA", "cudnn": "TensorFlow's build for cuDNN"}
"""What the run's machine need not have."""


def _foreign(framework: Framework) -> dict[str, str]:
    """Return a framework that is not TensorFlow, by what the trace tells of it."""
    return {framework.name: framework.version or "version unknown"} if framework.foreign else {}


def steps(chart: Chart) -> StepsSummary:
    """Summarise the steps and what their time went to."""
    found, breakdown = chart.get(Steps), chart.get(Breakdown)
    if found is None or breakdown is None:
        return StepsSummary(source=StepSource.NONE, missing=chart.why_missing(Steps))
    rows = tuple(
        StepRow(number=step.number, total_ms=step.total_ms, parts_ms=parts, steady=steady)
        for step, parts, steady in zip(found.steps, breakdown.steps, found.steady, strict=True)
    )
    return StepsSummary(
        source=found.source,
        rows=rows,
        count=found.count,
        median_ms=found.median_ms,
        mean_ms=found.mean_ms,
        p10_ms=found.percentile_ms(10),
        p90_ms=found.percentile_ms(90),
        between_ms=breakdown["between"],
        breakdown_ms={str(part): value for part, value in breakdown.median.items()},
    )


def trust(chart: Chart) -> Trust:
    """State how far the figures can be trusted; last of all, when every fact that failed has done so."""
    quality = chart.get(Quality)
    reasons = [doubt.what for doubt in quality.doubts] if quality else []
    level = quality.level if quality else TrustLevel.LOW
    model, breakdown = chart.get(StepModel), chart.get(Breakdown)
    doubt = ""
    if model is None and breakdown is not None:
        why = "" if chart.failed(StepModel) else f": {chart.why_missing(StepModel)}"
        doubt = f"savings are unknown{why}"
    elif model is not None and not model.trusted:
        doubt = "the step model explains the measured step only in part: savings are ceilings"
    if doubt:
        reasons.append(doubt)
        level = TrustLevel.MEDIUM if level is TrustLevel.HIGH else level
    return Trust(level=level, reasons=(*reasons, *map(str, chart.defects)))


def pipeline(chart: Chart) -> tuple[PipelineStage, ...]:
    """List the input pipeline's stages, consumers first."""
    found = chart.get(InputPipeline)
    if found is None:
        return ()
    paths = [stage.path for stage in found.stages]
    limiting = found.slowest.stages if found.slowest else {}
    return tuple(
        PipelineStage(
            name=stage.kind,
            parent=_parent(stage.path, paths),
            self_ms=stage.work_ms,
            parallelism=stage.concurrency,
            calls=stage.calls,
            critical=stage.path in limiting,
            written=_written(stage),
            at=stage.at,
            note=_note(stage),
        )
        for stage in found.stages
    )


def _parent(path: str, paths: list[str]) -> int | None:
    above = re.sub(r"\[\d+\]$", "", path.rpartition("::")[0])  # of "Zip[1]" that is the Zip
    return paths.index(above) if above in paths else None


def _written(stage: StageTime) -> str:
    """Spell the call that made a stage as its user wrote it."""
    if stage.dataset is None or not stage.dataset.kind:
        return ""
    name = stage.dataset.kind.strip("_").removesuffix("Dataset").removesuffix("V2")
    method = {"ParallelMap": "map", "ParallelBatch": "batch", "ParallelInterleave": "interleave"}
    return f".{method.get(name, name.lower())}({stage.dataset.function})"


def _note(stage: StageTime) -> str:
    if stage.injected:
        return "added by tf.data"
    if stage.python_ms > stage.work_ms / 2:
        return "runs Python"
    return "on threads of its own" if stage.asynchronous else ""


def operations(chart: Chart) -> tuple[OperationRow, ...]:
    """List where the compute time went, one row per layer and type of operation."""
    found, breakdown = chart.get(Operations), chart.get(Breakdown)
    if found is None or breakdown is None:
        return ()
    groups: dict[tuple[str, str], list[OperationTime]] = defaultdict(list)
    for row in found.rows:
        groups[row.layer, row.type].append(row)
    rows = [_operation_row(group, breakdown.step_ms) for group in groups.values()]
    return tuple(sorted(rows, key=lambda row: -row.self_ms))


def _operation_row(group: list[OperationTime], step_ms: float) -> OperationRow:
    total = sum(row.ms for row in group)
    first = group[0]
    return OperationRow(
        layer=first.layer,
        operation=first.type,
        self_ms=total,
        share=total / step_ms if step_ms else 0.0,
        at=first.at,
        detail=_detail(first),
    )


def _detail(row: OperationTime) -> str:
    tensors = row.operation.inputs if row.operation else ()
    shown = [f"{dtype}{_shape(shape)}" for dtype, shape in tensors[:2] if shape is not None]
    return " x ".join(shown)


def _shape(shape: tuple[int | None, ...]) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def model(chart: Chart) -> tuple[Measure, ...]:
    """List every number that the step model uses."""
    found = chart.get(StepModel)
    if found is None:
        return ()
    measures = [Measure("measured step (median)", ms(found.step_ms))]
    measures += [
        Measure(f"{part}, exposed", ms(value)) for part, value in found.exposed.items() if value
    ]
    for segment in found.segments:
        where = "beside the step" if segment.overlapped else "while the step waits"
        name = " > ".join(path.rpartition("::")[2] for path in segment.stages)
        measures.append(Measure(f"input work {where}: {name}", ms(segment.ms)))
    if found.device != DeviceKind.CPU:
        measures.append(Measure("host's launching work", ms(found.host_work)))
    if found.busy_share is not None:
        measures.append(Measure("cores at work", ratio(found.busy_share)))
    measures.append(Measure("not explained by the formula", ms(found.residual)))
    return tuple(measures)


def second_opinion(chart: Chart, opinion: Opinion | None) -> SecondOpinion | None:
    """Set xprof's verdict beside ours, and say why where they differ."""
    if opinion is None:
        return None
    if opinion.error:
        return SecondOpinion(conclusion=f"xprof gave no opinion: {opinion.error}", agrees=None)
    breakdown, device = chart.get(Breakdown), chart.get(Device)
    if breakdown is None or device is None or opinion.input_percent is None or not opinion.steps:
        return SecondOpinion(conclusion=opinion.conclusion or "no step time measured", agrees=None)
    ours = breakdown["input"] / breakdown.step_ms
    theirs = opinion.input_percent / 100
    agrees = abs(ours - theirs) <= SAME_OPINION and _accuses(opinion) in (
        None,
        breakdown.waits_for_input,
    )
    return SecondOpinion(
        conclusion=opinion.conclusion,
        agrees=agrees,
        why="" if agrees else _difference(ours, theirs, device, opinion.conclusion),
    )


def _accuses(opinion: Opinion) -> bool | None:
    """Whether xprof's words call the program input-bound; None when they say neither."""
    if re.search(r"(?:HIGHLY|MODERATELY|POTENTIALLY) input-bound", opinion.conclusion):
        return True
    return False if "NOT input-bound" in opinion.conclusion else None


def _difference(ours: float, theirs: float, device: Device, conclusion: str) -> str:
    figures = f"tfdoctor measures an input share of {percent(ours)}, xprof {percent(theirs)}."
    if "POTENTIALLY" in conclusion:
        return f"{figures} xprof calls any time that it cannot assign potentially input."
    if device.kind == DeviceKind.GPU:
        return (
            f"{figures} On a GPU xprof counts the copies to the device as input and leaves out the "
            "host's events, and with them the wait for tf.data."
        )
    return (
        f"{figures} xprof drops the first and last step, leaves out the time between steps, and counts "
        "input work as waiting wherever the two overlap."
    )
