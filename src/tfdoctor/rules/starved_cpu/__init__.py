from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.map_functions import OVERSIZED_TIMES, DecodedImages
from tfdoctor.rules.starved_cpu.cpu_pressure import CpuPressure

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "what the stage computes has to be made cheaper, or moved to other machines"


@dataclass(frozen=True, slots=True)
class Limits:
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
    kernel = pressure or CpuPressure()
    measures = [
        Measure.share("share of core time taken by the input", share, limits.needed),
        Measure.share("share of usable cores that are busy", cores.share, limits.busy),
        Measure("cores that the run may use", count(cores.usable)),
    ]
    if kernel.throttled is not None:
        label = "share of time throttled by the control group's quota"
        measures.append(Measure.share(label, kernel.throttled, limits.throttled))
    if kernel.waiting is not None:
        measures.append(Measure.share("share of time in which a task waits for a CPU core", kernel.waiting))
    waits = breakdown.waits_for_input
    crowds_out = contention.crowds_out(work, breakdown.step_ms, limits.taken)
    if share < limits.needed or not (waits or crowds_out):
        return Healthy(summary=summary, evidence=tuple(measures))
    if doubt := _doubt(critical, cores, decodes, limits):
        return NotApplicable(reason=doubt)
    throttled = bool(kernel.throttled and kernel.throttled >= limits.throttled)
    outcome = "more threads do not help" if waits else "the input takes them from the compute"
    cause = f"; {kernel.throttling}" if throttled else ""
    images_ms = critical.image_ms if critical and critical.image_ms >= limits.images * critical.work_ms else 0.0
    all_images_ms = sum(stage.image_ms for stage in pipeline.stages)
    images = [Measure("decoding and resizing images, per step", ms(all_images_ms))] if all_images_ms else []
    working = sorted((one for one in pipeline.stages if one.work_ms), key=lambda one: -one.work_ms)
    calls = ("calls per step", lambda stage: count(stage.calls))
    gain = (Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),) if waits else ()
    return Finding(
        summary=f"{summary}, so {outcome}{cause}",
        evidence=(*measures, *images, work_table(working, calls, work="core time per step", most=5)),
        remedies=tuple(_remedies(critical, device, throttled=throttled, images=bool(images_ms))),
        effects=(*gain, *contention.relief(images_ms or work)),
    )


def _doubt(critical: StageTime | None, cores: Cores, decodes: DecodedImages | None, limits: Limits) -> str:
    """Return why busy stages do not prove busy cores, or are not the fault to name; "" when they are."""
    if critical and critical.python_ms > critical.work_ms / 2:
        return f"{critical.title} runs Python, which uses one core at a time; see python-input"
    if not cores.sampled:
        return "the load of the cores was not sampled; record with `tfdoctor profile`"
    if not cores.certain:
        used = f"other programs used {number(cores.others)} cores during the recording"
        return f"{used}; record again on an otherwise idle machine"
    if cores.share < limits.busy:
        return (
            f"the pipeline's threads are always inside their stages, but only {number(cores.busy)} of "
            f"{number(cores.usable)} cores were busy: the threads wait for something else, such as storage"
        )
    own = [one for one in decodes.images if critical and one.stage.path == critical.path] if decodes else []
    if any(one.times >= OVERSIZED_TIMES and one.share >= limits.images for one in own):
        return "decoding images that are larger than used takes most of the core time; see oversized-decode"
    return ""


def _remedies(critical: StageTime | None, device: Device, *, throttled: bool, images: bool) -> Iterator[Remedy]:
    at, title = (critical.at, critical.title) if critical else (None, "the pipeline")
    if throttled:
        yield Remedy("Raise the container's CPU limit, or remove it", CODE["quota"])
    if images:
        yield Remedy(f"Give {title} images of the size that the model takes", CODE["small-images"], at)
    else:
        yield Remedy(f"Reduce the work of {title} per example", CODE["whole-batches"], at)
    if device.kind != DeviceKind.CPU:
        yield Remedy("Augment in the model, on the accelerator", CODE["in-the-model"], at)
    yield Remedy("Produce the batches on other machines with the tf.data service", CODE["service"])
