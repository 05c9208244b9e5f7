"""Steps found by the programs that XLA compiled: their runs on a TPU or a CPU, else JAX's calls of them.

A program trains when its operations' names hold a backward pass and it changes weights. Of several such
programs, or of one divided into gradients and update, the outermost regular cycle is the step.

JAX, PyTorch/XLA, and TensorFlow on a TPU only queue their work: a call or a marker that does not wait for the work
shows how fast the host is, not how long a step takes. So the device's own runs of the training program take
precedence, and the host's calls and markers count only where the device keeps pace with them.
"""

from typing import NoReturn

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import ProgramRuns, XlaPrograms, changes_weights, module_runs, takes_gradients
from tfdoctor.facts.steps.step import Step, chain, steps_between
from tfdoctor.facts.timeline.host_events import present
from tfdoctor.terms.humanize import counted

FEWEST = 4  # Runs from which a program's cycle counts
# A call of a compiled function on the host (JAX 0.4 to 0.10); it holds an event of the same name.
CALL = re.compile(r"PjitFunction\((.*)\)")
# Parts of the usual names of a function that only applies gradients.
UPDATE = re.compile(r"update|apply|optim", re.IGNORECASE)


class TimedProgram(Record, eq=False):
    """One compiled program: (n,) starts and ends of its runs in ps, and whether it trains."""

    name: str
    starts_ps: NDArray[np.int64]
    ends_ps: NDArray[np.int64]
    gradients: bool
    trains: bool

    def __len__(self) -> int:
        return len(self.starts_ps)

    @property
    def total_ps(self) -> int:
        """From the first run to the last."""
        return int(self.ends_ps[-1] - self.starts_ps[0])


def of_modules(modules: Iterable[ProgramRuns], xla: XlaPrograms) -> list[TimedProgram]:
    """Return the programs that a TPU ran; whether one trains is known by its HLO, else by operations' names."""
    return [_timed(one.title, one.first_ps, one.last_ps, xla, one.name, one.operations) for one in modules]


def of_calls(lines: Iterable[Line], xla: XlaPrograms) -> list[TimedProgram]:
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
                programs.append(_timed(called[1], starts[outer], ends[outer], xla, f"jit_{called[1]}"))
    return programs


def of_runs(lines: Iterable[Line], xla: XlaPrograms) -> list[TimedProgram]:
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
        programs.append(_timed(program.partition("(")[0].removeprefix("jit_"), starts, ends, xla, program))
    return programs


def _timed(
    name: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    xla: XlaPrograms,
    module: str,
    known: tuple[str, ...] = (),
) -> TimedProgram:
    program = xla.named(module)
    names = [*known, *(one.op_name for one in (program.instructions() if program else ()))]
    donates = program is not None and program.donates
    return TimedProgram(name, starts, ends, takes_gradients(names), changes_weights(name, names, donates=donates))


def compiled_steps(programs: list[TimedProgram], what: str) -> tuple[str, list[Step]]:
    """Return the name of the program whose runs are the steps, and the steps.

    Raises:
        Unavailable: no program trains as far as the trace shows, or several do and none qualifies.
    """
    if not programs:
        raise Unavailable("the trace shows no run of a compiled program")
    longest = max(programs, key=lambda program: program.total_ps)
    gradients = [program for program in programs if program.gradients]
    if not gradients:
        raise Unavailable(
            "the trace marks no steps, and no compiled program computes gradients (the longest, "
            f"{longest.name}, has {counted(len(longest), what)})"
        )
    main = max(gradients, key=lambda program: program.total_ps)
    for other in gradients:
        if other is not main and not _keeps_step(main, other):
            raise Unavailable(
                f"{main.name} and {other.name} both compute gradients without alternating, so the training steps "
                "are ambiguous"
            )
    # A program that regularly applies the gradients of the main one is around it.
    around = [one for one in programs if one is not main and UPDATE.search(one.name) and _keeps_step(one, main)]
    candidates = [one if one in around else main for one in programs]
    outer = max(candidates, key=lambda program: (program.trains, program.total_ps))
    chosen = main if main.trains and len(outer) == len(main) else outer
    if not chosen.trains:
        raise Unavailable(
            f"{main.name} computes gradients ({counted(len(main), what)}), but the trace does not show "
            "that it changes weights, so it is not known to train"
        )
    if len(chosen) < FEWEST:
        raise Unavailable(f"{chosen.name} trains, but the trace shows only {counted(len(chosen), what)}")
    return chosen.name, chain(steps_between(chosen.starts_ps, chosen.ends_ps))


def _keeps_step(outer: TimedProgram, inner: TimedProgram) -> bool:
    """Whether between any two runs of one the other runs equally often."""
    if len(outer) > len(inner) + 1:
        outer, inner = inner, outer
    if len(outer) < 2:  # noqa: PLR2004 - no time between two runs
        return False
    place = np.searchsorted(outer.starts_ps, inner.starts_ps, side="right") - 1
    counts = np.bincount(place[place >= 0], minlength=len(outer))[:-1]
    return bool(counts.min() >= 1 and counts.min() == counts.max())


def module_steps(device: Device, xla: XlaPrograms) -> tuple[str, list[Step]]:
    """Return the program that trains, and its runs on the TPU; "" and none where that is not certain."""
    try:
        return compiled_steps(_on_tpu(device, xla), "run")
    except Unavailable:
        return "", []


def _on_tpu(device: Device, xla: XlaPrograms) -> list[TimedProgram]:
    return of_modules(module_runs(device.busiest), xla) if device.kind == DeviceKind.TPU and device.busiest else []


def queued_steps(
    trace: Trace, device: Device, xla: XlaPrograms, framework: Framework, marked: list[Step]
) -> tuple[str, StepSource, list[Step]]:
    """Return the program that trains, how its steps were found, and the steps; "" and NONE for the marked ones.

    Raises:
        Unavailable: no program trains as far as the trace shows, or the host ran ahead of the device.
    """
    runs = _on_tpu(device, xla) or of_runs(trace.host_lines, xla)
    programs = runs or of_calls(trace.host_lines, xla)
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
        return name, StepSource.XLA_RUNS, steps
    if not runs and _late(marked or steps, device):
        return name, StepSource.XLA_RUNS, _kernel_runs(device, f"jit_{name}", len(steps)) or _unknown()
    return ("", StepSource.NONE, marked) if marked else (name, StepSource.XLA_CALLS, steps)


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
    places = [place for place, (_, _, name) in enumerate(kernels) if name == first]
    ends = [max(end for _, end, _ in kernels[at:to]) for at, to in pairwise([*places, len(kernels)])]
    return chain(
        Step(number, kernels[at][0], end, end) for number, (at, end) in enumerate(zip(places, ends, strict=True))
    )
