"""Layers in a step's graph: their calls, and the forward pass of those that do not train."""

from tfdoctor.facts.input.cacheable import never_complete
from tfdoctor.facts.input.dataset_properties import DatasetProperties, repeatable
from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import Dataflow, Source
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import CONSTANT, READS, UPDATES
from tfdoctor.facts.run.program import Operation, Program, kind_of
from tfdoctor.trace.names import EAGER_OPERATION, GRADIENT

BUILD = "build"  # The scope in which Keras makes the variables of a layer, by calling the layers inside it


class LayerCalls(Record):
    """The layers that one step calls twice or more, with the forward operations of each call that ran."""

    layers: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @classmethod
    def measure(cls, program: Program, operations: Operations) -> Self:
        """Group the forward operations of each layer by the scopes that its calls got.

        Only functions that take gradients count: Keras also calls layers in graphs that it makes for their shapes,
        and ``predict`` in one of its own. A call of which no operation was recorded does not count either: its
        result may be unused, as that of a cell before its loop. Layers of the same name cannot be told apart.
        """
        ran = {row.built for row in operations.rows}.intersection(one.name for one in program.training)
        number = Counter(layer.name for layer in program.layers)
        forward = [one for one in program.by_name.values() if one.name in ran and number[one.layer] <= 1]
        scopes = by_key(((one.layer, scope), one.name) for one in forward if (scope := _scope(one)))
        calls = by_key((layer, tuple(names)) for (layer, _), names in scopes.items())
        return cls({layer: tuple(made) for layer, made in calls.items() if len(made) > 1})


def _scope(operation: Operation) -> str:
    """Return the scope of the call of its layer that made an operation; "" of gradients, building and others.

    The outermost scope counts: TensorFlow repeats a layer's scope for the loops and branches inside its call.
    """
    if not operation.layer or operation.direct or GRADIENT.search(operation.name):
        return ""
    own = re.compile(rf"{re.escape(operation.layer)}(_\d+)?")
    segments = operation.name.split("/")[:-1]
    for end, segment in enumerate(segments, 1):
        if own.fullmatch(segment):
            return "" if BUILD in segments[:end] else "/".join(segments[:end])
    return ""


class FrozenWork(Record, OperationRows):
    """The operations of frozen layers whose results are the same whenever an example comes again.

    ``rows`` are these, what prepares their inputs, and what only they feed; ``features_bytes`` are the results of a
    batch that trained layers and losses use, None where a shape is open. ``passes`` over the data are None where
    unknown; ``differs`` says why an example differs from pass to pass, "" where it does not.
    """

    layers: tuple[str, ...]  # frozen, with weights that the step reads
    rows: tuple[OperationTime, ...]
    features_bytes: int | None = None
    passes: float | None = None
    batches: int | None = None  # of one pass
    differs: str = ""
    fit_at: Location | None = None

    @classmethod
    def measure(
        cls, operations: Operations, dataflow: Dataflow, program: Program, properties: DatasetProperties | None
    ) -> Self:
        """Follow the examples through the step's graph.

        Raises:
            Unavailable: the record does not say which layers train.
        """
        if all(layer.trainable is None for layer in program.layers):
            raise Unavailable("the recording does not say which layers train; record again")
        frozen = frozen_reads(dataflow)
        names = repeated(dataflow, frozen)
        built = [(row, row.operation) for row in operations.rows if row.operation]
        settings, arrays = program.settings, program.input_kind == "arrays"
        known = properties.passes if properties else None
        differs = "" if arrays else why_different(properties)
        single = (row for row in operations.rows if any(map(EAGER_OPERATION.fullmatch, row.ran)))
        if any(UPDATES.fullmatch(row.type) for row in single):  # perhaps a moving average or a copy of trained ones
            differs = "Python assigns variables between the steps, and those of frozen layers may be among them"
        return cls(
            layers=tuple(sorted({one.layer for one in frozen} & {one.layer for _, one in built})),
            rows=tuple(row for row, one in built if one.name in names),
            features_bytes=results_bytes(dataflow, names),
            passes=float(settings.epochs) if arrays and settings.epochs else known,
            batches=settings.steps_per_epoch,
            differs=differs,
            fit_at=properties.fit_at if properties else None,
        )

    @property
    def features_total(self) -> int | None:
        """The bytes of the features of all examples; None is unknown."""
        known = self.features_bytes is not None and self.batches is not None
        return (self.features_bytes or 0) * (self.batches or 0) if known else None

    @property
    def at(self) -> Location | None:
        """The line that calls the frozen layers, or that made them where fit does."""
        rows = sorted(self.rows, key=lambda row: -row.ms)
        called = ((row.operation.at if row.operation else None, row.at) for row in rows)
        places = (made if at in {None, self.fit_at} else at for at, made in called)
        return next(filter(None, places), None)


def frozen_reads(dataflow: Dataflow) -> list[Operation]:
    """Return the reads of weights of layers that are not to be trained, nor changed in any graph."""
    program = dataflow.program
    updates = (one for one in program.operations if one.sources and UPDATES.fullmatch(one.type))
    updated = {one.sources[0] for one in updates}
    trained = {program.by_name[name].layer for name in updated if name in program.by_name} - {""}
    return [
        one
        for one in dataflow.operations
        if READS.search(one.type) and one.sources and one.sources[0] not in updated and one.layer not in trained
        if (layer := program.layer_by_name.get(one.layer)) and layer.trainable is False
    ]


def repeated(dataflow: Dataflow, frozen: Collection[Operation]) -> frozenset[str]:
    """Return what is computed from examples, constants and frozen weights alone, and uses these or serves such."""
    names = {one.name for one in frozen}
    depends = dataflow.computed_from(fixed=names)
    fixed = {
        one.name
        for one in dataflow.operations
        if one.type not in CONSTANT | {"Placeholder"} and depends.get(one.name, {Source.UNKNOWN}) <= {Source.BATCH}
    }
    after = set(names)
    for one in dataflow.operations:
        if not after.isdisjoint(one.sources):
            after.add(one.name)
    return dataflow.only_for(after & fixed, among=fixed, shapes=False)


def results_bytes(dataflow: Dataflow, names: Collection[str]) -> int | None:
    """Return the bytes of the results that other operations use; None where a shape is open."""
    sizes = [
        dataflow.program.nbytes(tensor)
        for one in dataflow.operations
        if one.name in names and any(user.name not in names for user in dataflow.consumers.get(one.name, ()))
        for tensor in one.outputs[:1]
    ]
    return None if None in sizes else sum(size or 0 for size in sizes)


def why_different(properties: DatasetProperties | None) -> str:
    """Return why an example may differ from pass to pass; the order of the examples does not matter."""
    if properties is None:
        return "the dataset that feeds the training is unknown"
    never = never_complete(properties)
    caches = [cache for cache in properties.chain if kind_of(cache) == "Cache" and cache != never]
    cached = {above.id for cache in caches for above in properties.upstream(cache)}
    for stage in properties.chain:
        same = True if kind_of(stage) == "Shuffle" else repeatable(stage)
        if not same:
            name, random = stage.function or kind_of(stage).lower(), same is False
            kept = random and stage.id in cached and not properties.remade
            what = "draws random numbers" if random else "may give other values"
            if kept:
                return (
                    f"{name} in the pipeline {what}, and only cache() after it makes them the same in each pass "
                    "(cache-order: random operations belong after cache())"
                )
            return f"{name} in the pipeline {what} in each pass"
    return ""
