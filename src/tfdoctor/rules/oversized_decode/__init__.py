from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.map_functions import OVERSIZED_TIMES, DecodedImage, DecodedImages

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "smaller images change what the model learns from, so the accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    times: float = limit(
        OVERSIZED_TIMES,
        "Factor by which both sides of the decoded image must exceed the used size; from it on, JPEG's own "
        "`ratio` applies",
        least=1.0,
    )
    share: float = share_limit(
        0.2, "Smallest share of the stage's work spent decoding and resizing; below it, other work limits the stage"
    )
    taken: float = share_limit(
        0.2,
        "Smallest share of the step that this work takes from the compute, on a CPU run that does not wait for "
        "input; as in uncached-preprocessing",
    )


def check(
    images: DecodedImages | Unavailable,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    contention: CpuContention,
    cores: Cores | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the sizes of images before and after resizing."""
    if isinstance(images, Unavailable):
        return NotApplicable(reason=str(images))
    if not images.images:
        return Healthy(summary="No image is decoded and resized in one function")
    worst = max(images.images, key=lambda image: image.spared_ms)
    spared_ms = worst.spared_ms
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
        if cores is None or not contention.crowds_out(spared_ms, breakdown.step_ms, limits.taken):
            return Healthy(summary=f"{summary}; {breakdown.little_wait}", evidence=measures)
        if not cores.certain:
            return NotApplicable(
                reason=f"{breakdown.little_wait}, and other programs used {number(cores.others)} of "
                f"{number(cores.usable)} cores: whether decoding takes cores from the model is unknown; record "
                "again on an otherwise idle machine"
            )
        busy = f"the run keeps {number(round(cores.busy, 1))} of its {number(cores.usable)} cores busy"
        outcome += f", on cores that the model's operations need: {busy}"
        least = ms(limits.taken * breakdown.step_ms)
        label = "time that this takes from the model's operations at most, per step"
        taken = [Measure(label, ms(contention.taken_ms(spared_ms)), least)]
    columns = ("operation", "your line", "decoded, height", "width", "used, height", "width ")
    row = (worst.type, worst.at or "unknown", *map(count, (*worst.decoded, *worst.used)))
    stage = worst.stage.scaled(1.0 - worst.share * (1.0 - worst.kept), Bound.AT_MOST)
    return Finding(
        summary=outcome,
        evidence=(*taken, *measures, Table(columns, (row,))),
        remedies=tuple(_remedies(worst)),
        effects=(stage, *contention.relief(spared_ms)),
    )


def _remedies(image: DecodedImage) -> Iterator[Remedy]:
    at, ours = image.at or image.stage.at, image.stage.dataset is not None and image.stage.dataset.function_at
    divisor = max((divisor for divisor in (2, 4, 8) if divisor <= image.times), default=1)
    if image.type == "DecodeJpeg" and divisor > 1 and ours and image.ratio == 1:
        code = f"image = tf.io.decode_jpeg(data, channels=3, ratio={divisor})"
        action, changes = f"Decode at 1/{divisor} of the size", "the images differ slightly"
        yield Remedy(action, code, at, "decode-ratio", changes=changes)
    yield Remedy("Store smaller copies of the images", CODE["copies"].format(image.used), at)
