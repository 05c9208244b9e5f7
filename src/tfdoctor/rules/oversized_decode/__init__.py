"""Images are decoded larger than they are used.

## What it checks

The size of the stored JPEG or PNG images (the headers of a few files), compared with the size to which the
pipeline resizes them directly after decoding, and the time of decoding and resizing. It speaks if the step waits
for input, or if the input takes cores from the compute of a CPU run: where the run itself keeps nearly all cores
busy, and this work may take a fifth of the step from them.

## Why it matters

Decoding takes time in proportion to the number of stored pixels. A network that takes 96 by 96 pixels needs one
of 75 pixels of a photo of 960 by 720.

## How to fix

Store the images once at the size that the model takes, or twice that if they are cropped at random later. If the
files must stay, JPEG can be decoded at a half, a quarter or an eighth of the size:
`tf.io.decode_jpeg(data, ratio=4)` saves part of the decoding, and resizing after it gives slightly different
pixels. If only a part of each image is used, `tf.io.decode_and_crop_jpeg` decodes that part.

## Holds for

TensorFlow 2.3 and later, for local files in recordings of `tfdoctor profile`. Images that are cropped before they
are resized, and images within records, are not checked. The saving is an upper bound: it assumes stored images of
the used size; `ratio` saves less.

## Sources

- [tf.io.decode_jpeg](https://www.tensorflow.org/api_docs/python/tf/io/decode_jpeg)
- [tf.io.decode_and_crop_jpeg](https://www.tensorflow.org/api_docs/python/tf/io/decode_and_crop_jpeg)
- [libjpeg-turbo: scaling while decoding](https://github.com/libjpeg-turbo/libjpeg-turbo/blob/main/doc/libjpeg.txt)
"""

from dataclasses import dataclass, replace

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.decoded_images import OVERSIZED_TIMES, DecodedImage, DecodedImages
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds, number
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Table, Verdict

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
    remedies = [Remedy("Store smaller copies of the images", COPIES.format(image.used), at)]
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

COPIES = """\
# once, before training:
small = tf.image.resize(tf.io.decode_image(tf.io.read_file(path)), {}, antialias=True)
tf.io.write_file(small_path, tf.io.encode_jpeg(tf.cast(small, tf.uint8), quality=95))"""


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def example(  # noqa: PLR0913, PLR0917 - what the verdict depends on
    decoded: tuple[int, int] = (720, 960),
    used: tuple[int, int] = (96, 96),
    share: float = 0.9,
    ratio: int = 1,
    work: float = 60.0,
    step: Breakdown | None = None,
    contention: CpuContention = CpuContention(crowded=False),
    cores: Cores | None = None,
) -> Verdict:
    """Photos of 960 by 720 pixels are resized to 96 by 96."""
    made = Dataset(
        id=1,
        kind="_ParallelMapDataset",
        function="load",
        function_at=Location("train.py", 12),
        at=Location("train.py", 20),
    )
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", work, 2, dataset=made)
    image = DecodedImage(stage, "DecodeJpeg", decoded, used, share, ratio, Location("train.py", 14))
    return check(
        DecodedImages((image,)),
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        step or Breakdown.of(input=20.0, device=10.0),
        contention,
        cores,
    )


sick = example


def healthy() -> Verdict:
    """The same network with stored images of 128 by 128."""
    return example((128, 128))
