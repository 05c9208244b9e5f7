"""The arrays that each call of the training function converts to tensors, and what that takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import WIDTHS, Places
from tfdoctor.facts.step_time.python_work import function_calls
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import is_named, trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import FedArgument, FedCall
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import CONVERTED, SESSION_RUN

HELD = frozenset(("numpy", "pandas"))  # Kinds of arguments that are no tensors, so that each call converts them

NOT_CALLED = (
    "the arguments are looked at only where the script's own loop calls a tf.function, train_on_batch or "
    "Session.run, and no such call was seen in the traced steps"
)

# Bytes read and written per ms, 0.5 GB/s, at the least: a copy to memory that the system provides page by page ran
# at 12 GB/s on two cores of an EPYC, and at 3 GB/s while other programs used both. So small arrays get none of the
# time of Python's own work in Session.run, 0.1 to 0.4 ms.
SLOWEST_BYTES_PER_MS = 0.5e6


@dataclass(frozen=True, slots=True)
class ConvertedArray:
    """An argument that is converted at every call; ms per training step.

    ``host_ms`` lies within the part of a step that is marked as the call, ``between_ms`` outside of it. ``same``
    says that two calls got the same values, as far as compared; None is unknown. ``cast`` is the operation that
    changes its type and is the only one that reads it; it changes it to ``cast_to``.
    """

    dtype: str
    shape: tuple[int, ...]
    host_ms: float
    between_ms: float
    same: bool | None = None
    cast: OperationTime | None = None
    cast_to: str = ""
    place: str = ""  # its position or name among the arguments, see FedArgument
    fed: bool = False  # to a placeholder of that name, which has the type ``cast_to``

    @property
    def ms(self) -> float:
        """The time to convert it, in ms per step."""
        return self.host_ms + self.between_ms

    @property
    def nbytes(self) -> int:
        """Its size; 0 for types without a fixed width, as strings."""
        return prod(self.shape) * WIDTHS.get(self.dtype, 0)


@dataclass(frozen=True, slots=True)
class Conversions:
    """The arrays of the training call at ``at``, in the order of its arguments; () where it gets only tensors."""

    arrays: tuple[ConvertedArray, ...] = ()
    at: Location | None = None

    @property
    def host_ms(self) -> float:
        """The time of all of them within the part of a step that is marked as the call, in ms per step."""
        return sum(array.host_ms for array in self.arrays)

    @classmethod
    def measure(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
        cls,
        trace: Trace,
        recording: Recording,
        framework: Framework,
        steps: Steps,
        activity: Activity,
        operations: Operations | None,
        dataflow: Dataflow | None,
    ) -> Self:
        """Find the conversions within the training function's calls, as many as it has such arguments.

        Raises:
            Unavailable: the arguments were not recorded, or their conversions do not show in the trace.
        """
        record, locate = recording.program.python if recording.program else None, Places.of(recording)
        steady = SteadySteps.of(steps)
        if record is not None and record.feeds is not None:
            waiting = feeding(trace.host_lines, steps) - activity.of(Stage.DEVICE)
            return cls(fed_arrays(record.feeds, steady.ms(waiting)), locate(record.feeds.at))
        if record is not None and record.fed is None:
            raise Unavailable(NOT_CALLED)
        fed = record.fed if record else None
        if fed is None or not all(argument.kind for argument in fed.arguments):
            raise Unavailable(f"the arguments of the training function were not recorded{framework.with_tfdoctor}")
        held = [argument for argument in fed.arguments if argument.kind in HELD]
        lines = trainers(line for line in trace.host_lines if len(line))
        spans = _conversions(lines, fed.function, len(held)) if held else []
        if held and not any(spans):
            raise Unavailable("the trace does not show how the arguments' arrays are converted")
        arrays = []
        for one, when in zip(held, spans, strict=True):
            converting = Intervals.union(when) - activity.of(Stage.DEVICE)
            inside, cast = steady.ms(converting & steady.calls), _cast(one, dataflow, operations)
            outside = steady.ms(converting) - inside
            made = cast.operation.outputs[:1] if cast and cast.operation else ()
            cast_to = made[0][0] if made else ""
            arrays.append(ConvertedArray(one.dtype, one.shape, inside, outside, one.same, cast, cast_to, one.place))
        return cls(tuple(arrays), locate(fed.at))


def fed_arrays(feeds: FedCall, feeding_ms: float) -> tuple[ConvertedArray, ...]:
    """Return what Session.run is fed, which takes so many ms per step to prepare, all within the step's call.

    The time is divided by the bytes that a cast, or a copy, reads and writes for each.

    Raises:
        Unavailable: a list is fed as well, whose conversion does not show beside that of arrays.
    """
    if any(array.kind == "python" for array in feeds.arguments):
        raise Unavailable("Session.run is fed lists beside arrays, and the trace does not tell their times apart")
    moved = []
    for array in feeds.arguments:
        taken, given = (WIDTHS.get(dtype, 0) for dtype in (array.dtype, array.fed_as or array.dtype))
        moved.append(prod(array.shape) * (taken + given) if taken and given else 0)
    total = sum(moved)
    parts = [min(feeding_ms * part / total, part / SLOWEST_BYTES_PER_MS) if part else 0.0 for part in moved]
    return tuple(
        ConvertedArray(one.dtype, one.shape, part, 0.0, one.same, None, one.fed_as, one.place, fed=True)
        for one, part in zip(feeds.arguments, parts, strict=True)
    )


def feeding(lines: Iterable[Line], steps: Steps) -> Intervals:
    """Return the time from the beginning of each step's Session.run until it starts the graph.

    Raises:
        Unavailable: the trace does not show when graphs start.
    """
    named = (line.start_ps[is_named(line, SESSION_RUN.__eq__)] for line in trainers(filter(len, lines)))
    starts = np.sort(np.concatenate([np.zeros(0, np.int64), *named]))
    firsts = [(step, int(starts.searchsorted(step.start_ps))) for step in steps.steps]
    within = ((step, int(starts[at])) for step, at in firsts if at < len(starts))
    spans = [(step.start_ps, start) for step, start in within if start < step.call_end_ps]
    if not spans:
        raise Unavailable("the trace does not show how Session.run converts what it is fed")
    return Intervals.union(spans)


def _conversions(lines: Iterable[Line], function: str, count: int) -> list[list[tuple[int, int]]]:
    """Return when each of so many arrays was converted, from the calls of a function that convert as many."""
    spans: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for line in lines:
        mask = is_named(line, CONVERTED.__eq__)
        starts = line.start_ps[mask]
        events = np.stack((starts, starts + line.duration_ps[mask]), axis=1)
        for call in function_calls(line, function).spans:
            first, last = np.searchsorted(starts, call)
            if last - first == count:
                for one, (start, end) in zip(spans, events[first:last].tolist(), strict=True):
                    one.append((start, end))
    return spans


def _cast(argument: FedArgument, dataflow: Dataflow | None, operations: Operations | None) -> OperationTime | None:
    """Return the cast of a function's input of this type and shape, where nothing else reads that input."""
    if dataflow is None or operations is None:
        return None
    rows = {row.name: row for row in operations.rows}
    wanted = ((argument.dtype, argument.shape),)
    for operation in dataflow.program.by_name.values():
        users = dataflow.consumers.get(operation.name, ())
        if operation.type == "Placeholder" and operation.outputs[:1] == wanted and len(users) == 1:
            row = rows.get(users[0].name)
            if row is not None and users[0].type == "Cast" and row.operation is not None:
                return row
    return None
