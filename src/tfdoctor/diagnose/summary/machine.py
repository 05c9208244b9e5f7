"""What a report says of the machine and the settings of a run, and of what could not be recorded of it."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.machine.threads import Threads
from tfdoctor.facts.operations.onednn import OneDnn
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.humanize import percent
from tfdoctor.recording import Recording
from tfdoctor.trace import Trace
from tfdoctor.units import count, nbytes, ratio
from tfdoctor.verdict import Measure


def machine(chart: Chart) -> tuple[tuple[str, str], ...]:
    """List what is known of the machine and the settings of the run."""
    recording, program = chart.fact(Recording), chart.get(Program)
    rows = list(_what_ran(chart))
    if recording.manifest:
        host = recording.manifest.host
        rows += [
            ("CPU", host.cpu_model),
            (
                "cores that the run may use",
                f"{host.cores_usable:g} of {host.cores_logical}" if host.cores_logical else "",
            ),
            ("CPU instructions", " ".join(host.cpu_flags)),
            ("Python", str((recording.manifest.versions or {}).get("python", ""))),
        ]
    if program:
        rows += list(_settings(program))
    rows += list(_on_cpu(chart))
    return tuple((name, text) for name, text in rows if text)


def _what_ran(chart: Chart) -> Iterator[tuple[str, str]]:
    """List the device, and for a trace of another framework or of XLA programs what identified it."""
    hardware, framework, steps = chart.get(Hardware), chart.get(Framework), chart.get(Steps)
    if hardware:
        yield "device", hardware.name
        yield "matrix unit", hardware.matrix_unit
    if framework and framework.foreign:
        yield "framework", f"{framework.title}: {framework.evidence}"
    if steps:
        yield "program whose runs are the steps", steps.program


def _on_cpu(chart: Chart) -> Iterator[tuple[str, str]]:
    """Tell what ran a CPU's products, and on how many threads."""
    onednn, threads = chart.get(OneDnn), chart.get(Threads)
    if onednn is None:
        return
    best = f"{onednn.instructions} at best" if onednn.instructions else onednn.why_unknown
    yield "oneDNN", f"runs {percent(onednn.share)} of the matmuls' and convolutions' time; {best}"
    if threads is None:
        return
    heaviest = list(threads.by_type.items())[:3]
    text = ", ".join(f"{number:.1f} in {kind}" for kind, number in heaviest)
    yield "threads at work", text or f"unknown: {threads.why_unknown}"


def _settings(program: Program) -> Iterator[tuple[str, str]]:
    names = {
        "policy": "precision policy", "optimizer": "optimizer", "jit_compile": "jit_compile",
        "steps_per_execution": "steps per execution", "strategy": "distribution strategy",
        "replicas": "replicas", "batch_size": "batch size",
    }  # fmt: skip
    for key, name in names.items():
        if program.settings.get(key) is not None:
            yield name, NONE.get(str(program.settings[key]), str(program.settings[key]))


NONE = {"_DefaultDistributionStrategy": "none"}
"""What TensorFlow calls the lack of one."""


def samples(chart: Chart) -> tuple[Measure, ...]:
    """List what was sampled while the steps were traced."""
    found = chart.get(Samples)
    if found is None:
        return ()
    measures = (
        ("cores used by the run", found.run_cores, count),
        ("cores used by other programs", found.other_cores, count),
        ("memory of the run", found.run_bytes, nbytes),
        ("GPU time with any kernel (NVML)", found.gpu_busy, ratio),
        ("GPU time with tensor cores at work (GPM)", found.tensor_active, ratio),
    )
    return tuple(
        Measure(label, unit(value)) for label, value, unit in measures if value is not None
    )


def unrecorded(chart: Chart) -> tuple[str, ...]:
    """List what could not be recorded, and why."""
    recording, trace = chart.fact(Recording), chart.fact(Trace)
    said = list(recording.notes)
    if manifest := recording.manifest:
        said += [f"{missing.what}: {missing.why}" for missing in manifest.missing]
        said += [f"hook, {error.where}: {error.error}" for error in manifest.agent_errors]
        said += [f"sampler {s.name}: {s.reason}" for s in manifest.samplers if s.reason]
    device = chart.get(Device)
    said += [device.missing if device else "", *trace.errors, *trace.warnings]
    return tuple(dict.fromkeys(text for text in said if text))
