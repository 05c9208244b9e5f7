"""Facts of a run of one script, written by hand."""

from typing import Any

from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.phases.run_phases import RunLine
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Location

SCRIPT = "train.py"


def line(phase: Phase, number: int, ms: float, calls: str = "", **more: Any) -> RunLine:
    return RunLine.of(phase, Location(SCRIPT, number), ms, calls, **more)


def made(call: RunCall, number: int, count: int, each_ms: float, **more: Any) -> MadeCall:
    return MadeCall.of(call, Location(SCRIPT, number), count, each_ms, **more)


def steps(count: int, each_ms: float, long: LongSteps | None = None) -> RunSteps:
    return RunSteps.of(Location(SCRIPT, 40), count, each_ms, long)
