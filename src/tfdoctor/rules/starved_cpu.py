"""The input pipeline has all cores at work and still cannot keep up.

## What it checks

On a run that waits for its input: how much core time the pipeline's stages take per step, against
what the cores that the run may use (affinity and quota included) offer in that time, and whether the
operating system saw those cores at work. Whether the kernel held the run back for its quota is shown
beside it.

## Why it matters

More threads do not help where no core is free: a `map` on all cores is as fast as it gets. What is left
is less work for each example, or more cores.

## How to fix

First what avoids the work: cache what is the same in every epoch, and apply functions to whole
batches. Then make it cheaper: store images once at the size that the model takes, decode only the part that
is used (`tf.io.decode_and_crop_jpeg`) or at a half or a quarter of the size (`ratio=2` saves the
resizing, and less of the decoding). `dct_method` helps nobody who left it alone: TensorFlow takes the fast
one by default. On a run with an accelerator let that do the augmentation, in the model. Last,
let other machines make the batches: the tf.data service. Where the control group's quota is what ends the
cores, raise it (`docker run --cpus`, Kubernetes' `limits.cpu`).

## Holds for

TensorFlow 2.3 and later, on recordings of `tfdoctor profile`, which count the cores. Work in Python
runs on one core at a time, whatever is free: python-input tells of it. While other programs use the cores,
nothing is said.

## Sources

- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
- [tf.data.experimental.service](https://www.tensorflow.org/api_docs/python/tf/data/experimental/service)
- [tf.io.decode_jpeg](https://www.tensorflow.org/api_docs/python/tf/io/decode_jpeg)
- [Control Group v2: CPU](https://docs.kernel.org/admin-guide/cgroup-v2.html)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.machine.cpu_pressure import CpuPressure
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds, number
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    needed: float = limit(
        0.8,
        "of the core time that a step offers, taken by the pipeline's stages: hand-overs and the "
        "training loop take the rest",
        most=1.0,
    )
    busy: float = limit(
        0.75,
        "of the usable cores at work as the operating system counts, so that threads which sleep in "
        "a stage are not taken for work; a short window's samples reach beyond it",
        most=1.0,
    )
    throttled: float = limit(
        0.05,
        "of the time for which the control group's quota stopped the run, from which on it is named "
        "as the cause",
        most=1.0,
    )


LIMITS = Limits()


def check(  # noqa: PLR0913, PLR0917 - what the input takes, of which cores, and from whom
    pipeline: InputPipeline,
    breakdown: Breakdown,
    cores: Cores,
    device: Device,
    pressure: CpuPressure | None,
    contention: CpuContention,
    limits: Limits = LIMITS,
) -> Verdict:
    """Compare the core time that the input takes with what the cores offer."""
    work = sum(stage.work_ms for stage in pipeline.stages)
    offered = cores.usable * breakdown.step_ms
    share = work / offered if offered else 0.0
    said = (
        f"Making a step's batch takes {milliseconds(work)} of core time, and "
        f"{number(cores.usable)} cores offer {milliseconds(offered)}"
    )
    evidence = _evidence(share, cores, pressure, limits)
    if not breakdown.waits_for_input or share < limits.needed:
        return Healthy(summary=said, evidence=evidence)
    if doubt := _doubt(pipeline.critical, cores, limits):
        return NotApplicable(reason=doubt)
    return Finding(
        summary=f"{said}: more threads cannot help{_because(pressure, limits)}",
        evidence=(*evidence, _stages(pipeline)),
        remedies=_remedies(pipeline.critical, device, pressure, limits),
        effects=(Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST), *contention.relief(work)),
    )


def _doubt(critical: StageTime | None, cores: Cores, limits: Limits) -> str:
    """Return why busy stages do not prove busy cores; "" when they do."""
    if critical and critical.python_ms > critical.work_ms / 2:
        return f"{critical.title} runs Python, which uses one core at a time; python-input tells what helps"
    if not cores.sampled:
        return "how busy the cores were was not sampled; record with `tfdoctor profile`"
    if not cores.certain:
        return (
            f"other programs used {number(cores.others)} cores meanwhile; record again on a machine of its "
            "own to see whether the cores suffice"
        )
    if cores.share < limits.busy:
        return (
            f"the pipeline's threads are in their stages all the time, but only {number(cores.busy)} of "
            f"{number(cores.usable)} cores were at work: they wait for something else, such as storage"
        )
    return ""


def _throttled(pressure: CpuPressure | None, limits: Limits) -> bool:
    return bool(pressure and pressure.throttled and pressure.throttled >= limits.throttled)


def _because(pressure: CpuPressure | None, limits: Limits) -> str:
    if pressure is None or not _throttled(pressure, limits):
        return ""
    quota = f" of {number(pressure.quota)} cores" if pressure.quota else ""
    return f"; the control group's quota{quota} holds the run back"


def _evidence(
    share: float, cores: Cores, pressure: CpuPressure | None, limits: Limits
) -> tuple[Evidence, ...]:
    found = [
        Measure("of the cores' time needed by the input", ratio(share), ratio(limits.needed)),
        Measure("of the usable cores at work", ratio(cores.share), ratio(limits.busy)),
        Measure("cores that the run may use", count(cores.usable)),
    ]
    if pressure and pressure.throttled is not None:
        label = "held back by the control group's quota, per time"
        found.append(Measure(label, ratio(pressure.throttled), ratio(limits.throttled)))
    if pressure and pressure.waiting is not None:
        found.append(
            Measure("of the time some task waited for a processor", ratio(pressure.waiting))
        )
    return tuple(found)


def _stages(pipeline: InputPipeline) -> Table:
    working = sorted((s for s in pipeline.stages if s.work_ms), key=lambda s: -s.work_ms)
    rows = tuple((s.title, s.at or "unknown", ms(s.work_ms), count(s.calls)) for s in working[:5])
    return Table(("stage", "your line", "core time per step", "calls per step"), rows)


def _remedies(
    critical: StageTime | None, device: Device, pressure: CpuPressure | None, limits: Limits
) -> tuple[Remedy, ...]:
    at = critical.at if critical else None
    title = critical.title if critical else "the pipeline"
    found = [Remedy(f"Give {title} less to do for each example", LESS_WORK, at)]
    if device.kind != DeviceKind.CPU:
        found.append(Remedy("Augment in the model, on the accelerator", IN_THE_MODEL, at))
    if _throttled(pressure, limits):
        found.insert(0, Remedy("Raise the container's CPU limit, or remove it", QUOTA))
    found.append(Remedy("Let other machines make the batches: the tf.data service", SERVICE))
    return tuple(found)


LESS_WORK = """\
# images: store them once at the size that the model takes, and decode that
small = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (256, 256), antialias=True)
tf.io.write_file(small_path, tf.io.encode_jpeg(tf.cast(small, tf.uint8), quality=95))
# what needs no single example, on whole batches:
dataset = dataset.batch(batch_size).map(function, num_parallel_calls=tf.data.AUTOTUNE)"""

IN_THE_MODEL = """\
augment = keras.Sequential([keras.layers.RandomFlip("horizontal"), keras.layers.RandomRotation(0.1)])
outputs = model(augment(inputs))  # inputs: uint8 images, which are also smaller to copy"""

