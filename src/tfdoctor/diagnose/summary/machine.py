"""The machine, its load and the settings of a run in a report, and what could not be recorded."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfdoctor.diagnose.summary.devices import measures
from tfdoctor.diagnosis import Conditions
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.cores import Threads
from tfdoctor.facts.machine.memory import DeviceMemory, HostMemory
from tfdoctor.facts.machine.samples import Board, GpuBoards, GpuClocks, Samples
from tfdoctor.facts.operations.matmuls import MatrixUnit, OneDnn
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording import Manifest, Recording
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, nbytes, ratio
from tfdoctor.terms.verdict import Measure, Stage
from tfdoctor.trace.model import Trace

SETTINGS = {
    "policy": "precision policy", "optimizer": "optimizer", "jit_compile": "jit_compile",
    "steps_per_execution": "steps per execution", "strategy": "distribution strategy",
    "replicas": "replicas", "batch_size": "batch size",
}  # fmt: skip
# What a sampler samples, for recordings that do not say whether the machine has it.
SAMPLED = {"nvml": DeviceKind.GPU, "tpu": DeviceKind.TPU, "tpu-sdk": DeviceKind.TPU}
# The fact that a condition is of, and why it is unknown where the fact is known.
UNKNOWN: dict[str, tuple[type, str]] = {
    "batch_size": (Program, "the recording does not contain the batch size"),
    "host_bytes": (HostMemory, "the memory of the run was not sampled"),
    "device_bytes": (DeviceMemory, ""),
    "matrix_unit": (MatrixUnit, "the trace does not show the arithmetic of each matmul and convolution"),
    "least_ms": (OperationGroups, ""),
}
NO_STRATEGY = "_DefaultDistributionStrategy"  # TensorFlow's name for none


def machine(chart: Chart) -> Iterator[tuple[str, str]]:
    """Yield the machine and the settings of the run; a text is "" where it is unknown."""
    hardware, framework, steps = chart.get(Hardware), chart.get(Framework), chart.get(Steps)
    manifest, program = chart.fact(Recording).manifest or Manifest(), chart.get(Program)
    if hardware:
        yield "device", hardware.name
        yield "matrix unit", hardware.matrix_unit
    if framework and framework.foreign:
        yield "framework", f"{framework.title}: {framework.evidence}"
    if steps:
        yield "step program", steps.program
    host, revision = manifest.host, manifest.revision
    yield "CPU", host.cpu_model
    yield "usable cores", f"{host.cores_usable:g} of {host.cores_logical}" if host.cores_logical else ""
    yield "CPU instructions", " ".join(host.cpu_flags)
    yield "Python", manifest.versions.get("python", "")
    if revision:
        yield "commit", f"{revision.commit}, with changes" if revision.changed else revision.commit
    for key, name in SETTINGS.items():
        value = getattr(program.settings, key) if program else None
        yield name, "none" if value == NO_STRATEGY else "" if value is None else str(value)
    if onednn := chart.get(OneDnn):  # what ran the matmuls of a CPU, and on how many threads
        yield "oneDNN", f"{percent(onednn.share)} of the matmul and convolution time"
        if threads := chart.get(Threads):
            heaviest = list(threads.by_type.items())[:3]
            text = ", ".join(f"{number:.1f} in {kind}" for kind, number in heaviest)
            yield "busy threads", text or f"unknown: {threads.why_unknown}"
    if boards := chart.get(GpuBoards):
        yield "NVIDIA driver", boards.version
        yield from ((f"GPU {board.index}", ", ".join(_told_of(board))) for board in boards.boards)


def _told_of(board: Board) -> Iterator[str]:
    modes = {"persistence mode": board.persistence, "ECC": board.ecc, "MIG": board.mig}
    yield from (f"{name} {'on' if mode else 'off'}" for name, mode in modes.items() if mode is not None)
    if board.ecc_uncorrected:
        yield counted(board.ecc_uncorrected, "uncorrected memory error")
    if board.power_limit_w is not None:
        highest = f" of at most {board.power_max_w:.0f} W" if board.power_max_w is not None else ""
        yield f"power limit {board.power_limit_w:.0f} W{highest}"
    if board.slowdown_c is not None:
        yield f"slows down from {board.slowdown_c:.0f} °C"
    if board.widest_link is not None:
        now = f", {_link(board.link)} while busy" if board.link else ""
        yield f"PCIe up to {_link(board.widest_link)}{now}"
    if board.others:
        yield f"{counted(board.others, 'process', 'processes')} of other programs"


def _link(link: tuple[int, int]) -> str:
    return f"generation {link[0]} x{link[1]}"


def samples(chart: Chart) -> tuple[Measure, ...]:
    """Return the machine samples taken while the steps were traced."""
    taken = chart.get(Samples) or Samples(0)
    rows = (
        ("cores used by the run", count, taken.run_cores),
        ("cores used by other programs", count, taken.other_cores),
        ("memory used by the run (RSS)", nbytes, taken.run_bytes),
        ("GPU utilization (NVML)", ratio, taken.gpu_busy),
        ("Tensor Core activity (GPM)", ratio, taken.tensor_active),
    )
    return measures(rows)


def unrecorded(chart: Chart) -> tuple[str, ...]:
    """List what could not be recorded, and why; a device that the machine lacks is no missing data."""
    recording, trace, device = chart.fact(Recording), chart.fact(Trace), chart.get(Device)
    reasons, manifest = list(recording.notes), recording.manifest or Manifest()
    reasons += [f"{missing.what}: {missing.why}" for missing in manifest.missing]
    reasons += [f"agent, {error.where}: {error.error}" for error in manifest.agent_errors]
    for sampling in manifest.samplers:
        absent, kind = sampling.absent, SAMPLED.get(sampling.name)
        if absent is None:  # not recorded: whether the run used no such device and none was sampled
            absent = bool(kind and device and device.kind is not kind and not sampling.count)
        if sampling.reason and not absent:
            reasons.append(f"sampler {sampling.name}: {sampling.reason}")
    reasons += [str(device.missing or "") if device else "", *trace.errors, *trace.warnings, *trace.damage]
    return tuple(dict.fromkeys(reason for reason in reasons if reason))


def conditions(chart: Chart) -> Conditions:
    """Gather what is known of the machine, its load and the batch."""
    manifest, hardware, program = chart.fact(Recording).manifest, chart.get(Hardware), chart.get(Program)
    taken, memory, device = chart.get(Samples), chart.get(HostMemory), chart.get(DeviceMemory)
    unit, pace, clocks = chart.get(MatrixUnit), chart.get(UntracedPace), chart.get(GpuClocks)
    known, model, breakdown = chart.get(OperationGroups), chart.get(StepModel), chart.get(Breakdown)
    mhz = [gpu.mean_mhz for gpu in clocks.gpus if gpu.mean_mhz] if clocks else []
    kept = model.kept(Stage.DEVICE) if model else 1.0  # of traced time, without the profiler's cost
    least_ms, open_ms = 0.0, defaultdict[str, float](float)  # the latter by the reason why the least is unknown
    for group in known.groups if known else ():
        if group.least_ms is None:
            open_ms[group.missing] += group.ms
        else:
            least_ms += min(group.least_ms, group.ms)
    found = Conditions(
        cpu_model=manifest.host.cpu_model if manifest else "",
        cores_usable=(hardware.cores if hardware else None) or None,
        cores_run=taken.run_cores if taken else None,
        cores_other=taken.other_cores if taken else None,
        gpu_mhz=float(np.mean(mhz)) if mhz else None,
        batch_size=program.batch_size if program else None,
        host_bytes=memory.by_run if memory else None,
        device_bytes=max(one.used for one in device.allocators) if device else None,
        untraced_ms=pace.step_ms if pace else None,
        matrix_unit=unit.utilization if unit else None,
        least_ms=kept * least_ms if known else None,
        open_ms=kept * sum(open_ms.values()),
    )
    missing = {}
    if breakdown and breakdown.unseen_input and not breakdown["input"]:
        missing["input"] = breakdown.unseen_input
    for name, (fact, otherwise) in UNKNOWN.items():
        if getattr(found, name) is None:
            missing[name] = chart.why_missing(fact) or otherwise
    if found.open_ms:  # why it is unknown for most of the time for which it is
        missing["open_ms"] = max(open_ms, key=lambda why: open_ms[why])
    return replace(found, missing=missing)
