"""What the datasets that feed the training are set to: options of tf.data, files and what is read, and buffers."""

from tfdoctor.facts.input.dataset_properties import spec_bytes
from tfdoctor.facts.input.iterators import READING
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import FOREVER, Dataset, Program, line_of
from tfdoctor.recording.program import Setting

# An option under ``threading``, or ``experimental_threading`` before TensorFlow 2.7.
POOL = "private_threadpool_size"
PARALLEL_COPY = "parallel_batch"
DEFAULTS = "apply_default_optimizations"
EVERYTHING = ("autotune.enabled", "autotune", DEFAULTS)  # Options that switch others off along with themselves

# Datasets that open a file for each element that they take.
OPENER = re.compile(r"_?(?:FlatMap|(?:Parallel)?Interleave)Dataset")
PATHS = "TensorSpec(shape=(), dtype=tf.string, name=None)"  # The elements of a list of paths
# File systems that hand a folder on: what lies beneath is not known.
HANDED_IN = frozenset({"9p", "virtiofs", "overlay", "fuse"})

AUTOTUNE = -1  # tf.data.AUTOTUNE
# The option of tf.data that limits the memory of what it tunes, in bytes; before 2.7 it had the second name.
BUDGET = ("autotune.ram_budget", "experimental_optimization.autotune_ram_budget")
LIMITED = """\
options = tf.data.Options()
options.autotune.ram_budget = 2 << 30  # bytes; the default is half of the machine's free memory
dataset = dataset.with_options(options)  # or numbers: map(f, num_parallel_calls=4).prefetch(2)"""


class DataOptions(Record):
    """The options that apply to the whole pipeline."""

    values: Mapping[str, Setting] = field(default_factory=dict)  # by dotted name
    at: Location | None = None  # the line that applied them
    by_keras: bool = False  # Keras (2 and 3) built the pipeline from arrays: no option is the user's

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Read the options of the dataset that the training loop takes.

        Raises:
            Unavailable: no tf.data pipeline feeds the run, or its options were not recorded.
        """
        if not program.feeding:
            raise Unavailable("no recorded tf.data pipeline feeds the training loop")
        options = program.feeding[0].options
        if options is None:
            raise Unavailable(
                "the tf.data options were not recorded: the pipeline was built inside a graph, or an earlier "
                "tfdoctor made the recording"
            )
        lines = (dataset.at for dataset in program.feeding if dataset.kind.strip("_") == "OptionsDataset")
        by_keras = program.input_kind == InputKind.ARRAYS
        return cls(options, None if by_keras else next(lines, None), by_keras)

    @property
    def pool(self) -> int | None:
        """The threads of the pipeline's private pool; None when it has none."""
        sizes = [value for name, value in self.values.items() if name.endswith(f".{POOL}")]
        return next((size for size in sizes if isinstance(size, int) and size > 0), None)

    @property
    def not_tuned(self) -> str:
        """The option that switches autotuning off; "" when none does."""
        return self._off("autotune.enabled", "autotune")

    @property
    def no_parallel_map(self) -> str:
        """The option that keeps tf.data from running a plain map in parallel; "" when none does."""
        return self._off("map_parallelization", *EVERYTHING)

    @property
    def no_prefetch(self) -> str:
        """The option that keeps tf.data from adding a prefetch; "" when none does."""
        return self._off("inject_prefetch", *EVERYTHING)

    @property
    def no_parallel_copy(self) -> str:
        """The option that keeps tf.data from copying a large batch on all its threads; "" when none does."""
        asked = any(f".{name}".endswith(f".{PARALLEL_COPY}") and on for name, on in self.values.items())
        return "" if asked else self._off(PARALLEL_COPY, DEFAULTS)

    def _off(self, *names: str) -> str:
        off = [name for name, value in self.values.items() if value is False]
        return next((option for option in off for name in names if f".{option}".endswith(f".{name}")), "")


