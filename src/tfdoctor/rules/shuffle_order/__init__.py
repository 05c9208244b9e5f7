from tfdoctor.diagnosis.kit import *

__doc__, CODE = page(__file__)
TOPIC, SINCE = Topic.INPUT, "0.1.0"
BY_HAND = "it changes the order of the examples, and with it the training"

ORDER = "the examples come in another order"

BATCHES = frozenset(("Batch", "ParallelBatch", "PaddedBatch"))

# Kinds that leave the order and the grouping of elements as they are.
PASSING = frozenset(("Map", "ParallelMap", "Prefetch", "Options", "Cache", "Take", "Skip", "Shard", "Filter"))
# Kinds that yield their elements one after the other, in stored order.
SOURCES = frozenset(("TensorSlice", "Range", "TFRecord", "TextLine", "FixedLengthRecord"))


@dataclass(frozen=True, slots=True)
class Limits:
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
        return NotApplicable(
            reason="the pipeline has several shuffles or sources, or a library builds it: the order of its "
            "stages does not show how well it mixes the examples"
        )
    at = shuffles[0]
    finding = _after_batch(properties, line, at) or _after_repeat(properties, line, at)
    return finding or _size(properties, line[at], limits)


def _name(shuffle: Dataset) -> str:
    return f"shuffle({shuffle.parameters.buffer_size or ''})"


def _next(line: tuple[Dataset, ...], at: int, kinds: frozenset[str]) -> Dataset | None:
    """Return the nearest stage upstream of one of these kinds, past stages that keep order and grouping."""
    ahead = next((stage for stage in line[at + 1 :] if kind_of(stage) not in PASSING - kinds), None)
    return ahead if ahead and kind_of(ahead) in kinds else None


def _after_batch(properties: DatasetProperties, line: tuple[Dataset, ...], at: int) -> Finding | None:
    """Find training batches that are shuffled as a whole; a batch of batches consists of sequences."""
    shuffle, batch = line[at], _next(line, at, BATCHES)
    again = any(kind_of(stage) in BATCHES for stage in line[:at])
    size = (batch.parameters.batch_size or 1) if batch else 1
    if batch is None or again or size == 1:
        return None
    repeated = any(kind_of(stage) == "Repeat" for stage in properties.upstream(batch))
    together = "" if repeated else f"; the same {size} examples stay together every epoch"
    held = int(shuffle.parameters.buffer_size or 1) * size
    buffer = min(held, properties.elements(line[-1]) or held)  # at most all examples
    action = "Shuffle before batch, with a buffer for at least as many examples as now"
    code = f"dataset = dataset.shuffle({buffer}).batch({size})"
    return _finding(
        f"{_name(shuffle)} comes after batch({size}), so only whole batches are shuffled{together}",
        (Measure("examples per batch that stay together", count(size)), _where(shuffle)),
        Remedy(action, code, shuffle.at, "earlier-shuffle", changes=ORDER),
    )


def _after_repeat(properties: DatasetProperties, line: tuple[Dataset, ...], at: int) -> Finding | None:
    """Find epochs that overlap; a run of one pass has no second one."""
    shuffle, repeat = line[at], _next(line, at, frozenset(("Repeat",)))
    times = repeat.parameters.count if repeat else None
    once = properties.passes is not None and properties.passes <= 1.0
    if repeat is None or times in {0, 1} or once:
        return None
    name, again = _name(shuffle), times if times and times > 0 else ""
    rows = (("repeat", repeat.at or "unknown"), (name, shuffle.at or "unknown"))
    action = (
        "Shuffle before repeat if each epoch should contain every example once; the buffer is then refilled in "
        "each epoch"
    )
    code = f"dataset = dataset.{name}.repeat({again})"
    return _finding(
        f"{name} comes after repeat(), so epochs overlap: some examples appear twice before others appear once",
        (Table(("stage (in order of execution)", "your line"), rows),),
        Remedy(action, code, shuffle.at, "earlier-shuffle", changes=ORDER),
    )


def _size(properties: DatasetProperties, shuffle: Dataset, limits: Limits) -> Verdict:
    """Compare the buffer with the examples of one epoch."""
    name, held, examples = _name(shuffle), shuffle.parameters.buffer_size, properties.elements(shuffle)
    if held is None or held < 1 or not examples:
        return Healthy(summary=f"{name} comes before batch and repeat; the number of examples is unknown")
    share = min(1.0, held / examples)
    measure = Measure.share("share of the examples in the buffer", share, limits.share)
    if share >= limits.share:
        summary = f"{name} mixes {percent(share)} of the {examples:,} examples at a time"
        return Healthy(summary=summary, evidence=(measure,))
    size, label = properties.element_bytes(shuffle), "maximum memory of a buffer for all examples"
    memory = (Measure(label, nbytes(size * examples)),) if size else ()
    action = "If the data is sorted, shuffle its indices or file names, or shuffle it once on disk"
    return _finding(
        f"{name} mixes {number(held)} of {examples:,} examples at a time: sorted data stays nearly sorted",
        (measure, *memory, _where(shuffle)),
        Remedy(action, CODE["indices"], shuffle.at),
    )


def _where(shuffle: Dataset) -> Table:
    return Table.of([shuffle], ("shuffle", _name), ("your line", lambda stage: stage.at))


def _finding(summary: str, evidence: tuple[Evidence, ...], remedy: Remedy) -> Finding:
    return Finding(summary=summary, evidence=evidence, remedies=(remedy,), severity=Severity.NOTE)
