"""The operations and the stages of the input pipeline whose time changed most."""

import math
from collections import defaultdict
from collections.abc import Mapping

from tfdoctor.compare.reports import step_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import Mover, MoverKind

MOST = 20  # Movers that are kept: a comparison is read, and the reports of the two runs have all operations
SMALLEST = 0.01  # Share of the step by which an operation or a stage must change
Times = Mapping[str, float]  # Milliseconds per step by name


def movers(before: Diagnosis, after: Diagnosis, certain: float, *, in_ms: bool) -> tuple[Mover, ...]:
    """Return what moved, most first; in ms, or in shares of the step.

    It must move by a percent of the step, and relative to its own time by at least ``certain``: how much slower a
    run must be for the steps to show it.
    """
    kinds = {MoverKind.OPERATION: _operations, MoverKind.STAGE: _stages}
    moved = []
    for kind, times in kinds.items():
        first, last = (_scaled(report, times(report), in_ms) for report in (before, after))
        if first and last:  # otherwise one of the runs does not know its times
            moved += [
                Mover(kind=kind, name=name, before=first.get(name), after=last.get(name))
                for name in dict.fromkeys([*first, *last])
            ]
    step = max(step_of(before) or 0.0, step_of(after) or 0.0) if in_ms else 1.0
    least = math.log1p(certain)
    shown = [mover for mover in moved if abs(_by(mover)) >= SMALLEST * step and _ratio(mover) >= least]
    return tuple(sorted(shown, key=lambda mover: (-abs(_by(mover)), mover.name))[:MOST])


def _ratio(mover: Mover) -> float:
    """Return the logarithm of the larger time over the smaller one; infinite where one is not there."""
    low, high = sorted((mover.before or 0.0, mover.after or 0.0))
    return math.log(high / low) if low > 0 else math.inf


def _by(mover: Mover) -> float:
    return (mover.after or 0.0) - (mover.before or 0.0)


def _scaled(report: Diagnosis, times: Times, in_ms: bool) -> Times:  # noqa: FBT001 - private
    step_ms = step_of(report)
    if in_ms or not step_ms:
        return times if in_ms else {}
    return {name: ms / step_ms for name, ms in times.items()}


def _operations(report: Diagnosis) -> Times:
    times: dict[str, float] = defaultdict(float)
    for row in report.operations:
        times[f"{row.operation} ({row.layer})" if row.layer else row.operation] += row.self_ms
    return times


def _stages(report: Diagnosis) -> Times:
    """Return the stages by what the user wrote or what ran; of several with one name, their sum."""
    times: dict[str, float] = defaultdict(float)
    for stage in report.pipeline:
        times[stage.written or stage.name] += stage.self_ms
    return times
