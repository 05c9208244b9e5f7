"""The datasets that feed the run: size, repeatability, number of passes, and the graphs of their functions."""

from tfdoctor.facts.input.iterators import Iterators
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.operation_types import RANDOM
from tfdoctor.facts.run.program import (
    FOREVER,
    NON_EXPANDING,
    WIDTHS,
    Dataset,
    Places,
    Program,
    batches_of,
    kind_of,
    line_of,
    upstream_of,
)

TENSOR = re.compile(r"TensorSpec\(shape=\(([^)]*)\), dtype=tf\.(\w+), name=[^)]*\)")  # A tensor in an element_spec
LONGEST_SPEC = 500  # Characters of an element_spec that the record keeps: a longer one is cut off

# Stateful types that give the same result for the same element; the operations within branches and loops are
# recorded separately.
REPEATABLE = frozenset(
    ("Assert", "PrintV2", "Print", "If", "While", "Case", "PartitionedCall", "StatefulPartitionedCall",
     "HashTableV2", "LookupTableFindV2", "LookupTableSizeV2")
)  # fmt: skip

# Types that make datasets: stateful to TensorFlow, although files give the same content each time.
READ_BY_DATASET = re.compile(r"\w*Dataset(?:V\d)?")

# Kinds that are fully described by their parameters and functions.
PLAIN = frozenset(
    ("TensorSlice", "Tensor", "Range", "TFRecord", "TextLine", "FixedLengthRecord", "Batch", "PaddedBatch",
     "ParallelBatch", "Prefetch", "Options", "Zip", "Concatenate", "Take", "Skip", "Shard", "Unbatch",
     "Repeat", "Cache", "Map", "ParallelMap", "FlatMap", "Interleave", "ParallelInterleave", "Filter")
)  # fmt: skip


NAMED = "Dataset_map_"  # The prefix of tf.data's name for the graph of a map's function
MOST = 0.5  # Share of the time of a function's operations from which one of them stands for it

# Kinds that may lie between a map and its batch, because they pass on single elements.
BETWEEN = frozenset(("Map", "ParallelMap", "Prefetch", "Options", "Shuffle", "Repeat", "Cache", "Take", "Skip"))