QUOTA = """\
# docker run --cpus=8 ...
# Kubernetes: resources: {limits: {cpu: "8"}, requests: {cpu: "8"}}"""

SERVICE = """\
# on a machine for all: dispatcher = tf.data.experimental.service.DispatchServer(
#     tf.data.experimental.service.DispatcherConfig(port=5050)); dispatcher.join()
# on each machine that makes batches: worker = tf.data.experimental.service.WorkerServer(
#     tf.data.experimental.service.WorkerConfig(dispatcher_address="HOST:5050",
#                                               worker_address="THIS_HOST:5051", port=5051)); worker.join()
dataset = dataset.apply(  # after batch(), before prefetch(); the files must be readable there
    tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC,
        service="grpc://HOST:5050",
    )
)"""


def sick() -> Verdict:
    """A decode that keeps both cores busy for 28 of the 30 ms that they offer in a step of 15 ms."""
    return check(
        _pipeline(28.0),
        Breakdown.of(input=11.0, device=4.0),
        Cores(2.0, 1.9),
        CPU,
        CpuPressure(),
        CpuContention(crowded=True, cores=2.0, compute_ms=4.0, beside=4 / 15),
    )


def healthy() -> Verdict:
    """A smaller decode, which leaves the step nothing to wait for."""
    return check(
        _pipeline(5.0),
        Breakdown.of(input=0.1, device=4.0),
        Cores(2.0, 1.5),
        CPU,
        CpuPressure(),
        CpuContention(crowded=False),
    )


CPU = Device(DeviceKind.CPU, 1, 1)


def _pipeline(work: float) -> InputPipeline:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::ParallelMapV2",
        kind="ParallelMapV2",
        work_ms=work,
        wall_ms=work / 1.9,
        asynchronous=True,
    )
    return InputPipeline.of(ahead, stage)
