from tfdoctor.facts.input.dataset_properties import next_batch, spec_bytes
from tfdoctor.facts.input.map_functions import NOT_VECTORIZABLE
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

JOINS = re.compile(r"FlatMap|(?:Parallel)?Interleave")  # Kinds of datasets that join datasets


class Limits(RuleLimits):
    windows: float = limit(8.0, least=1.0)
    copying: float = share_limit(0.3)
    taken: float = share_limit(0.2)


class WindowJoin(Record):
    """A stage that joins windows, and the stages that make and use them.

    ``inner`` are the stages that make the windows and pass on their elements. ``maps`` are those between the
    windows and the next batch, which also take whole batches. ``nbytes`` are those of one window; None is unknown.
    ``batch`` is the size of the next batch, 0 where none follows.
    """

    join: StageTime
    inner: tuple[StageTime, ...] = ()
    maps: tuple[StageTime, ...] = ()
    nbytes: float | None = None
    batch: int = 0

    @property
    def work_ms(self) -> float:
        """The work of all stages that make and join the windows, in ms per step."""
        return self.join.work_ms + sum(stage.work_ms for stage in self.inner)


class WindowJoins(Record):
    """All stages of the pipeline that join windows."""

    joins: tuple[WindowJoin, ...] = ()

    @classmethod
    def measure(cls, pipeline: InputPipeline, properties: DatasetProperties) -> Self:
        """Find the joins among the feeding datasets, and their stages in the trace."""
        joins = []
        for dataset in properties.chain:
            windows = next((d for d in properties.sources(dataset) if kind_of(d) == "Window"), None)
            join = next((s for s in pipeline.stages if s.dataset == dataset and s.calls), None)
            if not windows or not join or not JOINS.fullmatch(kind_of(dataset)):
                continue
            within = [stage for stage in pipeline.stages if feeds(stage.path, join.path)]
            series = f"{join.path}::Window"  # what is above it does not exist for the windows only
            inner = tuple(one for one in within if not one.path.startswith(f"{series}::"))
            passing, batch = next_batch(properties.chain, dataset.id)
            maps = (one for one in passing if kind_of(one) in {"Map", "ParallelMap"} and not one.python)
            ids = {one.id for one in maps if not any(map(NOT_VECTORIZABLE.fullmatch, one.types or ("If",)))}
            mapped = tuple(one for one in pipeline.stages if one.dataset and one.dataset.id in ids)
            # the bytes of a window, by how many elements were taken from it
            element = spec_bytes(" ".join(found[0] for found in TENSOR.finditer(windows.element)))
            taken = max((s.calls for s in within if s.kind == "Window" and s.path != series), default=0.0)
            size = element * taken / join.calls if element and taken else None
            joins.append(WindowJoin(join, inner, mapped, size, batch))
        return cls(tuple(joins))


def check(
    windows: WindowJoins, pipeline: InputPipeline, breakdown: Breakdown, contention: CpuContention,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
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
    number = found.join.calls
    each = found.work_ms / number if number else 0.0
    summary = f"{found.join.title} makes a dataset for each window: {milliseconds(each)}"
    if found.nbytes is None:
        return NotApplicable(reason=f"{summary}, but the size of a window is unknown")
    copying = min(1.0, found.nbytes / BYTES_PER_MS / each) if each else 1.0
    stages = (found.join, *found.inner, *found.maps)
    left = max(copying, 1.0 / found.batch) if found.batch else copying  # of which the copying of the windows stays
    spared_ms = sum(stage.work_ms for stage in stages) * (1.0 - left)
    remedy = Remedy(
        "Take all windows of a batch with one gather, or slice them from one array",
        CODE["gather"],
        found.join.at,
        changes="the array of all windows is kept in memory",
    )
    scaled = (stage.scaled(left, Bound.AT_MOST) for stage in stages if stage.work_ms)
    return judged(
        Measure("windows per step", count(number), count(limits.windows)),
        Measure("bytes of a window", nbytes(found.nbytes)),
        Measure("time per window", ms(each)),
        Measure.share("maximum share of the time per window spent copying it", copying, limits.copying),
        healthy=f"{summary}; this takes little beside the data",
        finding=f"{summary}, {round(number)} times per step",
        wrong=number > limits.windows and copying <= limits.copying,
        details=[work_table(stages, ("calls per step", lambda stage: count(stage.calls)))],
        remedies=[remedy],
        effects=(*scaled, *contention.relief(spared_ms)),
    )
