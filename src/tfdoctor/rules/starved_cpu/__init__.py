"""The input pipeline saturates all CPU cores.

## What it checks

How much core time the pipeline's stages take per step, compared with what the cores that the run may use
(affinity and quota included) offer in that time, and whether the operating system saw those cores busy. On a run
that waits for its input, the pipeline takes the cores for itself; on a CPU run that does not wait, it takes them
from the compute. The report also shows whether the kernel throttled the run because of its quota, and how long
the pipeline decodes and resizes images.

## Why it matters

More threads do not help if no core is free: a `map` on all cores cannot get faster. The remaining options are
less work per example, or more cores.

## How to fix

First avoid work: cache what is identical in every epoch, and apply functions to whole batches. Then make the
work cheaper: store images at the size that the model takes, decode only the part that is used
(`tf.io.decode_and_crop_jpeg`), or decode at half or a quarter of the size (`ratio=2` saves the resizing and a
smaller part of the decoding). Changing `dct_method` does not help: TensorFlow uses the fast one by default. On a
run with an accelerator, do the augmentation in the model. As a last resort, produce the batches on other machines
with the tf.data service. If the control group's quota limits the cores, raise it (`docker run --cpus`,
Kubernetes' `limits.cpu`).

## Holds for

TensorFlow 2.3 and later, in recordings of `tfdoctor profile`, which count the busy cores. Python code
runs on one core at a time, however many are free: see python-input. If other programs use the cores, the rule
is not checked.

## Sources

- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
- [tf.data.experimental.service](https://www.tensorflow.org/api_docs/python/tf/data/experimental/service)
- [tf.io.decode_jpeg](https://www.tensorflow.org/api_docs/python/tf/io/decode_jpeg)
- [Control Group v2: CPU](https://docs.kernel.org/admin-guide/cgroup-v2.html)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.input.decoded_images import OVERSIZED_TIMES, DecodedImages
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.starved_cpu.cpu_pressure import CpuPressure
from tfdoctor.terms.humanize import milliseconds, number
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
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
BY_HAND = "what the stage computes has to be made cheaper, or moved to other machines"


@dataclass(frozen=True, slots=True)
class Limits:
    """When the cores are saturated, and when a quota is the cause."""

    needed: float = share_limit(
        0.8,
        "Smallest share of the available core time that the pipeline's stages must take; handing over "
        "elements and the training loop take the rest",
    )
    busy: float = share_limit(
        0.75,
        "Smallest share of the usable cores that must be busy according to the operating system, because "
        "threads may sleep in a stage; the samples of a short window extend beyond the window",
    )
    taken: float = share_limit(
        0.2,
        "Smallest share of the step by which the input slows the compute, on a CPU run that does not wait for "
        "input; as in uncached-preprocessing",
    )
    images: float = share_limit(
        0.5,
        "Smallest share of a stage's work spent decoding and resizing images at which smaller images are "
        "advised first",
    )
    throttled: float = share_limit(
        0.05,
        "Smallest share of time throttled by the control group's quota at which the quota is named as the cause",
    )


def check(  # noqa: PLR0913, PLR0917 - what the input takes, of which cores, and from whom
    pipeline: InputPipeline,
    breakdown: Breakdown,
    cores: Cores,
    device: Device,
    pressure: CpuPressure | None,
    contention: CpuContention,
    decodes: DecodedImages | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the core time that the input takes with what the cores offer."""
    work, critical = sum(stage.work_ms for stage in pipeline.stages), pipeline.critical
    offered = cores.usable * breakdown.step_ms
    share = work / offered if offered else 0.0
    offer = f"{number(cores.usable)} cores offer {milliseconds(offered)} per step"
    summary = f"Each batch takes {milliseconds(work)} of core time; {offer}"
    evidence = _evidence(share, cores, pressure, limits)
    waits = breakdown.waits_for_input
    crowds_out = contention.crowds_out(work, breakdown.step_ms, limits.taken)
    if share < limits.needed or not (waits or crowds_out):
        return Healthy(summary=summary, evidence=evidence)
    if doubt := _doubt(critical, cores, decodes, limits):
        return NotApplicable(reason=doubt)
    outcome = "more threads do not help" if waits else "the input takes them from the compute"
    cause = f"; {pressure.throttling}" if pressure and _throttled(pressure, limits) else ""
    gain = (Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),) if waits else ()
    return Finding(
        summary=f"{summary}, so {outcome}{cause}",
        evidence=(*evidence, *_of_stages(pipeline)),
        remedies=_remedies(critical, device, pressure, limits),
        effects=(*gain, *contention.relief(_images(critical, limits) or work)),
    )


def _of_stages(pipeline: InputPipeline) -> Iterator[Evidence]:
    if total := sum(stage.image_ms for stage in pipeline.stages):
        yield Measure("decoding and resizing images, per step", ms(total))
    yield Table.of(
        sorted((s for s in pipeline.stages if s.work_ms), key=lambda stage: -stage.work_ms),
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        ("core time per step", lambda stage: ms(stage.work_ms)),
        ("calls per step", lambda stage: count(stage.calls)),
        most=5,
    )


def _images(critical: StageTime | None, limits: Limits) -> float:
    """Return the work in ms per step of the slowest stage that smaller images spare; 0 where it is not most."""
    if critical is None or critical.image_ms < limits.images * critical.work_ms:
        return 0.0
    return critical.image_ms


