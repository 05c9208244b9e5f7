"""The iterators of tf.data in the trace, one node for each stage of the pipeline.

A trace contains an event for each call of an iterator's GetNext. Events nest on a thread; where a stage
makes its elements on another thread, an ``XProduce`` event there contains the upstream calls, and the
user's function runs in executor events with the id of its ``InstantiatedCapturedFunction``.
"""

from msgspec import Struct

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.host_events import (
    enclosing,
    executors,
    is_named,
    joined,
    latest_before,
    nearest,
    operation_label,
)
from tfdoctor.trace.names import CAPTURED_FUNCTION, EXECUTOR, EXECUTOR_DONE, ITERATOR, PRODUCE, WAIT

# The iterator that the trainer calls; those that it calls in turn have longer names.
ROOT = re.compile(r"Iterator::\w+")
NUMBERED = re.compile(r"\b\w+:\d+")  # tf.data's name of a dataset, alone or in "fused(...)"
# The index of an upstream iterator per element or repetition; all of them are one node.
MANY = re.compile(r"(?<!Zip)(?<!Concatenate)\[\d+\]")
# The index that a repeat() gives to its source's iterator: how many passes were completed before.
REPETITION = re.compile(r"Repeat\[(\d+)\]")
# Stages that make their elements on threads of their own; their GetNext only waits for an element.
ASYNCHRONOUS = re.compile(r"Prefetch|MapAndBatch|(?:Legacy)?Parallel\w+")
CALL, CAPTURED = re.compile(ITERATOR), re.compile(CAPTURED_FUNCTION)
OF_STAGES = re.compile(rf"{ITERATOR}|{CAPTURED_FUNCTION}|{PRODUCE.pattern}\Z")

# Types of operations that call back into the Python interpreter.
PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
READING = re.compile(r"ReadFile")  # The operation that reads a whole file
# Types of operations whose cost grows with the size of the stored image.
IMAGES = re.compile(r"Decode(?:Image|Jpeg|Png|Bmp|Gif|WebP|AndCropJpeg)|Resize\w+|CropAndResize")


def consumer(path: str) -> str:
    """Return the path of a stage's consumer; for a branch "Zip[1]" that of the Zip."""
    return re.sub(r"\[\d+\]$", "", path.rpartition("::")[0])


class Node(Struct):
    """One stage: all calls of one iterator over all epochs. Times in ps."""

    path: str  # "Root::Prefetch::Map"
    names: list[str] = field(default_factory=list)  # tf.data's, of the datasets: "MapDataset:4"
    called: list[tuple[int, int]] = field(default_factory=list)  # calls for an element
    self_ps: int = 0  # without upstream stages, on the calling thread
    function: list[tuple[int, int]] = field(default_factory=list)  # when its function ran
    # How long the operations of its function took, and how often they ran, by their names and types; those that
    # have no name call Python, read files or make images as well.
    operations: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    repetition: int = 0  # passes that a repeat() above had completed, at most

    @property
    def name(self) -> str:
        """All names, the latest first: a dataset that is rebuilt in each epoch has several."""
        return " ".join(reversed(self.names))

    @property
    def kind(self) -> str:
        """The stage's own name: "Map"."""
        return re.sub(r"\[\w*\]", "", self.path.rpartition("::")[2])

    @property
    def asynchronous(self) -> bool:
        """Whether it works on threads of its own."""
        return bool(ASYNCHRONOUS.fullmatch(self.kind))

    def of(self, types: re.Pattern[str]) -> tuple[int, int]:
        """Return how long its function's operations of some types took, and how often they ran."""
        ran = [spent for (_, kind), spent in self.operations.items() if types.fullmatch(kind)]
        return sum(time for time, _ in ran), sum(calls for _, calls in ran)


