"""When the rounds of a TPU's cores begin: training steps, else runs of the program with the most time."""

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms, module_runs
from tfdoctor.facts.steps.steady_steps import RoundUnit
from tfdoctor.facts.steps.xla_steps import compiled_steps, of_modules
from tfdoctor.facts.timeline.host_events import leaves
from tfdoctor.trace import Line, Plane

STEP_LINE = "Steps"  # The line of steps that TensorFlow and PyTorch/XLA write on a TPU; JAX does not


def rounds_of(core: Plane, xla_programs: XlaPrograms) -> tuple[RoundUnit, str]:
    """Return what a round is, and the program whose runs are the rounds: the training one, else the longest."""
    modules = module_runs(core)
    if any(line.name == STEP_LINE and len(line) for line in core.lines):
        return RoundUnit.STEP, modules[0].title if modules else ""
    try:
        name, _ = compiled_steps(of_modules(modules, xla_programs), "run")
    except Unavailable:
        return RoundUnit.RUN, modules[0].title if modules else ""
    return RoundUnit.STEP, name


def counted(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether an operation counts: loops and calls that contain others do not."""
    kinds = [str(kind.stats.get("hlo_category", "")) in CONTAINERS for kind in line.types]
    counts: NDArray[np.bool_] = leaves(line) | ~np.array(kinds, dtype=bool)[line.kind]
    return counts


def starts_of(core: Plane, unit: RoundUnit, program: str) -> tuple[NDArray[np.int64], int]:
    """Return (rounds,) when a core's rounds begin, and when the last one ends, in ps; empty without rounds."""
    line = next((line for line in core.lines if line.name == STEP_LINE and len(line)), None)
    if unit is RoundUnit.STEP and line is not None:
        return line.start_ps, int((line.start_ps + line.duration_ps).max())
    module = next((run for run in module_runs(core) if run.title == program), None)
    if module is None:
        return np.zeros(0, np.int64), 0
    return np.sort(module.first_ps), int(module.last_ps.max())
