"""Steps of frameworks that only queue their work: JAX and PyTorch/XLA, and TensorFlow on a TPU.

A call or a marker that does not wait for the work shows how fast the host is, not how long a step takes.
So the device's own runs of the training program take precedence, and the host's calls and markers count
only where the device keeps pace with them.
"""

from collections import Counter
from itertools import pairwise
from typing import NoReturn

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import ProgramRuns, XlaPrograms, module_runs
from tfdoctor.facts.steps.step import Step, chain
from tfdoctor.facts.steps.xla_steps import compiled_steps, of_calls, of_modules, of_runs
from tfdoctor.terms.kinds import DeviceKind, StepSource
from tfdoctor.trace import Trace

# How the steps were found: by the runs of a compiled program, or by the host's calls of it.
MODULE_RUNS, COMPILED_CALLS = StepSource.XLA_RUNS, StepSource.XLA_CALLS


def module_steps(device: Device, xla_programs: XlaPrograms) -> tuple[str, list[Step]]:
    """Return the program that trains, and its runs on the TPU; "" and none where that is not certain."""
    try:
        return compiled_steps(of_modules(_modules(device), xla_programs), "run")
    except Unavailable:
        return "", []


def _modules(device: Device) -> tuple[ProgramRuns, ...]:
    return module_runs(device.busiest) if device.kind == DeviceKind.TPU and device.busiest else ()


def queued_steps(
    trace: Trace, device: Device, xla_programs: XlaPrograms, framework: Framework, marked: list[Step]
) -> tuple[str, StepSource, list[Step]]:
    """Return the program that trains, how its steps were found, and the steps; "" and NONE for the marked ones.

    Raises:
        Unavailable: no program trains as far as the trace shows, or the host ran ahead of the device.
    """
    runs = of_modules(_modules(device), xla_programs) or of_runs(trace.host_lines, xla_programs)
    programs = runs or of_calls(trace.host_lines, xla_programs)
    try:
        name, steps = compiled_steps(programs, "run" if runs else "call")
    except Unavailable as why:
        if not marked:
            raise Unavailable(str(why), framework.how_to_record) from why
        return "", StepSource.NONE, _unknown() if _late(marked, device) else marked
    # A marked step contains the work that it started where equally many runs end in each.
    ends = np.array([run.call_end_ps for run in steps], np.int64)
    inside = [int(np.count_nonzero((ends >= step.start_ps) & (ends <= step.call_end_ps))) for step in marked]
    if runs and (len(set(inside)) != 1 or sum(inside) != len(steps)):
        return name, MODULE_RUNS, steps
    if not runs and _late(marked or steps, device):
        return name, MODULE_RUNS, _kernel_runs(device, f"jit_{name}", len(steps)) or _unknown()
    return ("", StepSource.NONE, marked) if marked else (name, COMPILED_CALLS, steps)


def _late(steps: list[Step], device: Device) -> bool:
    lines = work_lines(device.busiest) if device.busiest and device.kind != DeviceKind.CPU else ()
    ends = [int((line.start_ps + line.duration_ps).max()) for line in lines if len(line)]
    late = max(ends, default=0) - steps[-1].end_ps
    return late > float(np.median([step.end_ps - step.start_ps for step in steps]))


def _unknown() -> NoReturn:
    raise Unavailable(
        "the host ran ahead of the device, which was still working after the last step, so step times are unknown",
        "wait for the result inside each step (`jax.block_until_ready(loss)`) and record again",
    )


def _kernel_runs(device: Device, module: str, calls: int) -> list[Step]:
    """Return the runs of a program on the busiest GPU by a kernel that is launched once for each of the calls.

    A GPU's plane does not mark the runs: its kernels only name the program (stat ``hlo_module``), and carry no run
    id where XLA runs them as a CUDA graph (``hlo_op`` is then ``command_buffer``; seen with JAX 0.11). A run lasts
    from its first kernel to its last. None where no kernel ran exactly once in each.
    """
    kernels = sorted(
        (event.start_ps, event.end_ps, f"{event.name} {event.stats.get('hlo_op')!s}")
        for line in (work_lines(device.busiest) if device.busiest else ())
        for index, of_event in zip(*line.stats.values("hlo_module"), strict=True)
        if of_event == module
        for event in (line.event(int(index)),)
    )
    counts = Counter(name for _, _, name in kernels)
    first = next((name for _, _, name in kernels if counts[name] == calls), "")
    if calls < 2 or not first:  # noqa: PLR2004 - no period in a single run
        return []
    places = [place for place, kernel in enumerate(kernels) if kernel[2] == first]
    steps = []
    for number, (place, following) in enumerate(pairwise([*places, len(kernels)])):
        end_ps = max(end for _, end, _ in kernels[place:following])
        steps.append(Step(number, kernels[place][0], end_ps, end_ps))
    return chain(steps)