class Iterators(Record, eq=False):
    """The training pipeline's nodes by path, and how many batches the training loop took."""

    nodes: dict[str, Node]
    batches: int = 0

    @property
    def passes(self) -> int:
        """How many passes over the data a repeat() had completed in the traced steps, at most."""
        return max((node.repetition for node in self.nodes.values()), default=0)

    @property
    def remade(self) -> bool:
        """Whether several datasets of the same form fed the steps, such as one rebuilt in each epoch."""
        numbered = (NUMBERED.findall(node.name) for node in self.nodes.values())
        nearest_names: list[str] = next(filter(None, numbered), [])
        kinds = [name.partition(":")[0] for name in dict.fromkeys(nearest_names)]
        return len(kinds) > len(set(kinds))

    @classmethod
    def measure(cls, trace: Trace, framework: Framework, steps: Steps | Unavailable) -> Self:
        """Collect the iterators that ran between the first and the last step.

        The first batch that a step requests is its own; a later one may belong to a validation that runs before the
        next step. (Ids are reused, so outlier steps, in which that happens, are left out.)

        Raises:
            Unavailable: no tf.data iterator ran.
        """
        if framework.no_pipeline:
            raise Unavailable(framework.no_pipeline)
        if isinstance(steps, Unavailable):
            raise steps
        window, lines = steps.steady_spans, trace.host_lines
        calls: list[tuple[int, int]] = []  # start and id, of the pipelines' last iterators
        for line in lines:
            events = _in_steps(line, ROOT.fullmatch, window)
            ids = line.stats.ids_of("id", events)
            calls += zip(line.start_ps[events].tolist(), ids.tolist(), strict=True)
        calls.sort()
        first = np.searchsorted([start for start, _ in calls], window.starts_ps)
        roots = {calls[at][1] for at in first.tolist() if at < len(calls)}
        nodes, owners = _nodes(lines, _upstream(lines, roots), window)
        if owners:
            _add_functions(lines, owners)
        if nodes:
            return cls(dict(sorted(nodes.items())), sum(root in roots for _, root in calls))
        why = "the trace contains no tf.data iterator, so the batches come from elsewhere"
        if any(is_named(line, WAIT.fullmatch).any() for line in lines):
            why = (
                "the trainer waited for batches, but no iterator finished a call in the traced window; trace more "
                "steps (--steps)"
            )
        elif framework.tf_data:
            why = (
                "the trace contains iterators of tf.data, but none that passes a batch to a training step; trace "
                "more steps"
            )
        raise Unavailable(why)


def _in_steps(line: Line, test: Callable[[str], object], window: Intervals) -> NDArray[np.intp]:
    events = np.flatnonzero(is_named(line, test))
    return events[window.holds(line.start_ps[events])]


def _upstream(lines: Iterable[Line], roots: set[int]) -> set[int]:
    """Return the ids of these iterators and of all upstream of them.

    An iterator that is made for each batch may have the id of an earlier one, which another root called.
    """
    called: dict[int, set[int]] = defaultdict(set)
    for line in lines:
        events, above = line.stats.ids("parent_id")
        named = np.isin(events, line.stats.having("id"))
        own = line.stats.ids_of("id", events[named])
        for parent, iterator in set(zip(above[named].tolist(), own.tolist(), strict=True)):
            called[parent].add(iterator)
    return {*reached(roots, called.__getitem__)}


def _nodes(lines: Sequence[Line], members: set[int], window: Intervals) -> tuple[dict[str, Node], dict[int, Node]]:
    """Collect the calls of these iterators on the threads of the host, whose events have the same types.

    Returns the nodes by path, and by its id the stage whose function an execution that tf.data started belongs to.
    """
    chosen = [(line, _in_steps(line, OF_STAGES.match, window)) for line in lines]
    kind, start_ps, lasting = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(line, column)[events] for line, events in chosen)])
        for column in ("kind", "start_ps", "duration_ps")
    )
    ids = [line.stats.ids_of("id", events) for line, events in chosen]
    run, wanted = np.concatenate([np.zeros(0, np.uint64), *ids]), np.array([*members], np.uint64)
    names = {one: lines[0].types[one].name for one in np.unique(kind).tolist()}
    paths = {one: MANY.sub("", name.removeprefix(ITERATOR)) for one, name in names.items() if CALL.match(name)}
    is_call, is_captured, produces = (
        np.isin(kind, [one for one, name in names.items() if test(name)])
        for test in (CALL.match, CAPTURED.match, PRODUCE.fullmatch)
    )
    is_call &= np.isin(run, wanted)
    calls, ends_ps = np.flatnonzero(is_call), start_ps + lasting
    around = enclosing(start_ps, ends_ps, [len(events) for _, events in chosen])
    holder = nearest(around, is_call | produces)
    called_by = holder[calls]
    within = np.zeros(len(kind), np.int64)  # in calls of other stages, which are not a stage's own time
    np.add.at(within, called_by[called_by >= 0], lasting[calls[called_by >= 0]])
    nodes: dict[str, Node] = {}
    for one in np.unique(kind[calls]).tolist():
        node, mine = nodes.setdefault(paths[one], Node(paths[one])), calls[kind[calls] == one]
        node.repetition = max(node.repetition, *map(int, REPETITION.findall(names[one])), 0)
        node.self_ps += int((lasting[mine] - within[mine]).sum())
        node.called.extend(zip(start_ps[mine].tolist(), ends_ps[mine].tolist(), strict=True))
    captured = np.flatnonzero(is_captured & (holder >= 0) & (run > 0))
    held = holder[captured]
    inside = np.append(calls, -1)[latest_before(called_by, calls, held, captured)]
    started, owners = (run[captured], kind[held], np.append(kind, -1)[inside]), {}
    for number, one, call in zip(*(column.tolist() for column in started), strict=True):
        # A call started it, or an XProduce, which is of the stage that calls others in it.
        if path := paths.get(one, consumer(paths.get(call, ""))):
            owners[number] = nodes.setdefault(path, Node(path))
    for (line, events), of_line in zip(chosen, ids, strict=True):
        mine = events[np.isin(of_line, wanted)]
        for one, name in dict.fromkeys(
            zip(line.kind[mine].tolist(), line.stats.values_of("name", mine), strict=True)
        ):
            named = nodes.get(paths.get(one, ""))
            if named is not None and name and str(name) not in named.names:
                named.names.append(str(name))
    return nodes, owners