class SourceFiles(Record):
    """Files of one list of paths; None is unknown."""

    count: int | None = None
    network: str = ""  # "gs://", "NFS": what holds them across a network; "" is local or unknown
    local: bool = False  # known to be on a file system of this machine

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Find the list of files that the feeding pipeline begins with.

        Raises:
            Unavailable: the pipeline does not begin with one list of files, or that was not recorded.
        """
        lists = [one.files for one in program.feeding if one.files]
        counts = {
            (one.count, one.network, bool(one.file_system and not one.network and one.file_system not in HANDED_IN))
            for one in lists
        }
        if not lists:  # the paths that an opener takes, without repetitions
            openers = (dataset for dataset in program.feeding if OPENER.fullmatch(dataset.kind))
            lines = (
                [one for one in line_of(program.feeding, opener)[1:] if one.element == PATHS] for opener in openers
            )
            numbers = (
                [one.cardinality for one in line if one.cardinality not in {None, FOREVER}] for line in lines
            )
            counts = {(number[0], "", False) for number in numbers if number}
        if len(counts) != 1:
            raise Unavailable("the files that the pipeline reads were not recorded")
        return cls(*counts.pop())


class FileReads(Record):
    """Bytes and system calls that read in the traced window, and the whole files that functions read meanwhile.

    The counters hold what else the process reads, and what the kernel had in memory; clients of object stores
    receive from sockets, which they leave out.
    """

    nbytes: int
    calls: int
    seconds: float = 0.0  # 0 is unknown
    files: int = 0

    @classmethod
    def measure(cls, recording: Recording, trace: Trace) -> Self:
        """Take the counters of the window, and count the calls of ReadFile in the trace.

        Raises:
            Unavailable: the counters were not recorded.
        """
        window = recording.manifest.window if recording.manifest else None
        if window is None or window.read_bytes is None or window.read_calls is None:
            raise Unavailable(
                "the read counters of the process were not recorded; record with `tfdoctor profile` on Linux"
            )
        files = 0
        for line in trace.host.lines if trace.host else ():
            kinds = [at for at, kind in enumerate(line.types) if READING.fullmatch(kind.display_name)]
            files += int(np.isin(line.kind, kinds).sum())
        seconds = ((window.stopped_unix_ns or 0) - window.started_unix_ns) / 1e9
        return cls(window.read_bytes, window.read_calls, max(0.0, seconds), files)


class TunedBuffers(Record):
    """The stages with ``num_parallel_calls`` or a buffer of AUTOTUNE, and the bytes of their largest element.

    A parallel stage keeps a result for each of its calls, a prefetch as many as it needs to hide the input. The
    tuner gives them up to half of the machine's free memory, which is that of the machine and not of a container.
    """

    stages: tuple[Dataset, ...]
    largest_bytes: int | None = None

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Look through the feeding datasets.

        Raises:
            Unavailable: none of them is tuned, or the program limits the memory of the tuning.
        """
        sizes_of = ((one, one.parameters) for one in program.feeding)
        tuned = tuple(one for one, given in sizes_of if AUTOTUNE in {given.num_parallel_calls, given.buffer_size})
        if not tuned:
            raise Unavailable("no buffer of the pipeline has a size that tf.data chooses")
        if any(name in (one.options or {}) for one in program.feeding for name in BUDGET):
            raise Unavailable("the program limits the memory of the buffers that tf.data tunes")
        sizes = (spec_bytes(one.element, program.batch_size) for one in tuned)
        return cls(tuned, max((size for size in sizes if size), default=None))

    @property
    def evidence(self) -> tuple[Measure, ...]:
        """Their number, and their largest element."""
        number = Measure("stages whose buffers tf.data sizes by itself", count(len(self.stages)))
        size = self.largest_bytes
        return (number, Measure("largest element in these buffers", nbytes(size))) if size else (number,)

    @property
    def remedy(self) -> Remedy:
        """The limit to set, in the program, at the first stage whose line is known."""
        at = next((one.at for one in self.stages if one.at), None)
        return Remedy("Limit what tf.data may take for its buffers", LIMITED, at)