class DatasetProperties(Record):
    """The feeding datasets, consumers first, and how often the run passes over them; None is unknown."""

    chain: tuple[Dataset, ...]
    # Epochs and ``repeat()``; where the number of batches is unknown, what a ``repeat()`` had completed by the end
    # of the traced steps, if that is more than one pass.
    passes: float | None = None
    remade: bool = False  # the trace shows several datasets of this form, such as one rebuilt in each epoch
    fit_at: Location | None = None  # the line of Keras' fit, which adds stages of its own
    batch_bytes: int | None = None  # as a function was first traced for it, which may know more than the pipeline

    @classmethod
    def measure(cls, program: Program, recording: Recording, iterators: Iterators | None) -> Self:
        """Read the program record; the steps are those that fit announced, else those of a run recorded to its end.

        Raises:
            Unavailable: no recorded tf.data pipeline feeds the run.
        """
        if not program.feeding:
            raise Unavailable("no recorded tf.data pipeline feeds the training loop")
        settings, manifest, properties = program.settings, recording.manifest, cls(program.feeding)
        line = properties.line()
        join, batches = line[-1], None
        joined = any(kind_of(stage) == "Repeat" for stage in properties.upstream(join))
        if not joined or kind_of(join) == "Zip":
            batches = batches_of(line)
        else:  # several pipelines, each of which repeats by itself: one pass is over all of them
            sources = [data for data in properties.sources(join) if data.element == join.element]
            lengths = [properties.elements(source) for source in sources]
            if lengths and None not in lengths:
                whole = replace(join, cardinality=sum(length or 0 for length in lengths))
                batches = batches_of((*(replace(stage, cardinality=None) for stage in line[:-1]), whole))
        steps = (settings.epochs or 0) * (settings.steps_per_epoch or 0)
        stopped = manifest is None or (manifest.plan and manifest.plan.stop_after)
        if manifest and not steps and not stopped and manifest.steps.seen_all:
            steps = manifest.steps.seen or 0
        passes = steps / batches if batches and steps else None
        if passes is None and settings.epochs and not settings.steps_per_epoch and not properties.repeats:
            passes = float(settings.epochs)
        # A repetition from which the trainer gets no pass again fills up the shorter side of a Zip, as Keras does.
        fills = any(kind_of(stage) == "Repeat" for stage in program.feeding) and not properties.repeats
        if passes is None and not fills and iterators and iterators.passes > 1:
            passes = float(iterators.passes)
        fit_at, remade = Places.of(recording)(settings.fit_at), bool(iterators and iterators.remade)
        return cls(program.feeding, passes, remade, fit_at, _taken(recording, program))

    def line(self, end: Dataset | None = None) -> tuple[Dataset, ...]:
        """Return the datasets from the trainer, or ``end``, to the source, or to where several sources meet."""
        return line_of(self.chain, end)

    def sources(self, dataset: Dataset) -> tuple[Dataset, ...]:
        """Return the datasets that a dataset takes its elements from."""
        by_id = {source.id: source for source in self.chain}
        return tuple(by_id[number] for number in dataset.inputs if number in by_id)

    def upstream(self, dataset: Dataset) -> Iterator[Dataset]:
        """Return all datasets upstream, nearest first."""
        return upstream_of(self.chain, dataset.inputs)

    def elements(self, dataset: Dataset) -> int | None:
        """Return how many elements one pass yields at most, repetitions left out; None is unknown."""
        for stage in (dataset, *self.upstream(dataset)):
            line = self.line(stage)
            if kind_of(line[-1]) != "Zip":  # before a Zip, a repetition only fills up the shorter side
                line = (stage, *self.upstream(stage))
            repeated = any(kind_of(one) == "Repeat" for one in line)
            if not repeated and stage.cardinality not in {None, FOREVER}:
                return stage.cardinality
            if kind_of(stage) not in NON_EXPANDING | {"Repeat"}:
                return None
        return None

    @property
    def repeats(self) -> bool:
        """Whether the trainer gets elements of a pass again; of what a Zip joins, the shortest decides."""
        return bool(self.chain) and self._again(self.chain[0], {})

    def _again(self, dataset: Dataset, known: dict[int, bool]) -> bool:
        if dataset.id not in known:
            again = [self._again(source, known) for source in self.sources(dataset)]
            joined = all(again) if kind_of(dataset) == "Zip" else any(again)
            known[dataset.id] = kind_of(dataset) == "Repeat" or (bool(again) and joined)
        return known[dataset.id]

    def nbytes(self, dataset: Dataset) -> int | None:
        """Return the bytes of all elements of one pass at most; None where a shape or number is open."""
        element_bytes, number = self.element_bytes(dataset), self.elements(dataset)
        return None if element_bytes is None or number is None else element_bytes * number

    def element_bytes(self, dataset: Dataset) -> int | None:
        """Return the bytes of one element; None where its shape is open or it holds text."""
        sizes = (stage.parameters.batch_size for stage in (dataset, *self.upstream(dataset)))
        known = spec_bytes(dataset.element, next((int(size) for size in sizes if size), None))
        fed = bool(self.chain) and dataset.element == self.chain[0].element
        return self.batch_bytes if known is None and fed else known


class FunctionGraphs(Record):
    """The graphs by the id of their dataset, without those whose names are ambiguous."""

    by_dataset: Mapping[int, RecordedGraph] = field(default_factory=dict)
    place: Places = field(default_factory=Places)

    @classmethod
    def measure(cls, program: Program, recording: Recording) -> Self:
        """Match the recorded graphs of maps with the datasets, by the function's name.

        Raises:
            Unavailable: the record has no such graph.
        """
        recorded = recording.program.graphs if recording.program else ()
        of_maps = (one for one in recorded if one.kind == "dataset" and one.name.startswith(NAMED))
        graphs = by_key((graph.name.removeprefix(NAMED), graph) for graph in of_maps)
        if not graphs:
            raise Unavailable("the functions of the pipeline's maps were not recorded")
        names = {dataset.id: dataset.function.strip("<>") for dataset in program.datasets}
        # A function may be mapped over training and test data: then its graphs compute the same.
        forms = {
            name: {tuple((op.name, op.type, op.at, op.outputs) for op in graph.operations) for graph in found}
            for name, found in graphs.items()
        }
        matched = {number: graphs[name][0] for number, name in names.items() if len(forms.get(name, ())) == 1}
        return cls(matched, Places.of(recording))

    def of(self, dataset: Dataset | None) -> RecordedGraph | None:
        """Return the graph of a dataset's function; None is unknown."""
        return self.by_dataset.get(dataset.id) if dataset else None

    def at(self, operation: RecordedOperation) -> Location | None:
        """Return the user's line of an operation."""
        return self.place(operation.at)

    def slowest(self, dataset: Dataset | None, times: Mapping[str, float]) -> tuple[str, Location] | None:
        """Return the type of a function's operation that takes most of its operations' times, and its line."""
        graph = self.of(dataset)
        known = [(one, times[one.name]) for one in graph.operations if one.name in times] if graph else []
        operation, most = max(known, key=lambda one: one[1], default=(None, 0.0))
        at = self.at(operation) if operation and most > MOST * sum(times.values()) else None
        return (operation.type, at) if operation and at else None


