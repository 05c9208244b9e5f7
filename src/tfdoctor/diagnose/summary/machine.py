"""The machine and the settings of a run in a report, and what could not be recorded."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.cores import Threads
from tfdoctor.facts.machine.samples import Board, GpuBoards, Samples
from tfdoctor.facts.operations.matmuls import OneDnn
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Revision, Sampling
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, nbytes, ratio
from tfdoctor.terms.verdict import Measure
from tfdoctor.trace import Trace


def machine(chart: Chart) -> tuple[tuple[str, str], ...]:
    """List the machine and the settings of the run, as far as they are known."""
    recording, program = chart.fact(Recording), chart.get(Program)
    rows = list(_what_ran(chart))
    if recording.manifest:
        host = recording.manifest.host
        rows += [
            ("CPU", host.cpu_model),
            ("usable cores", f"{host.cores_usable:g} of {host.cores_logical}" if host.cores_logical else ""),
            ("CPU instructions", " ".join(host.cpu_flags)),
            ("Python", recording.manifest.versions.get("python", "")),
            ("commit", _commit(recording.manifest.revision)),
        ]
    if program:
        rows += list(_settings(program))
    rows += list(_on_cpu(chart))
    rows += list(_boards(chart))
    return tuple((name, text) for name, text in rows if text)


def _commit(revision: Revision | None) -> str:
    """Return the commit of the program, and whether its files differed; "" where it is unknown."""
    if revision is None:
        return ""
    return f"{revision.commit}, with changes" if revision.changed else revision.commit


def _what_ran(chart: Chart) -> Iterator[tuple[str, str]]:
    """List the device, and what identified another framework or the step program."""
    hardware, framework, steps = chart.get(Hardware), chart.get(Framework), chart.get(Steps)
    if hardware:
        yield "device", hardware.name
        yield "matrix unit", hardware.matrix_unit
    if framework and framework.foreign:
        yield "framework", f"{framework.title}: {framework.evidence}"
    if steps:
        yield "step program", steps.program


def _on_cpu(chart: Chart) -> Iterator[tuple[str, str]]:
    """List what ran the matmuls of a CPU, and on how many threads."""
    onednn, threads = chart.get(OneDnn), chart.get(Threads)
    if onednn is None:
        return
    best = f"up to {onednn.instructions}" if onednn.instructions else onednn.why_unknown
    yield "oneDNN", f"{percent(onednn.share)} of the matmul and convolution time; {best}"
    if threads is None:
        return
    heaviest = list(threads.by_type.items())[:3]
    text = ", ".join(f"{number:.1f} in {kind}" for kind, number in heaviest)
    yield "busy threads", text or f"unknown: {threads.why_unknown}"


def _boards(chart: Chart) -> Iterator[tuple[str, str]]:
    """List the driver of the GPUs, and the settings of each board that the run may use."""
    boards = chart.get(GpuBoards)
    if boards is None:
        return
    yield "NVIDIA driver", boards.version
    for board in boards.boards:
        yield f"GPU {board.index}", ", ".join(_told_of(board))


def _told_of(board: Board) -> Iterator[str]:
    """Yield what is known of a board, as clauses."""
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


def _settings(program: Program) -> Iterator[tuple[str, str]]:
    names = {
        "policy": "precision policy", "optimizer": "optimizer", "jit_compile": "jit_compile",
        "steps_per_execution": "steps per execution", "strategy": "distribution strategy",
        "replicas": "replicas", "batch_size": "batch size",
    }  # fmt: skip
    for key, name in names.items():
        value = getattr(program.settings, key)
        if value is not None:
            yield name, NONE.get(str(value), str(value))


NONE = {"_DefaultDistributionStrategy": "none"}  # TensorFlow's name for no strategy


def samples(chart: Chart) -> tuple[Measure, ...]:
    """List the machine samples taken while the steps were traced."""
    taken = chart.get(Samples)
    if taken is None:
        return ()
    measures = (
        ("cores used by the run", taken.run_cores, count),
        ("cores used by other programs", taken.other_cores, count),
        ("memory used by the run (RSS)", taken.run_bytes, nbytes),
        ("GPU utilization (NVML)", taken.gpu_busy, ratio),
        ("Tensor Core activity (GPM)", taken.tensor_active, ratio),
    )
    return tuple(Measure(label, unit(value)) for label, value, unit in measures if value is not None)


# What a sampler samples, for recordings that do not say whether the machine has it.
SAMPLED = {"nvml": DeviceKind.GPU, "tpu": DeviceKind.TPU, "tpu-sdk": DeviceKind.TPU}


def unrecorded(chart: Chart) -> tuple[str, ...]:
    """List what could not be recorded, and why; a device that the machine lacks is no missing data."""
    recording, trace, device = chart.fact(Recording), chart.fact(Trace), chart.get(Device)
    reasons = list(recording.notes)
    if manifest := recording.manifest:
        reasons += [f"{missing.what}: {missing.why}" for missing in manifest.missing]
        reasons += [f"agent, {error.where}: {error.error}" for error in manifest.agent_errors]
        for sampling in manifest.samplers:
            if sampling.reason and not _is_absent(sampling, device):
                reasons.append(f"sampler {sampling.name}: {sampling.reason}")
    reasons += [str(device.missing or "") if device else "", *trace.errors, *trace.warnings, *trace.damage]
    return tuple(dict.fromkeys(reason for reason in reasons if reason))


def _is_absent(sampling: Sampling, device: Device | None) -> bool:
    """Say whether the machine lacks what this samples.

    Where that is not recorded: whether the run used no such device and none was sampled.
    """
    if sampling.absent is not None:
        return sampling.absent
    kind = SAMPLED.get(sampling.name)
    return bool(kind and device and device.kind is not kind and not sampling.count)
