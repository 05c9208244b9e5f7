"""When a TPU core ran which of XLA's programs.

The line "XLA Modules" uses the host's clock, the operations the device's: in a real trace of a v6e the
two drift apart by up to 47 ms. So runs are also found by their operations: a new run begins where the
first operation that every run has exactly once occurs again.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.trace import Line, Plane
from tfdoctor.trace.names import TPU_OPS

MODULES = "XLA Modules"
"""The line that holds a run of a program per event (libtpu, all generations)."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramRuns:
    """One program's n runs on one core. Times in ps; (n,)."""

    name: str  # "jit_train_step(12190760917235803885)"
    starts_ps: NDArray[np.int64]  # on the host's clock
    ends_ps: NDArray[np.int64]
    first_ps: NDArray[np.int64]  # when its first operation began, on the device's clock
    last_ps: NDArray[np.int64]  # when its last one ended
    operations: tuple[str, ...]  # the framework's names of its operations: "jit(f)/jit(main)/add:"
    runs: tuple[tuple[int, int], ...] = ()  # run_id and queue_id, where recorded

    @property
    def title(self) -> str:
        """The name without the fingerprint."""
        return self.name.partition("(")[0]

    @property
    def busy_ps(self) -> int:
        """The total time of all runs, in ps."""
        return int((self.ends_ps - self.starts_ps).sum())


def module_runs(core: Plane) -> tuple[ProgramRuns, ...]:
    """Return the programs that one core ran, those with the most time first."""
    lines = {line.name: line for line in core.lines}
    modules, operations = lines.get(MODULES), lines.get(TPU_OPS)
    if modules is None or not len(modules):
        return ()
    by_program = _by_program(operations)
    runs = [_module(modules, int(kind), operations, by_program) for kind in np.unique(modules.kind)]
    return tuple(sorted(runs, key=lambda module: -module.busy_ps))


def _by_program(line: Line | None) -> dict[str, NDArray[np.intp]]:
    """Return the indices of each program's operations, by its fingerprint."""
    if line is None:
        return {}
    kinds: dict[str, list[int]] = defaultdict(list)
    for index, kind in enumerate(line.types):
        kinds[str(int(kind.stats.get("program_id", 0)) % 2**64)].append(index)
    return {program: np.flatnonzero(np.isin(line.kind, own)) for program, own in kinds.items()}


def _module(modules: Line, kind: int, line: Line | None, by_program: dict[str, NDArray[np.intp]]) -> ProgramRuns:
    name = modules.types[kind].name
    indices = np.flatnonzero(modules.kind == kind)
    starts = modules.start_ps[indices]
    ends = starts + modules.duration_ps[indices]
    stats = [modules.stats.of(int(index)) for index in indices]
    runs = tuple((int(stat["run_id"]), int(stat.get("queue_id", 0))) for stat in stats if "run_id" in stat)
    operation_indices = by_program.get(name.rpartition("(")[2].rstrip(")"), np.zeros(0, np.intp))
    first, last = starts, ends
    names: tuple[str, ...] = ()
    if line is not None and len(operation_indices):
        first, last = _bounds(line, operation_indices, starts, ends)
        kinds = np.unique(line.kind[operation_indices])
        names = tuple(str(line.types[kind].stats.get("tf_op", "")) for kind in kinds)
    return ProgramRuns(name, starts, ends, first, last, names, runs if len(runs) == len(indices) else ())


def _bounds(
    line: Line, indices: NDArray[np.intp], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when the operations of each run began and ended, else the modules' times.

    Where every operation lies in a run, the two clocks agree, and the modules' times are right.
    """
    begin = line.start_ps[indices]
    finish = begin + line.duration_ps[indices]
    place = np.searchsorted(starts, begin, side="right") - 1
    if ((place >= 0) & (finish <= ends[place])).all():
        return starts, ends
    times = Counter(line.kind[indices].tolist())
    once = next((kind for kind in line.kind[indices].tolist() if times[kind] == len(starts)), None)
    if once is None:
        return starts, ends
    begins = np.flatnonzero(line.kind[indices] == once)
    return begin[begins], np.maximum.reduceat(finish, begins)