def next_batch(chain: Iterable[Dataset], source: int) -> tuple[tuple[Dataset, ...], int]:
    """Return the stages that pass on a dataset's elements one by one until the next batch, and that batch's size.

    The size is 0, and there are no such stages, where none follows.
    """
    taken_by, passing = {number: one for one in reversed([*chain]) for number in one.inputs}, list[Dataset]()
    while stage := taken_by.get(source):
        if kind_of(stage) in {"Batch", "ParallelBatch"}:
            return tuple(passing), stage.parameters.batch_size or 0
        if kind_of(stage) not in BETWEEN:
            break
        passing.append(stage)
        source = stage.id
    return (), 0


def spec_bytes(spec: str, batch: int | None = None) -> int | None:
    """Return the bytes of an element_spec; `batch` stands for a first dimension that is open.

    None where another dimension is open, where there is text, or anything but plain tensors.
    """
    tensors, total = _tensors(spec), 0
    if not tensors or "Spec" in TENSOR.sub("", spec) or len(spec) >= LONGEST_SPEC:
        return None
    for sizes, dtype in tensors:
        if batch and sizes[:1] == ["None"]:
            sizes[0] = str(batch)
        if dtype not in WIDTHS or not all(size.isdigit() for size in sizes):
            return None
        total += prod(map(int, sizes)) * WIDTHS[dtype]
    return total


def _tensors(spec: str) -> list[tuple[list[str], str]]:
    found = TENSOR.findall(spec)
    return [([size.strip() for size in shape.split(",") if size.strip()], dtype) for shape, dtype in found]


def repeatable(dataset: Dataset) -> bool | None:
    """Whether a dataset gives the same elements in every pass; None is unknown.

    Datasets that run Python, or keep a state other than tf.data's own, are unknown.
    """
    kind = kind_of(dataset)
    if kind == "Shuffle":
        return dataset.parameters.reshuffle_each_iteration is False
    if kind not in PLAIN or dataset.python:
        return None
    if not dataset.function:
        return True
    if dataset.types is None or dataset.stateful is None:
        return None
    if any(RANDOM.search(name) for name in dataset.types):
        return False
    return None if states_of(dataset) else True


def states_of(dataset: Dataset) -> set[str]:
    """Return the types of a function's operations that keep a state which may differ from pass to pass."""
    stateful = (dataset.stateful or frozenset()) - REPEATABLE
    return {name for name in stateful if not READ_BY_DATASET.fullmatch(name)}


def _taken(recording: Recording, program: Program) -> int | None:
    """Return the bytes of a batch by the arguments that a function was traced for; None where none fit."""
    wanted = _tensors(program.feeding[0].element)
    for graph in recording.program.graphs if recording.program and wanted else ():
        given = " ".join(graph.given)
        tensors = _tensors(given)
        if graph.kind == "dataset" or len(tensors) != len(wanted):
            continue
        fits = all(  # in type, rank, and all dimensions that are known
            dtype == kind
            and len(known) == len(full)
            and all(size in {"None", it} for size, it in zip(known, full, strict=True))
            for (full, dtype), (known, kind) in zip(tensors, wanted, strict=True)
        )
        size = spec_bytes(given) if fits else None
        if size is not None:
            return size
    return None
