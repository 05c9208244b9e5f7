"""Steps found by the programs that XLA compiled: their runs on a TPU or a CPU, else JAX's calls of them.

A program trains when its operations' names hold a backward pass and it changes weights. Of several such
programs, or of one divided into gradients and update, the outermost regular cycle is the step.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.xla_programs import ProgramRuns, XlaPrograms, changes_weights, takes_gradients
from tfdoctor.facts.steps.step import Step, chain, steps_between
from tfdoctor.facts.timeline.trainer import present
from tfdoctor.terms.humanize import counted
from tfdoctor.trace import Line
from tfdoctor.trace.intervals import pairs_of

FEWEST = 4  # Runs from which a program's cycle counts
# A call of a compiled function on the host (JAX 0.4 to 0.10); it holds an event of the same name.
CALL = re.compile(r"PjitFunction\((.*)\)")
# Parts of the usual names of a function that only applies gradients.
UPDATE = re.compile(r"update|apply|optim", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class TimedProgram:
    """One compiled program: (n,) starts and ends of its runs in ps, and whether it trains."""

    name: str
    starts_ps: NDArray[np.int64]
    ends_ps: NDArray[np.int64]
    gradients: bool
    trains: bool

    @property
    def total_ps(self) -> int:
        """From the first run to the last."""
        return int(self.ends_ps[-1] - self.starts_ps[0])


def of_modules(modules: Iterable[ProgramRuns], xla_programs: XlaPrograms) -> list[TimedProgram]:
    """Return the programs that a TPU ran; whether one trains is known by its HLO, else by operations' names."""
    return [
        _timed(module.title, module.first_ps, module.last_ps, xla_programs, module.name, module.operations)
        for module in modules
    ]


def of_calls(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[TimedProgram]:
    """Return the functions that JAX called on the host; the HLO of the same name says whether one trains.

    Calls that lie in another call of the same function are left out.
    """
    programs = []
    for line in lines:
        for kind in present(line):
            if called := CALL.fullmatch(line.types[kind].name):
                starts = line.start_ps[line.kind == kind]
                ends = starts + line.duration_ps[line.kind == kind]
                outer = np.append(True, starts[1:] >= np.maximum.accumulate(ends)[:-1])
                programs.append(_timed(called[1], starts[outer], ends[outer], xla_programs, f"jit_{called[1]}"))
    return programs


def of_runs(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[TimedProgram]:
    """Return the programs that ran on the host's own threads.

    JAX's calls return before the work is done, so runs and not calls show the time of a step.
    """
    runs: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for line in lines:
        for index in np.intersect1d(line.stats.having("hlo_op"), line.stats.having("run_id")).tolist():
            stats, start = line.stats.of(index), int(line.start_ps[index])
            spans = runs[f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})"]
            run, end = int(stats["run_id"]), start + int(line.duration_ps[index])
            first, last = spans.get(run, (start, end))
            spans[run] = min(first, start), max(last, end)
    programs = []
    for program, spans in runs.items():
        starts, ends = pairs_of(sorted(spans.values())).T
        title = program.partition("(")[0].removeprefix("jit_")
        programs.append(_timed(title, starts, ends, xla_programs, program))
    return programs


def _timed(
    name: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    xla_programs: XlaPrograms,
    module: str,
    known: tuple[str, ...] = (),
) -> TimedProgram:
    program = xla_programs.named(module)
    names = [*known, *(one.op_name for one in (program.instructions() if program else ()))]
    donates = program is not None and program.donates
    return TimedProgram(name, starts, ends, takes_gradients(names), changes_weights(name, names, donates=donates))


def compiled_steps(programs: list[TimedProgram], what: str) -> tuple[str, list[Step]]:
    """Return the name of the program whose runs are the steps, and the steps.

    Raises:
        Unavailable: no program trains as far as the trace shows, or several do and none qualifies.
    """
    main = _taking_gradients(programs, what)
    # A program that regularly applies the gradients of the main one is around it.
    outer = max(
        (
            one if one is not main and UPDATE.search(one.name) and _keeps_step(one, main) else main
            for one in programs
        ),
        key=lambda program: (program.trains, program.total_ps),
    )
    chosen = main if main.trains and len(outer.starts_ps) == len(main.starts_ps) else outer
    if not chosen.trains:
        raise Unavailable(
            f"{main.name} computes gradients ({counted(len(main.starts_ps), what)}), but the trace does not show "
            "that it changes weights, so it is not known to train"
        )
    if len(chosen.starts_ps) < FEWEST:
        raise Unavailable(f"{chosen.name} trains, but the trace shows only {counted(len(chosen.starts_ps), what)}")
    return chosen.name, chain(steps_between(chosen.starts_ps, chosen.ends_ps))


def _taking_gradients(programs: list[TimedProgram], what: str) -> TimedProgram:
    """Return the longest program that takes gradients; any others must alternate with it."""
    if not programs:
        raise Unavailable("the trace shows no run of a compiled program")
    longest = max(programs, key=lambda program: program.total_ps)
    gradients = [program for program in programs if program.gradients]
    if not gradients:
        raise Unavailable(
            "the trace marks no steps, and no compiled program computes gradients (the longest, "
            f"{longest.name}, has {counted(len(longest.starts_ps), what)})"
        )
    main = max(gradients, key=lambda program: program.total_ps)
    for other in gradients:
        if other is not main and not _keeps_step(main, other):
            raise Unavailable(
                f"{main.name} and {other.name} both compute gradients without alternating, so the training steps "
                "are ambiguous"
            )
    return main


def _keeps_step(outer: TimedProgram, inner: TimedProgram) -> bool:
    """Whether between any two runs of one the other runs equally often."""
    if len(outer.starts_ps) > len(inner.starts_ps) + 1:
        outer, inner = inner, outer
    if len(outer.starts_ps) < 2:  # noqa: PLR2004 - no time between two runs
        return False
    place = np.searchsorted(outer.starts_ps, inner.starts_ps, side="right") - 1
    counts = np.bincount(place[place >= 0], minlength=len(outer.starts_ps))[:-1]
    return bool(counts.min() >= 1 and counts.min() == counts.max())
