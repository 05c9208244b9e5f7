"""Steps told by the programs that XLA compiled: their runs on a TPU or a CPU, else JAX's calls of them.

A program trains when its operations' names hold a backward pass and it changes weights. Of several that
do, or of one that is cut into gradients and update, the outermost regular rhythm is the step.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.xla_programs import (
    XlaPrograms,
    changes_weights,
    operation_names,
    takes_gradients,
)
from tfdoctor.facts.run.xla_runs import ProgramRuns
from tfdoctor.facts.steps.step import Step, chain
from tfdoctor.humanize import counted
from tfdoctor.trace import Line

FEWEST = 4
"""Runs from which a rhythm is one."""

CALL = re.compile(r"PjitFunction\((.*)\)")
"""A call of a compiled function on the host (JAX 0.4 to 0.10); it holds an event of the same name."""

UPDATE = re.compile(r"update|apply|optim", re.IGNORECASE)
"""What people call the function that only applies gradients."""


@dataclass(frozen=True, slots=True, eq=False)
class Rhythm:
    """One program's n runs: (n,) starts and ends in ps, and what is known of what it does."""

    name: str
    starts_ps: NDArray[np.int64]
    ends_ps: NDArray[np.int64]
    gradients: bool
    trains: bool

    @property
    def total_ps(self) -> int:
        """From the first run to the last."""
        return int(self.ends_ps[-1] - self.starts_ps[0])


def of_modules(modules: Iterable[ProgramRuns], xla_programs: XlaPrograms) -> list[Rhythm]:
    """Tell of each program that a TPU ran whether it trains, by its HLO, else by its operations' names."""
    return [
        _rhythm(
            module.title,
            module.first_ps,
            module.last_ps,
            xla_programs,
            module.name,
            list(module.operations),
        )
        for module in modules
    ]


def of_calls(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[Rhythm]:
    """Tell of each function that JAX called on the host whether it trains, by the HLO of the same name."""
    found = []
    for line in lines:
        for at, kind in enumerate(line.types):
            called = CALL.fullmatch(kind.name)
            indices = np.flatnonzero(line.kind == at) if called else np.zeros(0, np.intp)
            if called and len(indices):
                starts, ends = _outer(line, indices)
                found.append(_rhythm(called[1], starts, ends, xla_programs, f"jit_{called[1]}", []))
    return found


def of_runs(lines: Iterable[Line], xla_programs: XlaPrograms) -> list[Rhythm]:
    """Tell of each program that ran on the host's own threads, by its operations, whether it trains.

    JAX's calls return before the work is done, so the runs and not the calls have the time of a step.
    """
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for line in lines:
        for at, stats in line.stats.items():
            if "hlo_op" in stats and "run_id" in stats:
                run = (
                    f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})",
                    int(stats["run_id"]),
                )
                start = int(line.start_ps[at])
                end = start + int(line.duration_ps[at])
                known = spans.get(run, (start, end))
                spans[run] = min(known[0], start), max(known[1], end)
    found = []
    for program in dict.fromkeys(name for name, _ in spans):
        own = np.array(
            sorted(span for (name, _), span in spans.items() if name == program), np.int64
        )
        title = program.partition("(")[0].removeprefix("jit_")
        found.append(_rhythm(title, own[:, 0], own[:, 1], xla_programs, program, []))
    return found


def _outer(line: Line, indices: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the calls that lie in no other of the same function."""
    starts = line.start_ps[indices]
    ends = starts + line.duration_ps[indices]
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
    outer = starts >= before
    return starts[outer], ends[outer]


def _rhythm(
    name: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    xla_programs: XlaPrograms,
    module: str,
    names: list[str],
) -> Rhythm:
    program = xla_programs.named(module)
    names = names + operation_names(program)
    gradients = takes_gradients(names)
    donates = program.donates if program else False
    return Rhythm(name, starts, ends, gradients, changes_weights(name, names, donates=donates))


def compiled_steps(rhythms: list[Rhythm], what: str) -> tuple[str, list[Step]]:
    """Return the name of the program whose runs are the steps, and the steps.

    Raises:
        Unavailable: no program trains as far as the trace tells, or which of several is not certain.
    """
    gradients = [one for one in rhythms if one.gradients]
    if not gradients:
        raise Unavailable(_why_none(rhythms, what))
    main = max(gradients, key=lambda one: one.total_ps)
    for other in gradients:
        if other is not main and not _keeps_step(main, other):
            raise Unavailable(
                f"{main.name} and {other.name} both take gradients, and do not take turns: which are the "
                "training steps is not certain"
            )
    outer = max(
        (_outermost(main, one) for one in rhythms), key=lambda one: (one.trains, one.total_ps)
    )
    chosen = main if main.trains and len(outer.starts_ps) == len(main.starts_ps) else outer
    if not chosen.trains:
        raise Unavailable(
            f"{main.name} takes gradients ({counted(len(main.starts_ps), what)} of it), but nothing in the trace "
            "shows that it changes weights, so they are not called training steps"
        )
    if len(chosen.starts_ps) < FEWEST:
        raise Unavailable(
            f"{chosen.name} trains, but the trace shows only {counted(len(chosen.starts_ps), what)} of it"
        )
    pairs = zip(chosen.starts_ps.tolist(), chosen.ends_ps.tolist(), strict=True)
    return chosen.name, chain(Step(n, start, end, end) for n, (start, end) in enumerate(pairs))


def _outermost(main: Rhythm, other: Rhythm) -> Rhythm:
    """Return the other if it applies what the main one gathers, in turn with it or after each few of it."""
    applies = other is not main and UPDATE.search(other.name) is not None
    return other if applies and _keeps_step(other, main) else main


def _keeps_step(outer: Rhythm, inner: Rhythm) -> bool:
    """Whether between any two runs of one the other runs equally often."""
    if len(outer.starts_ps) > len(inner.starts_ps) + 1:
        outer, inner = inner, outer
    if len(outer.starts_ps) < 2:  # noqa: PLR2004 - no time between two runs
        return False
    place = np.searchsorted(outer.starts_ps, inner.starts_ps, side="right") - 1
    counts = np.bincount(place[place >= 0], minlength=len(outer.starts_ps))[:-1]
    return bool(counts.min() >= 1 and counts.min() == counts.max())


def _why_none(rhythms: list[Rhythm], what: str) -> str:
    if not rhythms:
        return "the trace holds no run of a compiled program"
    most = max(rhythms, key=lambda one: one.total_ps)
    return (
        f"the trace marks no steps, and none of the compiled programs takes gradients: {most.name}, with most of "
        f"the time, has {counted(len(most.starts_ps), what)}"
    )
