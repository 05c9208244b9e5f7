"""The steps by precedence: what the recorder, markers or the device recorded, else what a search finds."""

from dataclasses import replace

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.cycle import CALL
from tfdoctor.facts.steps.markers import marked, step_line, train_function_calls
from tfdoctor.facts.steps.queued_steps import MODULE_RUNS, module_steps, queued_steps
from tfdoctor.facts.steps.search import search
from tfdoctor.facts.steps.step import Step, chain
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import DeviceKind, StepSource
from tfdoctor.trace import Trace
from tfdoctor.trace.names import END_OF_WINDOW

KnownSteps = tuple[StepSource, list[Step]]  # How the steps were found, and the steps


def recorded_steps(
    trace: Trace, recording: Recording, device: Device, xla_programs: XlaPrograms, framework: Framework
) -> tuple[str, KnownSteps | None]:
    """Return the program whose runs are the steps ("" for none), and the steps that need no search."""
    manifest, known_steps = recording.manifest, None
    # The recorder's name for a loop inside a tf.function: a marker around its call is not a step.
    if manifest and StepSource.GRAPH_LOOP in (manifest.steps.source, manifest.window and manifest.window.source):
        known_steps = searched_steps(trace, in_graph=True)
    elif steps := marked(trace, manifest, any_name=framework.foreign):
        known_steps = _closed(StepSource.MARKERS, steps, trace)
    elif steps := step_line(device.busiest):
        on_tpu = device.kind == DeviceKind.TPU
        known_steps = _closed(StepSource.TPU_STEPS if on_tpu else StepSource.MARKERS, steps, trace)
    if framework.foreign and (recording.traces or recording.run is None):
        marked_steps = known_steps[1] if known_steps else []
        program, source, steps = queued_steps(trace, device, xla_programs, framework, marked_steps)
        return program, known_steps if known_steps and source is StepSource.NONE else _closed(source, steps, trace)
    if known_steps is None and device.kind == DeviceKind.TPU:
        program, steps = module_steps(device, xla_programs)
        return program, _closed(MODULE_RUNS, steps, trace) if steps else None
    return "", known_steps


def searched_steps(trace: Trace, *, in_graph: bool) -> KnownSteps:
    """Look for steps that nobody marked; Keras' train function is known by its name."""
    source, steps = search(trace, in_graph=in_graph)
    if not steps and in_graph:
        raise Unavailable(
            "the training loop is inside a graph, and the trace does not separate its iterations (XLA runs a "
            "whole loop as one program)",
            "call the function once per step to measure the steps",
        )
    if not steps:
        source, steps = CALL, train_function_calls(trace)
    if not steps:
        return StepSource.NONE, []
    return _closed(source, chain(steps), trace) if source == CALL else (source, chain(steps))


def _closed(source: StepSource, steps: list[Step], trace: Trace) -> KnownSteps:
    """Let the last step end with the traced window, where the trace shows when that ended."""
    ends = [event.start_ps for event in trace.host_events(END_OF_WINDOW) if event.start_ps >= steps[-1].call_end_ps]
    return source, [*steps[:-1], replace(steps[-1], end_ps=min(ends))] if ends else steps
