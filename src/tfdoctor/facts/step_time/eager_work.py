"""How much of a step Python runs operation by operation, and how much as functions."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.trainer import is_named, spans_of, trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RunSettings, SourceLine
from tfdoctor.terms.kinds import DeviceKind, StepSource
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import EAGER_KERNEL, EAGER_OPERATION, FUNCTION_RUNS

# Python runs a whole function: its name begins with "__inference_" or "__forward_".
FUNCTION = re.compile(r"EagerLocalExecute: __\w+")
# Ms that running a kernel from Python adds to the kernel (the shortest of 8 traced runs took 1.3 to 2.1 us, the 5th
# percentile 1.7 to 2.4 us), and that a graph's executor spends on each operation at least (0.4 to 0.7 us for those
# that only pass a tensor on; TensorFlow 2.21 on a Xeon with AMX).
STARTING, SCHEDULING = 2e-3, 0.5e-3


@dataclass(frozen=True, slots=True)
class EagerWork:
    """What the trainer's thread ran; numbers and ms per training step.

    ``least_ms`` is what the kernels of the operations take on a CPU when a graph runs them: each at its fastest
    in the traced steps, since a pool that slept between two operations, or another program, delays the others.
    0.0 where the steps do not run the same kernels, and on accelerators.
    """

    operations: float  # that Python ran one by one
    operations_ms: float
    functions_ms: float  # in whole functions
    asked: bool | None = None  # run_eagerly of Keras; None: not recorded, or no Keras
    at: Location | None = None  # the line of fit, or of the loop
    least_ms: float = 0.0
    step_at: Location | None = None  # where the function that the loop calls is defined
    called_at: Location | None = None  # the line of the loop that calls it
    beside: str = ""  # the tf.function that is the step, where the operations run beside it

    @classmethod
    def measure(
        cls, trace: Trace, recording: Recording, framework: Framework, steps: Steps, device: Device
    ) -> Self:
        """Count on the threads of Python that train.

        Raises:
            Unavailable: the run is not TensorFlow's, or its calls were not recorded.
        """
        if framework.foreign:
            raise Unavailable(f"a run of {framework.title} compiles its steps")
        lines = trainers(trace.host_lines)
        steady = SteadySteps.of(steps)
        masks = [is_named(line, EAGER_OPERATION.fullmatch) for line in lines]
        begun = sum(int(steady.holds(line.start_ps[mask]).sum()) for line, mask in zip(lines, masks, strict=True))
        single = Intervals.any_of(map(spans_of, lines, masks))
        whole = Intervals.any_of(spans_of(line, is_named(line, _is_function)) for line in lines)
        if not single and not whole:
            raise Unavailable("the trace does not show what Python ran (TensorFlow before 2.4)")
        settings = recording.program.run if recording.program else RunSettings()
        loop_at = recording.manifest.steps.at if recording.manifest else None
        locate = Places.of(recording)
        step, call = map(locate, _step_function(recording))
        python = recording.program.python if recording.program else None
        seen = recording.manifest.steps.candidates if recording.manifest else ()
        takes_gradients = any(one.source == StepSource.EAGER_GRADIENT for one in seen)
        return cls(
            begun / steady.rounds,
            steady.ms(single - whole),  # not within a function that runs on the thread of Python
            steady.ms(whole),
            settings.run_eagerly,
            locate(settings.fit_at or loop_at),
            _least(lines, whole, steady) if device.kind == DeviceKind.CPU else 0.0,
            step,
            call,
            python.fed.function if python and python.fed and not takes_gradients else "",
        )


def _least(lines: list[Line], whole: Intervals, steady: SteadySteps) -> float:
    """Return the least ms per step of the kernels that Python starts outside of functions; 0.0 is unknown.

    Of the thread with the most, by the steps that run the usual number, where these are half of the steady ones.
    """
    found = [np.zeros((0, 0))]  # (steps, kernels) ms
    for line in lines:
        single = is_named(line, EAGER_KERNEL.__eq__) & ~whole.holds(line.start_ps)
        starts, lasting = line.start_ps[single], line.duration_ps[single]
        edges = (starts.searchsorted(stretch).tolist() for stretch in steady.stretches)
        rows = [lasting[first:last] / 1e9 for first, last in edges]
        usual = max((len(row) for row in rows), key=[len(row) for row in rows].count, default=0)
        equal = [row for row in rows if len(row) == usual]
        if usual and 2 * len(equal) >= len(rows):
            found.append(np.array(equal))
    times = max(found, key=lambda rows: (rows.size > 0, rows.sum()))
    return float(np.maximum(times.min(axis=0) - STARTING, SCHEDULING).sum()) if times.size else 0.0


def _is_function(name: str) -> bool:
    return name in FUNCTION_RUNS or FUNCTION.fullmatch(name) is not None


def _step_function(recording: Recording) -> tuple[SourceLine | None, SourceLine | None]:
    """Return where the function is defined that most samples of steps are in, and the line that mostly calls it."""
    log = recording.run
    times, calls = Counter[SourceLine](), Counter[tuple[SourceLine, SourceLine]]()
    for bucket in log.buckets if log else ():
        for number, count in bucket.samples.items():
            stack = log.stacks.get(int(number)) if log and number.isdecimal() else None
            if stack and stack.step:
                times[stack.step] += count
                if stack.step_call:
                    calls[stack.step, stack.step_call] += count
    step = max(times, key=times.__getitem__, default=None)
    own = [pair for pair in calls if pair[0] == step]
    return step, max(own, key=calls.__getitem__, default=(None, None))[1]
