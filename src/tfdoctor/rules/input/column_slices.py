from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (pipeline_ran,)

# Kinds of datasets between the rows and their batch that look at no value.
PASSING = frozenset(("Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard"))
# What a batch takes for each column with tf.gather: 0.29 ms for 20 of them, on two busy cores of an EPYC.
GATHER_MS = 0.02
TEXT_BYTES = 16  # What is copied of a text: it is moved, not read


class Limits(RuleLimits):
    columns: float = limit(6.0, least=1.0)
    slice_bytes: float = limit(4096.0, least=1.0)
    share: float = share_limit(0.05)
    taken: float = share_limit(0.05)


def check(
    pipeline: InputPipeline, breakdown: Breakdown, properties: DatasetProperties, contention: CpuContention,
    cores: Cores | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Compare what cutting and joining rows takes with one gather per column and batch."""
    line = properties.line()
    # The datasets from the first batch to the arrays that it takes rows of; none where work lies between.
    first = next((at for at in reversed(range(len(line) - 1)) if kind_of(line[at]) not in PASSING), len(line))
    kinds = [kind_of(one) for one in line[first:]]
    parts = line[first:] if kinds[:1] in (["Batch"], ["ParallelBatch"]) and kinds[-1] == "TensorSlice" else ()
    stages = [one for one in pipeline.stages if one.dataset in parts and one.work_ms]
    shown = TENSOR.findall(parts[-1].element) if parts else []
    columns = (parts[-1].tensors or len(shown)) if parts else 0
    if not stages or not shown or columns < limits.columns:
        return Healthy(summary="No rows of many columns are cut one by one")
    bytes_of_row = 0
    for shape, dtype in shown:
        sizes = [int(one) for one in shape.replace(" ", "").split(",") if one.isdigit()]
        bytes_of_row += prod(sizes) * WIDTHS.get(dtype, TEXT_BYTES)
    size, work = bytes_of_row / len(shown), sum(one.work_ms for one in stages)
    batches = next((one.calls for one in stages if one.dataset == parts[0]), 1.0)
    spared = work - min(work, batches * columns * GATHER_MS)
    awaited = breakdown.waits_for_input and any(one in pipeline.limiting for one in stages)
    relief = contention.relief(spared) if cores is not None and cores.certain else ()
    crowds = relief and contention.crowds_out(spared, breakdown.step_ms, limits.taken)
    least_ms = limits.share * breakdown.step_ms
    shuffled = any(kind_of(one) == "Shuffle" for one in parts)
    batch = parts[0].parameters.batch_size
    code = CODE["gathered"].format(".shuffle(count)" if shuffled else "", batch or "batch_size")
    action = "Batch the rows' numbers, and gather each column once per batch"
    return judged(
        Measure("columns", count(columns), count(limits.columns)),
        Measure("mean bytes per row and column", nbytes(size), nbytes(limits.slice_bytes)),
        Measure("rows per step", count(batches * (batch or 1))),
        Measure("work on single rows per step", ms(work), ms(least_ms)),
        healthy=f"Cutting and joining rows of {columns} columns takes {milliseconds(work)} per step",
        wrong=size <= limits.slice_bytes and spared >= least_ms and bool(awaited or crowds),
        remedies=[Remedy(action, code, parts[-1].at)],
        effects=(*(one.scaled(1.0 - spared / work, Bound.AT_MOST) for one in stages), *relief),
    )
