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

MODULES = "XLA Modules"  # The line that holds a run of a program per event (libtpu, all generations)


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
    kinds: dict[str, list[int]] = defaultdict(list)  # of each program's operations, by its fingerprint
    for index, kind in enumerate(operations.types if operations else ()):
        kinds[str(int(kind.stats.get("program_id", 0)) % 2**64)].append(index)
    programs = []
    for kind in np.unique(modules.kind).tolist():
        name, indices = modules.types[kind].name, np.flatnonzero(modules.kind == kind)
        starts = modules.start_ps[indices]
        ends = starts + modules.duration_ps[indices]
        stats = [modules.stats.of(int(index)) for index in indices]
        runs = tuple((int(stat["run_id"]), int(stat.get("queue_id", 0))) for stat in stats if "run_id" in stat)
        first, last, names = starts, ends, list[str]()
        own = kinds.get(name.rpartition("(")[2].rstrip(")"), [])
        if operations is not None and np.isin(operations.kind, own).any():
            rows = np.flatnonzero(np.isin(operations.kind, own))
            first, last = _bounds(operations, rows, starts, ends)
            names = [str(operations.types[one].stats.get("tf_op", "")) for one in np.unique(operations.kind[rows])]
        runs = runs if len(runs) == len(indices) else ()
        programs.append(ProgramRuns(name, starts, ends, first, last, tuple(names), runs))
    return tuple(sorted(programs, key=lambda program: -program.busy_ps))


def _bounds(
    line: Line, indices: NDArray[np.intp], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when the operations of each run began and ended, else the modules' times.

    Where every operation lies in a run, the two clocks agree, and the modules' times are right.
    """
    begin, kinds = line.start_ps[indices], line.kind[indices].tolist()
    finish = begin + line.duration_ps[indices]
    place = np.searchsorted(starts, begin, side="right") - 1
    times = Counter(kinds)
    once = next((kind for kind in kinds if times[kind] == len(starts)), None)
    if once is None or ((place >= 0) & (finish <= ends[place])).all():
        return starts, ends
    begins = np.flatnonzero(line.kind[indices] == once)
    return begin[begins], np.maximum.reduceat(finish, begins)
