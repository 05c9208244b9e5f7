"""Cycles in the executions of graphs: the iterations of their loops, and the calls themselves.

A loop inside a graph shows its iterations by the condition that runs before each, else by what its body does.
"""

from itertools import repeat

from tfdoctor.facts.kit import *
from tfdoctor.facts.steps.cycle import MOSTLY, Cycle, Role, Rows, Times, TrainingWork, between, covering, holding
from tfdoctor.facts.timeline.host_events import is_captured, is_named
from tfdoctor.trace.names import EAGER_NEXT, FUNCTION_RUN, FUNCTION_RUNS, GRADIENT, PIPELINE_CALL

CUT_OFF = 2  # Iterations that the ends of the trace may cut
COMPARED = 100  # Operations whose times are compared; a large network has thousands, and all recur alike
ENOUGH = 3  # Iterations in calls traced from their start, from which a call that is cut off is left out
ALONE = 3  # Calls of a function from which the calls are the cycle, and not what repeats inside one


class GraphCall(Record):
    """One execution of a graph, from the call to its return, in ps.

    ``function`` is the concrete function or the iterator's id: all its executions run the same graph.
    """

    name: str  # of the tf.function, of the iterator, or "SessionRun"
    function: str
    run: int  # the execution's id
    start_ps: int
    end_ps: int
    in_pipeline: bool = False  # started by an iterator: the body of `for x in dataset` in a graph


def graph_calls(trace: Trace) -> list[GraphCall]:
    """Return what started each execution of a graph, Python or a loop over a dataset, by its start."""
    calls = list[GraphCall]()
    for line in trace.host_lines:
        stats, events = line.stats, line.stats.having("id")
        runs = events[is_named(line, FUNCTION_RUNS.__contains__)[events]].tolist()
        captured = events[is_named(line, is_captured)[events]].tolist()
        called = stats.having("tf_function_call").tolist()
        eager = [int(event) for event, value in zip(*stats.values("is_func"), strict=True) if value]
        iterators = np.flatnonzero(is_named(line, PIPELINE_CALL.match)).tolist() if captured else []
        asked, callers = _holders(line, runs, eager), _holders(line, runs, called or eager)
        started = _holders(line, captured, iterators)
        for by, which, of, name, of_data in (
            (runs, callers, asked, "eager_op", False),
            (captured, started, started, "id", True),
        ):
            at = np.array(which, np.intp)
            names = [line.types[kind].name for kind in line.kind[at].tolist()]
            functions = ["" if one is None else str(one) for one in stats.values_of(name, np.array(of, np.int64))]
            numbers = stats.ids_of("id", np.array(by, np.int64)).tolist()
            starts, ends = line.start_ps[at].tolist(), (line.start_ps[at] + line.duration_ps[at]).tolist()
            calls += map(GraphCall, names, functions, numbers, starts, ends, repeat(of_data))
    return sorted(calls, key=lambda call: call.start_ps)


def _holders(line: Line, inner: list[int], outer: list[int]) -> list[int]:
    """Return for each ``inner`` event the innermost ``outer`` event that contains it, or itself."""
    ends = line.start_ps + line.duration_ps
    within = covering(line.start_ps[outer], ends[outer], line.start_ps[inner]).tolist()
    return [outer[place] if place >= 0 else index for index, place in zip(inner, within, strict=True)]


def graph_cycles(trace: Trace, work: TrainingWork) -> list[Cycle]:
    """Return the cycles that change weights and take gradients.

    Each loop that trains is one, over all executions of the function that contains it. Where the iterations of a
    loop are not certain, the loops inside it are left out.
    """
    calls, cycles, uncertain = graph_calls(trace), list[Cycle](), list[str]()
    gradients = work.start_ps[work.having(Role.GRADIENT)]
    frames = {work.frame[int(kind)] for kind in np.flatnonzero((work.role & Role.TRAINS) != 0)} - {""}
    named = {call.run: call.name for call in calls}
    for frame in sorted(frames):  # an outer one's name comes before those inside it
        if GRADIENT.search(frame) or any(frame.startswith(f"{outer}/") for outer in uncertain):
            continue
        loops = list(_loops(work, frame, named))
        certain = [loop for loop in loops if len(loop) and loop.takes_gradients(gradients)]
        if len(certain) < len(loops):
            uncertain.append(frame)
        cycles += certain
    requests = [line.start_ps[is_named(line, EAGER_NEXT.fullmatch)] for line in trace.host_lines]
    cycles += _calls(work, calls, np.sort(np.concatenate([np.zeros(0, np.int64), *requests])))
    if cycles:
        return cycles
    cut_off = []  # stand-ins for calls that began before the trace, from their first operation to their last
    for run in _runs(work, work.having(Role.TRAINS)) - {call.run for call in calls}:
        times = work.start_ps[work.run == np.uint64(run)]
        cut_off.append(GraphCall("a graph", "", run, int(times[0]), int(times[-1])))
    return list(_calls(work, cut_off, np.zeros(0, np.int64)))


