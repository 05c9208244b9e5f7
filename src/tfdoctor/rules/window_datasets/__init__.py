from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.window_datasets.window_stages import WindowJoins

__doc__, CODE = page(__file__)
TOPIC, SINCE = Topic.INPUT, "0.1.0"
BY_HAND = "the windows have to be made in another way, whose order of examples has to be checked"

# Least that one thread copies in ms: 1 GB/s, a tenth of a core's bandwidth; as in per-element-map.
BYTES_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Limits:
    windows: float = limit(8.0, least=1.0)
    copying: float = share_limit(0.3)
    taken: float = share_limit(0.2)


def check(
    windows: WindowJoins,
    pipeline: InputPipeline,
    breakdown: Breakdown,
    contention: CpuContention,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the time per window with what copying its bytes takes, in the slowest part of the pipeline."""
    if not windows.joins:
        return Healthy(summary="No stage joins windows that are datasets")
    found = max(windows.joins, key=lambda one: one.work_ms)
    if breakdown.waits_for_input:
        limiting = [one for one in windows.joins if one.join in pipeline.limiting]
        if not limiting:
            return Healthy(summary="Making windows does not limit the pipeline")
        found = max(limiting, key=lambda one: one.join.work_ms)
    elif not contention.crowds_out(found.work_ms, breakdown.step_ms, limits.taken):
        return Healthy(summary=f"Making windows does not slow training: {breakdown.little_wait}")
    each, number = found.window_ms, found.join.calls
    summary = f"{found.join.title} makes a dataset for each window: {milliseconds(each)}"
    if found.nbytes is None:
        return NotApplicable(reason=f"{summary}, but the size of a window is unknown")
    copying = min(1.0, found.nbytes / BYTES_PER_MS / each) if each else 1.0
    measures = (
        Measure("windows per step", count(number), count(limits.windows)),
        Measure("bytes of a window", nbytes(found.nbytes)),
        Measure("time per window", ms(each)),
        Measure.share("maximum share of the time per window spent copying it", copying, limits.copying),
    )
    if number <= limits.windows or copying > limits.copying:
        return Healthy(summary=f"{summary}; this takes little beside the data", evidence=measures)
    stages = (found.join, *found.inner, *found.maps)
    left = max(copying, 1.0 / found.batch) if found.batch else copying  # of which the copying of the windows stays
    spared_ms = sum(stage.work_ms for stage in stages) * (1.0 - left)
    remedy = Remedy(
        "Take all windows of a batch with one gather, or slice them from one array",
        CODE["gather"],
        found.join.at,
        "sliding-windows",
        changes="the array of all windows is kept in memory",
    )
    scaled = (stage.scaled(left, Bound.AT_MOST) for stage in stages if stage.work_ms)
    return Finding(
        summary=f"{summary}, {round(number)} times per step",
        evidence=(*measures, work_table(stages, ("calls per step", lambda stage: count(stage.calls)))),
        remedies=(remedy,),
        effects=(*scaled, *contention.relief(spared_ms)),
    )
