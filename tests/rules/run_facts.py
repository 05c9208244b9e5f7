"""Facts of a run of one script, written by hand."""

from tests.builders import stage_time
from tests.kit import *
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.facts.run.program import Dataset
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Location

SCRIPT = "train.py"
PREFETCH = stage_time("Root::Prefetch")


def script(number: int) -> Location:
    """A line of the script."""
    return Location(SCRIPT, number)


def took(name: str, kind: str, ms: float, **more: Any) -> OperationTime:
    """An operation that ran."""
    return OperationTime(name=name, type=kind, ms=ms, **more)


UNNAMED = took("k", "compiled or unnamed", 9.0)
UNNAMED_WORK = Operations((UNNAMED,))


def at_line(phase: Phase, number: int, ms: float, calls: str = "", **more: Any) -> RunLine:
    return run_line(phase, script(number), ms, calls, **more)


def calls_at(call: RunCall, number: int, count: int, each_ms: float, **more: Any) -> MadeCall:
    return made_call(call, script(number), count, each_ms, **more)


def steps_at(count: int, each_ms: float, long: LongSteps | None = None) -> RunSteps:
    return equal_steps(script(40), count, each_ms, long)


def run_line(phase: Phase, at: Location | None, ms: float, calls: str = "", **more: Any) -> RunLine:
    """A line in a loop of the script."""
    parts: dict[str, Any] = {"samples": 100, "function": "<module>", "repeats": True}
    return RunLine(phase=phase, at=at, ms=ms, calls=calls, **(parts | more))


def made_call(call: RunCall, at: Location | None, count: int, each_ms: float, **more: Any) -> MadeCall:
    """Calls by their mean time."""
    parts: dict[str, Any] = {"name": f"Model.{call}", "ms": count * each_ms}
    return MadeCall(call=call, at=at, count=count, **(parts | more))


def equal_steps(at: Location | None, count: int, each_ms: float, long: LongSteps | None = None) -> RunSteps:
    """Steps of the same time."""
    each: dict[str, Any] = dict.fromkeys(("mean_ms", "median_ms", "p10_ms", "p90_ms"), each_ms)
    return RunSteps(at=at, source="keras-fit", count=count, total_ms=count * each_ms, long=long, **each)


def divided_run(total_ms: float, times: Mapping[Phase, float], *lines: RunLine) -> RunPhases:
    """The account of a run; what is left of its time is in steps."""
    left = times.get(Phase.STEPS, 0.0) + total_ms - sum(times.values())
    return RunPhases(total_ms=total_ms, times={**times, Phase.STEPS: left}, lines=lines)


def dataset_of(kind: str, **more: Any) -> Dataset:
    """The dataset of a stage."""
    parts: dict[str, Any] = {"id": 0, "kind": f"_{kind}Dataset"}
    return Dataset(**(parts | more))


def chained(*stages: Dataset, first: int = 20) -> tuple[Dataset, ...]:
    """Stages numbered in the order of their code, each made of the one before on a line below; the last first."""
    made = (
        replace(stage, id=at, inputs=(at - 1,) if at else (), at=stage.at or script(first + at))
        for at, stage in enumerate(stages)
    )
    return tuple(made)[::-1]
