"""The programs that XLA compiled for the run, which of them train, and when a TPU core ran which.

The line "XLA Modules" uses the host's clock, the operations the device's: in a real trace of a v6e the two drift
apart by up to 47 ms. So runs are also found by their operations: a new run begins where the first operation that
every run has exactly once occurs again.
"""

from tfdoctor.facts.kit import *
from tfdoctor.trace.hlo import PROGRAM, HloProgram, Instruction, programs
from tfdoctor.trace.names import TPU_OPS

# Parts of framework names that only a backward pass has: JAX's transpose(jvp(...)), TensorFlow's gradient_tape/ and
# gradients/, PyTorch's aten__convolution_backward.
BACKWARD_PASS = re.compile(r"transpose\(jvp|gradient_tape/|(?:^|/)gradients\w*/|backward", re.IGNORECASE)

# Parts of the names of an optimizer's operations: Keras' and optax's scopes, TensorFlow's types.
OPTIMIZER = re.compile(
    r"(?:^|[/(_])(?:adam\w*|sgd|momentum|rmsprop|adagrad|adadelta|lion|lamb|lars|optax|apply_updates|"
    r"apply_gradients|optimizer)(?:$|[/)_])|Apply|AssignSub"
)

CONTAINERS = ("while", "conditional", "call", "async-call")  # XLA's categories of operations that hold others
MODULES = "XLA Modules"  # The line that holds a run of a program per event (libtpu, all generations)
# Parts of the usual names of a function that trains.
TRAINING = re.compile(r"train|update|apply|fit(?:$|_)|optim", re.IGNORECASE)


class XlaPrograms(Record):
    """XLA's programs, by the name of their module with and without fingerprint; empty when there are none.

    ``multiplying`` has the dots and convolutions of each instruction that holds any, by the program's
    fingerprint and the instruction's name.
    """

    programs: Mapping[str, HloProgram]
    multiplying: Mapping[tuple[str, str], tuple[Instruction, ...]] = field(default_factory=dict)

    @classmethod
    def measure(cls, trace: Trace) -> Self:
        """Read the programs that the profiler kept."""
        by_module = programs(trace)
        multiplying = {
            (fingerprint[1], instruction.name): matmuls
            for name, program in by_module.items()
            if (fingerprint := PROGRAM.search(name))
            for instruction in program.instructions()
            if (matmuls := tuple(inner for inner in program.inside(instruction) if inner.matmul))
        }
        return cls(by_module, multiplying)

    def matmuls(self, fingerprint: str, instruction: str) -> tuple[Instruction, ...]:
        """Return the dots and convolutions in an instruction, by its program's fingerprint and its name."""
        return self.multiplying.get((fingerprint, instruction), ())

    def is_depthwise(self, fingerprint: str, instruction: str) -> bool:
        """Say whether an instruction, or what it fuses, convolves each channel alone."""
        sizes = [inner.matmul for inner in self.matmuls(fingerprint, instruction) if inner.matmul]
        return bool(sizes) and all(matmul.depthwise for matmul in sizes)

    def named(self, module: str) -> HloProgram | None:
        """Return a module's program, by "jit_f(123)" or, where that is not known, by "jit_f"."""
        return self.programs.get(module) or self.programs.get(PROGRAM.sub("", module))

    @property
    def by_keras(self) -> bool:
        """Whether Keras' own functions on JAX are among those that were compiled."""
        return any("keras/src/backend/jax" in file for program in self.programs.values() for file in program.files)


def takes_gradients(names: list[str]) -> bool:
    """Say whether operations of these names hold a backward pass."""
    return any(BACKWARD_PASS.search(name) for name in names)


def changes_weights(module: str, names: list[str], *, donates: bool) -> bool:
    """Say whether a program that takes gradients applies them too, as a whole training step does.

    Such a program overwrites its inputs, has an optimizer's operations, or is named after training.
    """
    return donates or bool(TRAINING.search(module)) or any(OPTIMIZER.search(name) for name in names)


def entry(program: HloProgram) -> Mapping[str, Instruction]:
    """Return a program's instructions by name; names are unique in a program."""
    return {instruction.name: instruction for instruction in program.instructions()}


class ProgramRuns(Record, eq=False):
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
    types = enumerate(operations.types if operations else ())
    kinds = by_key((str(int(one.stats.get("program_id", 0)) % 2**64), at) for at, one in types)  # by fingerprint
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
            begin, ran = operations.start_ps[rows], operations.kind[rows].tolist()
            finish, times = begin + operations.duration_ps[rows], Counter(ran)
            once = next((one for one in ran if times[one] == len(starts)), None)
            place = np.searchsorted(starts, begin, side="right") - 1
            # Where every operation lies in a run, the two clocks agree, and the modules' times are right.
            if once is not None and not ((place >= 0) & (finish <= ends[place])).all():
                begins = np.flatnonzero(operations.kind[rows] == once)
                first, last = begin[begins], np.maximum.reduceat(finish, begins)
            names = [str(operations.types[one].stats.get("tf_op", "")) for one in np.unique(operations.kind[rows])]
        runs = runs if len(runs) == len(indices) else ()
        programs.append(ProgramRuns(name, starts, ends, first, last, tuple(names), runs))
    return tuple(sorted(programs, key=lambda program: -program.busy_ps))
