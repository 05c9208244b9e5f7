"""The arrays that each call of the training function converts to tensors, and what that takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.feeding import feeding, parts_of
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import WIDTHS, Places
from tfdoctor.facts.step_time.retracing import function_calls
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import is_named, trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import FedArgument, FedCall
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import CONVERTED

HELD = frozenset(("numpy", "pandas"))
"""Kinds of arguments that are no tensors, so that each call converts them."""

NOT_CALLED = (
    "the arguments are looked at only where the script's own loop calls a tf.function, train_on_batch or "
    "Session.run, and no such call was seen in the traced steps"
)

Spans = Sequence[list[tuple[int, int]]]
"""For each array, in the order of the arguments, when it was converted: (start, end), in ps."""


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
        record = recording.program.python if recording.program else None
        if record is not None and record.feeds is not None:
            waiting = feeding(trace.host_lines, steps) - activity.of(Stage.DEVICE)
            arrays = fed_arrays(record.feeds, SteadySteps.of(steps).ms(waiting))
            return cls(arrays, Places.of(recording)(record.feeds.at))
        fed = _fed(recording, framework)
        at = Places.of(recording)(fed.at)
        held = [argument for argument in fed.arguments if argument.kind in HELD]
        if not held:
            return cls((), at)
        lines = trainers(line for line in trace.host_lines if len(line))
        spans = _conversions(lines, fed.function, len(held))
        if not any(spans):
            raise Unavailable("the trace does not show how the arguments' arrays are converted")
        steady, working = SteadySteps.of(steps), activity.of(Stage.DEVICE)
        converted = (
            _array(one, Intervals.union(when) - working, steady, _cast(one, dataflow, operations))
            for one, when in zip(held, spans, strict=True)
        )
        return cls(tuple(converted), at)


def fed_arrays(feeds: FedCall, feeding_ms: float) -> tuple[ConvertedArray, ...]:
    """Return what Session.run is fed, which takes so many ms per step to prepare, all within the step's call.

    Raises:
        Unavailable: not all of it are arrays.
    """
    return tuple(
        ConvertedArray(one.dtype, one.shape, part, 0.0, one.same, None, one.fed_as, one.place, fed=True)
        for one, part in zip(feeds.arguments, parts_of(feeds.arguments, feeding_ms), strict=True)
    )


def _fed(recording: Recording, framework: Framework) -> FedCall:
    """Return the recorded call of the training function."""
    record = recording.program.python if recording.program else None
    fed = record.fed if record else None
    if record is not None and fed is None:
        raise Unavailable(NOT_CALLED)
    if fed is None or not all(argument.kind for argument in fed.arguments):
        raise Unavailable(f"the arguments of the training function were not recorded{framework.with_tfdoctor}")
    return fed


def _conversions(lines: Iterable[Line], function: str, count: int) -> Spans:
    """Return when each of so many arrays was converted, from the calls of a function that convert as many."""
    spans: Spans = [[] for _ in range(count)]
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


def _array(
    argument: FedArgument, when: Intervals, steady: SteadySteps, cast: OperationTime | None
) -> ConvertedArray:
    inside = steady.ms(when & steady.calls)
    made = cast.operation.outputs[:1] if cast and cast.operation else ()
    return ConvertedArray(
        argument.dtype,
        argument.shape,
        inside,
        steady.ms(when) - inside,
        argument.same,
        cast,
        made[0][0] if made else "",
        argument.place,
    )


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
