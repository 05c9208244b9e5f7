from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.decoded_images import OVERSIZED_TIMES, DecodedImage, DecodedImages
from tfdoctor.facts.machine.cpu_contention import CpuContention

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "smaller images change what the model learns from, so the accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """When decoded images are too large, and when that matters."""

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
    worst = max(images.images, key=_spared_ms)
    summary = f"{worst.stage.title} decodes images of {_text(worst.decoded)} pixels and uses {_text(worst.used)}"
    measures = (
        Measure("factor between the sides of the images", count(worst.times), count(limits.times)),
        Measure.share("share of the work in decoding and resizing", worst.share, limits.share),
        Measure("decoding and resizing, per step", ms(worst.work_ms)),
    )
    if worst.times < limits.times or worst.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    found = _finding(worst, summary, measures, contention)
    if breakdown.waits_for_input and worst.stage in pipeline.limiting:
        return found
    spared_ms = _spared_ms(worst)
    if cores is None or not contention.crowds_out(spared_ms, breakdown.step_ms, limits.taken):
        return Healthy(summary=f"{summary}; {breakdown.little_wait}", evidence=measures)
    least = ms(limits.taken * breakdown.step_ms)
    taken = Measure(TAKEN, ms(contention.taken_ms(spared_ms)), least)
    return _from_compute(found, taken, cores, breakdown)


TAKEN = "time that this takes from the model's operations at most, per step"


def _from_compute(finding: Finding, taken: Measure, cores: Cores, breakdown: Breakdown) -> Finding | NotApplicable:
    """Show that the work takes cores from the model, in a step that does not wait for it."""
    if not cores.certain:
        return NotApplicable(
            reason=f"{breakdown.little_wait}, and other programs used {number(cores.others)} of "
            f"{number(cores.usable)} cores: whether decoding takes cores from the model is unknown; record "
            "again on an otherwise idle machine"
        )
    busy = f"the run keeps {number(round(cores.busy, 1))} of its {number(cores.usable)} cores busy"
    return replace(
        finding,
        summary=f"{finding.summary}, on cores that the model's operations need: {busy}",
        evidence=(taken, *finding.evidence),
    )


def _spared_ms(image: DecodedImage) -> float:
    return image.work_ms * (1.0 - image.kept)


def _finding(
    image: DecodedImage, summary: str, measures: tuple[Measure, ...], contention: CpuContention
) -> Finding:
    columns = ("operation", "your line", "decoded, height", "width", "used, height", "width ")
    row = (image.type, image.at or "unknown", *map(count, (*image.decoded, *image.used)))
    at = image.at or image.stage.at
    remedies = [Remedy("Store smaller copies of the images", CODE["copies"].format(image.used), at)]
    divisor = max((divisor for divisor in (2, 4, 8) if divisor <= image.times), default=1)
    ours = image.stage.dataset is not None and image.stage.dataset.function_at is not None
    if image.type == "DecodeJpeg" and divisor > 1 and ours and image.ratio == 1:
        action = f"Decode at 1/{divisor} of the size"
        remedies.insert(0, Remedy(action, DECODED.format(divisor), at, "decode-ratio", changes=SMALLER))
    stage = image.stage.scaled(1.0 - image.share * (1.0 - image.kept), Bound.AT_MOST)
    return Finding(
        summary=f"{summary}: {milliseconds(image.work_ms)} per step",
        evidence=(*measures, Table(columns, (row,))),
        remedies=tuple(remedies),
        effects=(stage, *contention.relief(_spared_ms(image))),
    )


SMALLER = "the images differ slightly"

DECODED = "image = tf.io.decode_jpeg(data, channels=3, ratio={})"


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
