"""Steps found by the programs that XLA compiled: their runs on a TPU or a CPU, else JAX's calls of them.

A program trains when its operations' names hold a backward pass and it changes weights. Of several such
programs, or of one divided into gradients and update, the outermost regular cycle is the step.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.xla_programs import XlaPrograms, changes_weights, operation_names, takes_gradients
from tfdoctor.facts.run.xla_runs import ProgramRuns
from tfdoctor.facts.steps.step import Step, chain, steps_between
from tfdoctor.facts.timeline.trainer import present
from tfdoctor.terms.humanize import counted
from tfdoctor.trace import Line
from tfdoctor.trace.intervals import pairs_of

FEWEST = 4
"""Runs from which a program's cycle counts."""

CALL = re.compile(r"PjitFunction\((.*)\)")
"""A call of a compiled function on the host (JAX 0.4 to 0.10); it holds an event of the same name."""

UPDATE = re.compile(r"update|apply|optim", re.IGNORECASE)
"""Parts of the usual names of a function that only applies gradients."""


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
        _timed(module.title, module.first_ps, module.last_ps, xla_programs, module.name, list(module.operations))
        for module in modules
    ]


def of_calls(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[TimedProgram]:
    """Return the functions that JAX called on the host; the HLO of the same name says whether one trains.

    Calls that lie in another call of the same function are left out.
    """
    programs = []
    for line in lines:
        for kind in present(line):
            called = CALL.fullmatch(line.types[kind].name)
            if called is None:
                continue
            starts = line.start_ps[line.kind == kind]
            ends = starts + line.duration_ps[line.kind == kind]
            outer = np.append(True, starts[1:] >= np.maximum.accumulate(ends)[:-1])
            program, module = called[1], f"jit_{called[1]}"
            programs.append(_timed(program, starts[outer], ends[outer], xla_programs, module, []))
    return programs


def of_runs(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[TimedProgram]:
    """Return the programs that ran on the host's own threads.

    JAX's calls return before the work is done, so runs and not calls show the time of a step.
    """
    spans = _run_spans(lines)
    programs = []
    for program in dict.fromkeys(name for name, _ in spans):
        starts, ends = pairs_of(sorted(span for (name, _), span in spans.items() if name == program)).T
        title = program.partition("(")[0].removeprefix("jit_")
        programs.append(_timed(title, starts, ends, xla_programs, program, []))
    return programs


def _run_spans(lines: Iterable[Line]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return when each run of a program started and ended, by the program's name and the run's id."""
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for line in lines:
        for index in np.intersect1d(line.stats.having("hlo_op"), line.stats.having("run_id")).tolist():
            stats = line.stats.of(index)
            name = f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})"
            run = (name, int(stats["run_id"]))
            start = int(line.start_ps[index])
            end = start + int(line.duration_ps[index])
            known = spans.get(run, (start, end))
            spans[run] = min(known[0], start), max(known[1], end)
    return spans


def _timed(
    name: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    xla_programs: XlaPrograms,
    module: str,
    names: list[str],
) -> TimedProgram:
    program = xla_programs.named(module)
    names = names + operation_names(program)
    gradients = takes_gradients(names)
    donates = program.donates if program else False
    return TimedProgram(name, starts, ends, gradients, changes_weights(name, names, donates=donates))


def compiled_steps(programs: list[TimedProgram], what: str) -> tuple[str, list[Step]]:
    """Return the name of the program whose runs are the steps, and the steps.

    Raises:
        Unavailable: no program trains as far as the trace shows, or several do and none qualifies.
    """
    main = _taking_gradients(programs, what)
    outer = max(
        (_outermost(main, program) for program in programs), key=lambda program: (program.trains, program.total_ps)
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


def _outermost(main: TimedProgram, other: TimedProgram) -> TimedProgram:
    """Return the other program if it regularly applies the gradients of the main one, else the main one."""
    applies = other is not main and UPDATE.search(other.name) is not None
    return other if applies and _keeps_step(other, main) else main


def _keeps_step(outer: TimedProgram, inner: TimedProgram) -> bool:
    """Whether between any two runs of one the other runs equally often."""
    if len(outer.starts_ps) > len(inner.starts_ps) + 1:
        outer, inner = inner, outer
    if len(outer.starts_ps) < 2:  # noqa: PLR2004 - no time between two runs
        return False
    place = np.searchsorted(outer.starts_ps, inner.starts_ps, side="right") - 1
    counts = np.bincount(place[place >= 0], minlength=len(outer.starts_ps))[:-1]
    return bool(counts.min() >= 1 and counts.min() == counts.max())