OVERSIZED = "decoding images that are larger than used takes most of the core time; see oversized-decode"


def _doubt(critical: StageTime | None, cores: Cores, decodes: DecodedImages | None, limits: Limits) -> str:
    """Return why busy stages do not prove busy cores, or are not the fault to name; "" when they are."""
    if critical and critical.python_ms > critical.work_ms / 2:
        return f"{critical.title} runs Python, which uses one core at a time; see python-input"
    if not cores.sampled:
        return "the load of the cores was not sampled; record with `tfdoctor profile`"
    if not cores.certain:
        return (
            f"other programs used {number(cores.others)} cores during the recording; record again on an "
            "otherwise idle machine"
        )
    if cores.share < limits.busy:
        return (
            f"the pipeline's threads are always inside their stages, but only {number(cores.busy)} of "
            f"{number(cores.usable)} cores were busy: the threads wait for something else, such as storage"
        )
    images = decodes.images if decodes else ()
    own = [one for one in images if critical and one.stage.path == critical.path]
    oversized = any(one.times >= OVERSIZED_TIMES and one.share >= limits.images for one in own)
    return OVERSIZED if oversized else ""


def _throttled(pressure: CpuPressure | None, limits: Limits) -> bool:
    return bool(pressure and pressure.throttled and pressure.throttled >= limits.throttled)


def _evidence(share: float, cores: Cores, pressure: CpuPressure | None, limits: Limits) -> tuple[Evidence, ...]:
    measures = [
        Measure.share("share of core time taken by the input", share, limits.needed),
        Measure.share("share of usable cores that are busy", cores.share, limits.busy),
        Measure("cores that the run may use", count(cores.usable)),
    ]
    if pressure and pressure.throttled is not None:
        label = "share of time throttled by the control group's quota"
        measures.append(Measure.share(label, pressure.throttled, limits.throttled))
    if pressure and pressure.waiting is not None:
        label = "share of time in which a task waits for a CPU core"
        measures.append(Measure.share(label, pressure.waiting))
    return tuple(measures)


def _remedies(
    critical: StageTime | None, device: Device, pressure: CpuPressure | None, limits: Limits
) -> tuple[Remedy, ...]:
    at = critical.at if critical else None
    title = critical.title if critical else "the pipeline"
    less = Remedy(f"Reduce the work of {title} per example", WHOLE_BATCHES, at)
    if _images(critical, limits):
        less = Remedy(f"Give {title} images of the size that the model takes", SMALL_IMAGES, at)
    remedies = [less]
    if device.kind != DeviceKind.CPU:
        remedies.append(Remedy("Augment in the model, on the accelerator", IN_THE_MODEL, at))
    if _throttled(pressure, limits):
        remedies.insert(0, Remedy("Raise the container's CPU limit, or remove it", QUOTA))
    service = "Produce the batches on other machines with the tf.data service"
    return (*remedies, Remedy(service, SERVICE))


SMALL_IMAGES = """\
# store them once at the size that the model takes, and decode these files:
small = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (256, 256), antialias=True)
tf.io.write_file(small_path, tf.io.encode_jpeg(tf.cast(small, tf.uint8), quality=95))
# or decode at half, a quarter or an eighth of the size, where the shorter side stays large enough:
image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=4)"""

WHOLE_BATCHES = """\
# apply to whole batches what does not need single examples:
dataset = dataset.batch(batch_size).map(function, num_parallel_calls=tf.data.AUTOTUNE)"""

IN_THE_MODEL = """\
augment = keras.Sequential([keras.layers.RandomFlip("horizontal"), keras.layers.RandomRotation(0.1)])
outputs = model(augment(inputs))  # inputs: uint8 images, which are also faster to copy"""

QUOTA = """\
# docker run --cpus=8 ...
# Kubernetes: resources: {limits: {cpu: "8"}, requests: {cpu: "8"}}"""

SERVICE = """\
# on one machine: dispatcher = tf.data.experimental.service.DispatchServer(
#     tf.data.experimental.service.DispatcherConfig(port=5050)); dispatcher.join()
# on each machine that produces batches: worker = tf.data.experimental.service.WorkerServer(
#     tf.data.experimental.service.WorkerConfig(dispatcher_address="HOST:5050",
#                                               worker_address="THIS_HOST:5051", port=5051)); worker.join()
dataset = dataset.apply(  # after batch(), before prefetch(); the files must be readable there
    tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC,
        service="grpc://HOST:5050",
    )
)"""


def example(
    work: float = 28.0,
    *,
    breakdown: Breakdown | None = None,
    cores: Cores = Cores(2.0, 1.9),
    device: Device = Device(DeviceKind.CPU, 1, 1),
    pressure: CpuPressure | None = None,
    decodes: DecodedImages | None = None,
    **more: Any,  # noqa: ANN401 - of the stage
) -> Verdict:
    """A decode takes 28 of the 30 ms of core time that two cores offer in a step of 15 ms."""
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", work, cores.busy, **more)
    step = breakdown or Breakdown.of(input=11.0, device=4.0)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        step,
        cores,
        device,
        pressure or CpuPressure(),
        CpuContention.measure(device, cores, step),
        decodes,
    )


sick = example


def healthy() -> Verdict:
    """A smaller decode, for which the step does not wait."""
    return example(5.0, breakdown=Breakdown.of(input=0.1, device=4.0), cores=Cores(2.0, 1.5))