def _runs(work: TrainingWork, rows: Rows) -> set[int]:
    return {int(run) for run in np.unique(work.run[rows])} - {0}


def _loops(work: TrainingWork, frame: str, names: dict[int, str]) -> Iterator[Cycle]:
    """Yield the loop of this name in each function that has one; without a round if it is uncertain."""
    body, condition = work.having(Role.WORKS, frame), work.having(Role.CONDITION, frame)
    known = {run: name for run, name in names.items() if name != FUNCTION_RUN}
    by_function = by_key((known.get(run, ""), run) for run in sorted(_runs(work, body)))
    if len(by_function) == 2 and "" in by_function:  # noqa: PLR2004 - cut off is a call of the only function
        cut_off = by_function.pop("")
        next(iter(by_function.values())).extend(cut_off)
    for name, runs in by_function.items():
        spans = {run: _iterations(work, body, condition, run, begun=run in names) for run in runs}
        begun = [run for run in runs if run in names]
        if sum(len(spans[run]) for run in begun) < ENOUGH:
            begun = runs
        rows = body & np.isin(work.run, np.array(begun, np.uint64))
        where = f"the loop `{frame}`" + (f" of `{name}`" if name else "")
        loop = Cycle.of(StepSource.GRAPH_PERIOD, where, [spans[run] for run in begun], work, rows)
        # Each iteration holds the most frequent training operation once: else events are lost.
        times = _most_frequent(work, rows & work.having(Role.TRAINS))
        held = np.searchsorted(times, loop.ends_ps) - np.searchsorted(times, loop.starts_ps)
        once = np.count_nonzero(held == 1) >= MOSTLY * len(loop)
        missed = len(times) - int(held.sum())
        certain = once and missed <= CUT_OFF + (1 - MOSTLY) * len(times)
        yield loop if certain else Cycle.of(StepSource.GRAPH_PERIOD, where, [], work, rows)


def _iterations(work: TrainingWork, body: Rows, condition: Rows, run: int, *, begun: bool) -> Times:
    """Return the whole iterations of one execution of a loop, whose first and last may be cut off."""
    within = work.run == np.uint64(run)
    body = body & within
    edges, training = _most_frequent(work, condition & within), body & work.having(Role.TRAINS)
    if not training.any():
        return np.zeros((0, 2), np.int64)
    if len(edges) + 1 < len(_most_frequent(work, training)):  # cut off at both ends there is one less
        edges = _beginnings(work, body, training, begun=begun)
    spans = between(edges)
    return spans[holding(work.start_ps[body], spans)]


def _most_frequent(work: TrainingWork, rows: Rows) -> Times:
    """Return when the most frequent operation ran: once per iteration of a loop, and a condition once more."""
    kind = np.bincount(work.kind[rows], minlength=1).argmax()
    return np.asarray(work.start_ps[rows & (work.kind == kind)], np.int64)


