"""The events of a GPU or TPU by stage."""

from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms
from tfdoctor.facts.timeline.compiled_kernels import CompiledKernels
from tfdoctor.facts.timeline.work import Work, tabulate
from tfdoctor.facts.timeline.xla_cpu_work import DEPTHWISE
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import EventType
from tfdoctor.trace.names import COLLECTIVE, COPY, TPU_COLLECTIVES, TPU_INFEEDS, TPU_TRANSFERS

STATS = ("tf_op", "annotation", "level 0")  # Where an event names its operation, by TensorFlow's version


def work_by_stage(device: Device, xla_programs: XlaPrograms, xla_operations: XlaOperations) -> dict[Stage, Work]:
    """Sort the events of the busiest GPU or TPU by stage."""
    stages: dict[Stage, list[tuple[tuple[str, str, str], EventType, int, int]]] = {}
    lines = work_lines(device.busiest) if device.busiest else ()
    kernels = CompiledKernels()
    if device.kind == DeviceKind.GPU:
        events = (event for line in lines for event in line.events())
        kernels = CompiledKernels.of(events, xla_programs, xla_operations)
    for event in (event for line in lines for event in line.events()):
        kind = event.type
        if kind.stats.get("hlo_category") in CONTAINERS:
            continue
        # TensorFlow 2.3 and 2.4 store the operation as "annotation".
        texts = (str(event.stats.get(key) or kind.stats.get(key) or "") for key in STATS)
        name, _, does = next((text for text in texts if ":" in text), "").rpartition(":")
        does = does.split("#")[0]
        if xla_programs.is_depthwise(str(kind.stats.get("program_id")), kind.display_name):
            does = DEPTHWISE
        if operation := kernels.find(event):
            name, does = operation.name, operation.type
        row = ((name, does, kind.name), kind, event.start_ps, event.end_ps)
        stages.setdefault(_stage(device.kind, kind), []).append(row)
    return {stage: tabulate(rows) for stage, rows in stages.items()}


def _stage(device: DeviceKind, kind: EventType) -> Stage:
    if device == DeviceKind.GPU:
        if COPY.match(kind.name):
            return Stage.TRANSFER
        return Stage.COLLECTIVE if COLLECTIVE.match(kind.name) else Stage.DEVICE
    category = str(kind.stats.get("hlo_category", ""))
    if category in TPU_INFEEDS:
        return Stage.INPUT
    if category in TPU_TRANSFERS:
        return Stage.TRANSFER
    return Stage.COLLECTIVE if category.startswith(TPU_COLLECTIVES) else Stage.DEVICE
