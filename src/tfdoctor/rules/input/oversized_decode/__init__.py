from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    times: float = limit(OVERSIZED_TIMES, least=1.0)
    share: float = share_limit(0.2)
    taken: float = share_limit(0.2)


def check(
    images: DecodedImages, pipeline: InputPipeline, breakdown: Breakdown, contention: CpuContention,
    cores: Cores | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare the sizes of images before and after resizing."""
    if not images.images:
        return Healthy(summary="No image is decoded and resized in one function")
    worst = max(images.images, key=lambda image: image.spared_ms)
    sizes = [f"{height}x{width}" for height, width in (worst.decoded, worst.used)]
    summary = f"{worst.stage.title} decodes images of {sizes[0]} pixels and uses {sizes[1]}"
    measures = (
        Measure("factor between the sides of the images", count(worst.times), count(limits.times)),
        Measure.share("share of the work in decoding and resizing", worst.share, limits.share),
        Measure("decoding and resizing, per step", ms(worst.work_ms)),
    )
    if worst.times < limits.times or worst.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    outcome, taken = f"{summary}: {milliseconds(worst.work_ms)} per step", list[Measure]()
    if not breakdown.waits_for_input or worst.stage not in pipeline.limiting:
        if cores is None or not contention.crowds_out(worst.spared_ms, breakdown.step_ms, limits.taken):
            return Healthy(summary=f"{summary}; {breakdown.little_wait}", evidence=measures)
        if not cores.certain:
            others = f"other programs used {number(cores.others)} of {with_noun(cores.usable, 'core')}"
            why = (
                "whether decoding takes cores from the model is unknown; record again on an otherwise idle machine"
            )
            return NotApplicable(reason=f"{breakdown.little_wait}, and {others}: {why}")
        busy = f"the run keeps {number(round(cores.busy, 1))} of its {with_noun(cores.usable, 'core')} busy"
        outcome += f", on cores that the model's operations need: {busy}"
        least = ms(limits.taken * breakdown.step_ms)
        label = "time that this takes from the model's operations at most, per step"
        taken = [Measure(label, ms(contention.taken_ms(worst.spared_ms)), least)]
    at, dataset = worst.at or worst.stage.at, worst.stage.dataset
    remedies = [Remedy("Store smaller copies of the images", CODE["copies"].format(worst.used), at)]
    divisor = max((divisor for divisor in (2, 4, 8) if divisor <= worst.times), default=1)
    if worst.type == "DecodeJpeg" and divisor > 1 and dataset and dataset.function_at and worst.ratio == 1:
        code = f"image = tf.io.decode_jpeg(data, channels=3, ratio={divisor})"
        action, changes = f"Decode at 1/{divisor} of the size", "the images differ slightly"
        remedies.insert(0, Remedy(action, code, at, "decode-ratio", changes=changes))
    columns = ("operation", "your line", "decoded, height", "width", "used, height", "width ")
    row = (worst.type, worst.at or "unknown", *map(count, (*worst.decoded, *worst.used)))
    stage = worst.stage.scaled(1.0 - worst.share * (1.0 - worst.kept), Bound.AT_MOST)
    return Finding(
        summary=outcome,
        evidence=(*taken, *measures, Table(columns, (row,))),
        remedies=tuple(remedies),
        effects=(stage, *contention.relief(worst.spared_ms)),
    )