def _beginnings(work: TrainingWork, body: Rows, training: Rows, *, begun: bool) -> Times:
    """Return when iterations began, and the last one ended, by the operations of the body alone.

    Operations of one iteration run in any order, and mostly all of them before those of the next one. The
    earliest operations are tried in turn as the first one; operations that sometimes precede it belong to
    its iteration. Where iterations overlap (TensorFlow runs up to ten at once), the most frequent
    operation that trains separates them. ``begun`` says that the start was recorded.
    """
    most = _most_frequent(work, training)
    recurring = _times_by_operation(work, training, len(most) - 1, len(most))
    recurring = recurring[:: len(recurring) // COMPARED + 1]
    firsts = _times_by_operation(work, body, len(most) - 1, len(most) + 1)
    for first in sorted(firsts, key=lambda times: int(times[0]))[:COMPARED]:
        begins, ends = first.copy(), first.copy()
        for times in recurring:
            group = _nearest(first, times)
            inside = (group >= 0) & (group < len(first))
            np.minimum.at(begins, group[inside], times[inside])
            np.maximum.at(ends, group[inside], times[inside])
        if np.all(ends[:-1] < begins[1:]):
            whole = begun and all(times[-1] >= begins[-1] for times in recurring)
            return np.append(begins, work.start_ps[body][-1] + 1) if whole else begins
    return most


def _nearest(first: Times, times: Times) -> NDArray[np.intp]:
    """Return the iteration of each time, by the times of the first operation; some belong to none."""
    group: NDArray[np.intp] = np.searchsorted(first, times, side="right") - 1
    if np.any(np.diff(group) != 1):  # now before the first, now after it: the nearest
        size = min(len(first), len(times))
        far: dict[int, int] = {}  # the longest time from those of the first operation, shifted
        for shift in (shift for shift in (-1, 0, 1) if abs(shift) < size):
            later, earlier = first[max(0, shift) :], times[max(0, -shift) :]
            both = min(len(later), len(earlier))
            far[shift] = int(np.abs(earlier[:both] - later[:both]).max())
        group = np.arange(len(times)) + min(far, key=lambda shift: far[shift])
    return group


def _times_by_operation(work: TrainingWork, rows: Rows, least: int, highest: int) -> list[Times]:
    order = np.argsort(work.kind[rows], kind="stable")
    counts = np.bincount(work.kind[rows])
    by_operation = np.split(work.start_ps[rows][order], np.cumsum(counts[counts > 0])[:-1])
    return [times for times in by_operation if least <= len(times) <= highest]


def _calls(work: TrainingWork, calls: list[GraphCall], requests: Times) -> Iterator[Cycle]:
    """Yield each function that trains outside of loops of its own: its calls, or the iterations of a loop in them.

    Where some of its graphs take gradients, the others are evaluation.
    """
    direct, gradient = work.having(Role.WORKS, ""), work.having(Role.GRADIENT)
    taking, training = _runs(work, gradient), _runs(work, direct & work.having(Role.TRAINS))
    for (name, in_pipeline), every in by_key(((call.name, call.in_pipeline), call) for call in calls).items():
        group = _alike(every, taking) or _alike(every, training)
        rows = direct & np.isin(work.run, np.array([call.run for call in group], np.uint64))
        if not (rows & work.having(Role.TRAINS)).any():  # it trains in loops, or not at all
            continue
        spans = pairs_of((call.start_ps, call.end_ps) for call in group)
        looped = None if in_pipeline else _unnamed_loop(work, rows & work.having(Role.TRAINS), len(group))
        if in_pipeline:
            cycle = Cycle.of(StepSource.GRAPH_PERIOD, f"the loop over `{name}`", [spans], work, rows)
        elif looped is not None:
            cycle = Cycle.of(StepSource.GRAPH_PERIOD, f"the loop inside `{name}`", [looped], work, rows)
        else:
            # Calls begin with Python's request for their batch, when nearly every call has one before it.
            first = np.searchsorted(requests, np.append(np.iinfo(np.int64).min, spans[:-1, 1]))
            last = np.searchsorted(requests, spans[:, 0])
            first[:1] = np.maximum(last[:1] - 1, 0)  # of the many that may precede the first call
            asked = last > first
            if np.count_nonzero(asked) >= MOSTLY * len(spans):
                spans[asked, 0] = requests[first[asked]]
            cycle = replace(
                Cycle.of(StepSource.REPEATED_CALL, f"the call of `{name}`", [spans], work, rows), call=name
            )
        known = any(call.run in taking for call in group)
        if len(cycle) and (known or cycle.takes_gradients(work.start_ps[gradient])):
            yield cycle


def _alike(group: list[GraphCall], runs: set[int]) -> list[GraphCall]:
    """Return the calls of graphs that have an execution among these; events of others may be lost."""
    functions = {call.function for call in group if call.run in runs} - {""}
    return [call for call in group if call.function in functions or call.run in runs]


def _unnamed_loop(work: TrainingWork, rows: Rows, calls: int) -> Times | None:
    """Return the iterations of a loop that repeats in a call what trains, if there is one.

    Names do not show it where its body is a function.
    """
    often = len(_most_frequent(work, rows))
    if often <= calls:
        return None
    condition = work.having(Role.CONDITION) & np.isin(work.run, np.unique(work.run[rows]))
    frames = sorted({work.frame[int(kind)] for kind in np.unique(work.kind[condition])})
    loops = []
    for frame in frames:
        in_frame, spans = condition & work.having(Role.CONDITION, frame), [np.zeros((0, 2), np.int64)]
        for run in np.unique(work.run[in_frame]):
            pairs = between(_most_frequent(work, in_frame & (work.run == run)))
            spans.append(pairs[holding(work.start_ps[rows], pairs)])
        loops.append(np.concatenate(spans))
    whole = [spans for spans in loops if len(spans) and often >= MOSTLY * len(spans)]
    if whole or calls >= ALONE or frames:
        return max(whole, key=len, default=None)
    # From one round of training to the next, when all operations recur equally often.
    edges = _beginnings(work, rows, rows, begun=False)
    return between(edges) if len(edges) else None
