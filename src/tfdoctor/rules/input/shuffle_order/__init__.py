from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

ORDER = "the examples come in another order"
BEFORE_BATCH = "Shuffle before batch, with a buffer for at least as many examples as now"
OVERLAP = "so epochs overlap: some examples appear twice before others appear once"
EACH_ONCE = "each epoch should contain every example once; the buffer is then refilled in each epoch"
BEFORE_REPEAT = f"Shuffle before repeat if {EACH_ONCE}"

BATCHES = frozenset(("Batch", "ParallelBatch", "PaddedBatch"))

# Kinds that leave the order and the grouping of elements as they are.
PASSING = frozenset(("Map", "ParallelMap", "Prefetch", "Options", "Cache", "Take", "Skip", "Shard", "Filter"))
# Kinds that yield their elements one after the other, in stored order.
SOURCES = frozenset(("TensorSlice", "Range", "TFRecord", "TextLine", "FixedLengthRecord"))


class Limits(RuleLimits):
    share: float = share_limit(0.01)


def check(properties: DatasetProperties, limits: Limits = Limits()) -> Verdict:
    """Check the pipeline's only shuffle, if the script itself builds the pipeline from one source."""
    line = properties.line()
    shuffles = [at for at, dataset in enumerate(line) if kind_of(dataset) == "Shuffle"]
    if not shuffles:
        return Healthy(summary="No tf.data shuffle runs between the training loop and the source of the data")
    *stages, source = line
    known = PASSING | BATCHES | {"Shuffle", "Repeat"}
    understood = kind_of(source) in SOURCES and all(kind_of(stage) in known for stage in stages)
    own = all(stage.function_at for stage in stages if stage.function)
    if len(shuffles) > 1 or not own or not understood:
        why = "the order of its stages does not show how well it mixes the examples"
        return NotApplicable(reason=f"the pipeline has several shuffles or sources, or a library builds it: {why}")
    at, passes, shuffle = shuffles[0], properties.passes, line[shuffles[0]]
    batches_before = any(kind_of(stage) in BATCHES for stage in line[:at])
    name, held = f"shuffle({shuffle.parameters.buffer_size or ''})", int(shuffle.parameters.buffer_size or 1)
    ahead = next(stage for stage in line[at + 1 :] if kind_of(stage) not in PASSING)
    size, times = ahead.parameters.batch_size or 1, ahead.parameters.count
    where = Table(("shuffle", "your line"), ((name, shuffle.at or "unknown"),))
    evidence: tuple[Evidence, ...] = (Measure("examples per batch that stay together", count(size)), where)
    if kind_of(ahead) in BATCHES and size != 1 and not batches_before:  # a batch of batches consists of sequences
        again = any(kind_of(stage) == "Repeat" for stage in properties.upstream(ahead))
        together = "" if again else f"; the same {size} examples stay together every epoch"
        summary = f"{name} comes after batch({size}), so only whole batches are shuffled{together}"
        buffer = min(held * size, properties.elements(source) or held * size)  # at most all examples
        action, code = BEFORE_BATCH, f"dataset = dataset.shuffle({buffer}).batch({size})"
    elif kind_of(ahead) == "Repeat" and times not in {0, 1} and (passes is None or passes > 1.0):
        summary = f"{name} comes after repeat(), {OVERLAP}"
        rows = (("repeat", ahead.at or "unknown"), (name, shuffle.at or "unknown"))
        evidence = (Table(("stage (in order of execution)", "your line"), rows),)
        action, code = BEFORE_REPEAT, f"dataset = dataset.{name}.repeat({times if times and times > 0 else ''})"
    else:
        return _size(properties, shuffle, name, where, limits)
    remedy = Remedy(action, code, shuffle.at, "earlier-shuffle", changes=ORDER)
    return Finding(summary=summary, evidence=evidence, remedies=(remedy,), severity=Severity.NOTE)


def _size(properties: DatasetProperties, shuffle: Dataset, name: str, where: Table, limits: Limits) -> Verdict:
    """Compare the buffer with the examples of one epoch."""
    held, examples = shuffle.parameters.buffer_size, properties.elements(shuffle)
    if held is None or held < 1 or not examples:
        return Healthy(summary=f"{name} comes before batch and repeat; the number of examples is unknown")
    share = min(1.0, held / examples)
    size, label = properties.element_bytes(shuffle), "maximum memory of a buffer for all examples"
    memory = (Measure(label, nbytes(size * examples)),) if size else ()
    action = "If the data is sorted, shuffle its indices or file names, or shuffle it once on disk"
    mixes = f"{number(held)} of {examples:,} examples at a time: sorted data stays nearly sorted"
    return judged(
        Measure.share("share of the examples in the buffer", share, limits.share),
        healthy=f"{name} mixes {percent(share)} of the {examples:,} examples at a time",
        finding=f"{name} mixes {mixes}",
        wrong=share < limits.share,
        details=(*memory, where),
        remedies=[Remedy(action, CODE["indices"], shuffle.at)],
        severity=Severity.NOTE,
    )
