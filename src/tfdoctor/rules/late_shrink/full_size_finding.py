"""What is said of work on images that are made smaller only after it."""

from collections.abc import Iterator, Sequence

from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.rules.late_shrink.full_size_work import LateShrinking
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Effect, Finding, Measure, Remedy, Table, Verdict

DROPPED = "work on pixels that are dropped later, per step"


def finding(
    costly: Sequence[LateShrinking], contention: CpuContention | None, held: Verdict, pixels: float
) -> Finding:
    """Report operations that would take less time after the shrinking, and with them what is said of buffers."""
    worst = max(costly, key=lambda late: late.spared_ms)
    spared = sum(late.spared_ms for late in costly)
    all_ms = sum(one.ms for late in costly for one in late.work)
    table = Table.of(
        ((one, late) for late in costly for one in late.work),
        ("operation", lambda row: row[0].type),
        ("your line", lambda row: row[0].at),
        ("stage", lambda row: row[0].stage.title),
        ("time per step", lambda row: ms(row[0].ms)),
        ("time after shrinking", lambda row: ms(row[0].ms * row[1].kept)),
    )
    buffers = held if isinstance(held, Finding) else None
    return Finding(
        summary=f"{_what(worst)} {milliseconds(all_ms)} of work per step on full images",
        evidence=(
            Measure(DROPPED, ms(spared)),
            Measure("factor between the numbers of pixels", count(1.0 / worst.kept), count(pixels)),
            table,
            *(buffers.evidence if buffers else ()),
        ),
        remedies=(*map(_earlier, costly), *(buffers.remedies if buffers else ())),
        effects=(*_effects(costly), *(contention.relief(spared) if contention else ())),
        alike=len(costly) - 1,
    )


def _what(late: LateShrinking) -> str:
    verb = "cropped" if late.crops else "resized"
    return f"Images of {_text(late.large)} pixels are {verb} to {_text(late.small)} after"


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _effects(costly: Sequence[LateShrinking]) -> Iterator[Effect]:
    """Yield what is left of each stage's work."""
    for late in costly:
        for stage, spared in late.by_stage.values():
            yield stage.scaled(max(0.0, 1.0 - spared / stage.work_ms))


def _earlier(late: LateShrinking) -> Remedy:
    first = next((one.at for one in late.work if one.at), None)
    place = f"line {first.line}" if first else "these operations"
    size = f"{late.small[0]}, {late.small[1]}"
    code = f"image = tf.image.resize(image, ({size}))  # before {place}"
    if late.crops:
        code = f"image = image[top:top + {late.small[0]}, left:left + {late.small[1]}]  # before {place}"
    action = "Crop" if late.crops else "Resize"
    within = first is not None and late.at is not None and first.path == late.at.path
    return Remedy(
        f"{action} the images before changing their pixels",
        code,
        late.at or first,
        "earlier-resize" if within and not late.crops else "",
        changes="the images differ slightly",
    )
