from tfdoctor.families.kit import *
from tfdoctor.rules.input.starved_cpu.cpu_pressure import CpuPressure

__doc__, CODE = page(__file__)

ELSE = "the threads wait for something else, such as storage"
IDLE = "record again on an otherwise idle machine"
DECODING = "decoding images that are larger than used takes most of the core time; see oversized-decode"


class Limits(RuleLimits):
    needed: float = share_limit(0.8)
    busy: float = share_limit(0.75)
    taken: float = share_limit(0.2)
    images: float = share_limit(0.5)
    throttled: float = share_limit(0.05)


def check(  # noqa: PLR0913, PLR0917 - what the input takes, of which cores, and from whom
    pipeline: InputPipeline, breakdown: Breakdown, cores: Cores, device: Device, pressure: CpuPressure | None,
    contention: CpuContention, decodes: DecodedImages | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the core time that the input takes with what the cores offer."""
    work, critical = sum(stage.work_ms for stage in pipeline.stages), pipeline.critical
    at, title = (critical.at, critical.title) if critical else (None, "the pipeline")
    offered = cores.usable * breakdown.step_ms
    share = work / offered if offered else 0.0
    usable = with_noun(cores.usable, "core")
    summary = (
        f"Each batch takes {milliseconds(work)} of core time; a step has {milliseconds(offered)} of it on {usable}"
    )
    kernel = pressure or CpuPressure()
    measures = [
        Measure.share("share of core time taken by the input", share, limits.needed),
        Measure.share("share of usable cores that are busy", cores.share, limits.busy),
        Measure("cores that the run may use", count(cores.usable)),
    ]
    counted = (
        ("share of time throttled by the control group's quota", kernel.throttled, limits.throttled),
        ("share of time in which a task waits for a CPU core", kernel.waiting, None),
    )
    measures += (Measure.share(label, share, least) for label, share, least in counted if share is not None)
    waits = breakdown.waits_for_input
    crowds_out = contention.crowds_out(work, breakdown.step_ms, limits.taken)
    if share < limits.needed or not (waits or crowds_out):
        return Healthy(summary=summary, evidence=tuple(measures))
    # Why busy stages do not prove busy cores, or are not the fault to name.
    own = [one for one in decodes.images if critical and one.stage.path == critical.path] if decodes else []
    runs_python = critical and critical.python_ms > critical.work_ms / 2
    waits_else = f"only {number(cores.busy)} of {usable} had work: {ELSE}"
    doubt = why_not(
        (runs_python, f"{title} runs Python, which uses one core at a time; see python-input"),
        (not cores.sampled, "the load of the cores was not sampled; record with `tfdoctor profile`"),
        (not cores.certain, f"other programs used {with_noun(cores.others, 'core')} during the recording; {IDLE}"),
        (cores.share < limits.busy, f"the pipeline's threads are always inside their stages, but {waits_else}"),
        (any(one.times >= OVERSIZED_TIMES and one.share >= limits.images for one in own), DECODING),
    )
    if doubt:
        return NotApplicable(reason=doubt)
    throttled = bool(kernel.throttled and kernel.throttled >= limits.throttled)
    outcome = "more threads do not help" if waits else "the input takes them from the compute"
    quota = f" of {with_noun(kernel.quota, 'core')}" if kernel.quota else ""
    cause = f"; the control group's quota{quota} throttles the run" if throttled else ""
    images_ms = critical.image_ms if critical and critical.image_ms >= limits.images * critical.work_ms else 0.0
    all_images_ms = sum(stage.image_ms for stage in pipeline.stages)
    images = [Measure("decoding and resizing images, per step", ms(all_images_ms))] if all_images_ms else []
    working = sorted((one for one in pipeline.stages if one.work_ms), key=lambda one: -one.work_ms)
    calls = ("calls per step", lambda stage: count(stage.calls))
    remedies = [
        (throttled, Remedy("Raise the container's CPU limit, or remove it", CODE["quota"])),
        (images_ms, Remedy(f"Give {title} images of the size that the model takes", CODE["small-images"], at)),
        (not images_ms, Remedy(f"Reduce the work of {title} per example", CODE["whole-batches"], at)),
        (
            device.kind != DeviceKind.CPU,
            Remedy("Augment in the model, on the accelerator", CODE["in-the-model"], at),
        ),
        (True, Remedy("Produce the batches on other machines with the tf.data service", CODE["service"])),
    ]
    gain = (Effect(Stage.INPUT, scales=0.0, bound=Bound.AT_MOST),) if waits else ()
    return Finding(
        summary=f"{summary}, so {outcome}{cause}",
        evidence=(*measures, *images, work_table(working, calls, work="core time per step", most=5)),
        remedies=tuple(remedy for helps, remedy in remedies if helps),
        effects=(*gain, *contention.relief(images_ms or work)),
    )