def _add_functions(lines: Sequence[Line], owners: Mapping[int, Node]) -> None:
    """Give each stage the times in which its function, with its completion, ran on the threads of the host.

    ``owners`` are the stages whose functions the executions are, by the number of the execution.
    """
    known, stages = np.array(sorted(owners), np.uint64), list({id(node): node for node in owners.values()}.values())
    places = {id(node): at for at, node in enumerate(stages)}
    node = np.array([places[id(owners[run])] for run in sorted(owners)], np.intp)
    # The stretches of executors; those of one execution on one thread may overlap.
    parts = [np.zeros((3, 0), np.int64)]
    for number, line in enumerate(lines):
        for name in (EXECUTOR_DONE, EXECUTOR):
            starts, ends, runs = executors(line, name)
            at = known.searchsorted(runs)
            own = np.append(known, np.uint64(0))[at] == runs
            group = at[own] + number * len(known)  # by thread, then by execution
            parts.append(np.stack((group, starts[own], ends[own])))
        if len(starts):
            _add_operations(line, stages, starts, ends, np.where(own, np.append(node, -1)[at], -1))
    groups, starts, ends = joined(*np.concatenate(parts, axis=1))
    ran = node[groups % len(known)]
    for place in np.unique(ran).tolist():
        mine = ran == place
        stages[place].function.extend(zip(starts[mine].tolist(), ends[mine].tolist(), strict=True))


def _add_operations(
    line: Line, stages: Sequence[Node], starts: NDArray[np.int64], ends: NDArray[np.int64], node: NDArray[np.int64]
) -> None:
    """Add the operations within executors of functions, whose stages are given, -1 for those of others."""
    chosen = np.flatnonzero(line.types.passing(_work)[line.kind])
    at = np.searchsorted(starts, line.start_ps[chosen], side="right") - 1
    owner = np.where((at >= 0) & (line.start_ps[chosen] < ends[at]), node[at], -1)
    events, owned = chosen[owner >= 0], owner[owner >= 0]
    key = owned * len(line.types) + line.kind[events]
    keys, first, which = np.unique(key, return_index=True, return_inverse=True)
    times, counts = np.zeros((2, len(keys)), np.int64)
    np.add.at(times, which, line.duration_ps[events])
    np.add.at(counts, which, 1)
    order = first.argsort()  # as they ran
    columns = (keys[order].tolist(), times[order].tolist(), counts[order].tolist())
    for place, time, count in zip(*columns, strict=True):
        at_node, kind = divmod(place, len(line.types))
        stage = stages[at_node]
        operation = _work(line.types[kind]) or ("", "")
        before, calls = stage.operations.get(operation, (0, 0))
        stage.operations[operation] = before + time, calls + count


def _work(kind: EventType) -> tuple[str, str] | None:
    """Return the name and the type of a function's operation."""
    label = operation_label(kind)
    known = label or any(types.fullmatch(kind.display_name) for types in (PYTHON, READING, IMAGES))
    return (label[0] if label else "", kind.display_name) if known else None
