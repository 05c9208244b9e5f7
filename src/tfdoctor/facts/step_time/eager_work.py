"""How much of a step Python runs operation by operation, and how much as functions."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.trainer import is_named, spans_of, trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RunSettings
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import EAGER_OPERATION, FUNCTION_RUNS
from tfdoctor.verdict import Location

FUNCTION = re.compile(r"EagerLocalExecute: __\w+")
"""Python runs a whole function: its name begins with "__inference_" or "__forward_"."""


@dataclass(frozen=True, slots=True)
class EagerWork:
    """What the trainer's thread ran; numbers and ms per training step."""

    operations: float  # that Python ran one by one
    operations_ms: float
    functions_ms: float  # in whole functions
    asked: bool | None = None  # run_eagerly of Keras; None: not recorded, or no Keras
    at: Location | None = None  # the line of fit, or of the loop

    @classmethod
    def measure(
        cls, trace: Trace, recording: Recording, framework: Framework, steps: Steps
    ) -> Self:
        """Count on the threads of Python that train.

        Raises:
            Unavailable: the run is not TensorFlow's, or its calls were not recorded.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} compiles its steps")
        lines = trainers(line for line in trace.host_lines if len(line))
        steady = SteadySteps.of(steps)
        single, whole, begun = Intervals(), Intervals(), 0
        for line in lines:
            mask = is_named(line, EAGER_OPERATION.fullmatch)
            begun += int(steady.holds(line.start_ps[mask]).sum())
            single |= spans_of(line, mask)
            whole |= spans_of(line, is_named(line, _is_function))
        if not single.spans and not whole.spans:
            raise Unavailable("the trace does not show what Python ran (TensorFlow before 2.4)")
        single -= whole  # within a function that runs on the thread of Python
        settings = recording.program.run if recording.program else RunSettings()
        return cls(
            begun / steady.rounds,
            steady.ms(single),
            steady.ms(whole),
            settings.run_eagerly,
            _line(recording),
        )


def _is_function(name: str) -> bool:
    return name in FUNCTION_RUNS or FUNCTION.fullmatch(name) is not None


def _line(recording: Recording) -> Location | None:
    manifest = recording.manifest
    fit_at = recording.program.run.fit_at if recording.program else None
    return Places.of(recording)(fit_at or (manifest.steps.at if manifest else None))
