"""run.jsonl: what a process did in its whole life, written by the agent once a second, one JSON object a line.

Times are seconds since the process began, on the system's monotonic clock; amounts of time are ms. A line of kind
``process`` comes first. ``call`` and ``stack`` define numbers that later lines use. ``span`` tells one long call
alone. ``bucket`` adds up what happened from its start to its end; buckets follow one another without gaps, and
their width grows with the run, so that the file of a week stays small. ``run-now.json`` holds the bucket that was
open when the file was last written. ``trace`` is a call that traced a tf.function, ``trains`` one that trains,
``framework`` one that was imported, ``end`` how the process ended. Of the source, tfdoctor itself adds afterwards
``assigned``, the line of a number that was traced, ``makers``, what makes the arguments of a call that trains,
``kept``, a statement of a loop around training that keeps what it is given, and ``unread``, a file too large.
"""

from collections.abc import Mapping

from tfdoctor.recording.typed import Amount, Count
from tfdoctor.terms.kinds import KeptValue, RunCall, RunWork
from tfdoctor.terms.record import Record, field

RUN_LOG, RUN_NOW = "run.jsonl", "run-now.json"

TENSORFLOW = "tensorflow"

Line = tuple[str, int]  # A line of the user's source: its file and number


class RunProcess(Record):
    """The process: when it was started (Unix and monotonic ns), and after how many s the agent began to look."""

    pid: Count = 0
    started_unix_ns: Count = 0
    started_monotonic_ns: Count = 0
    began: Amount = 0.0
    schema: Count = 1


class RunFramework(Record):
    """A framework that the script has imported: "jax"; ``keras`` says that Keras runs on it."""

    name: str
    version: str = ""
    keras: bool = False


class CallPlace(Record):
    """A kind of call made at a line of the user's."""

    id: Count
    call: RunCall
    at: Line | None = None
    name: str = ""  # of the function: "Model.predict", "train_step"
    parent: Count | None = None  # the number of the call around it; None at the top


class SeenStack(Record):
    """A stack that samples showed: the user's lines, and the functions of others that the innermost one calls.

    ``step`` is where the user's function is defined that the loop around a call that trains calls, that makes this
    call, and in which the stack lies; ``step_call`` is the line of the loop that calls it.
    """

    id: Count
    call: Count = 0  # the number of the call under way
    at: Line | None = None  # the innermost line of the user's
    caller: Line | None = None  # the user's line that called its function
    around: tuple[Line, ...] = ()  # all that lead to its function, the innermost first
    calls: str | None = None  # "pandas.DataFrame.iterrows": what the line calls; the module that it imports
    runs: str | None = None  # the innermost function of others
    function: str = ""  # the user's function that holds `at`; "<module>"
    callback: str = ""  # the method of the outermost Keras callback: "ModelCheckpoint.on_epoch_end"
    work: RunWork = RunWork.OTHER
    looped: bool = False  # in the innermost loop around a call that trains
    tested: bool = False  # in that around a tf.function or model that is called without training
    long: bool = False  # in a step that takes more than 1.5 times the usual one, after that time
    children: bool = False  # the process hardly worked meanwhile, and had child processes
    # A loop of the function that holds `at`, or of its caller, holds the line, or a library calls that function
    # again and again; None is unknown.
    repeats: bool | None = None
    loops: Count = 0  # of the user's functions that hold the line, without those around training
    step: Line | None = None
    step_call: Line | None = None


class BucketSteps(Record):
    """Training steps of one source that ended in a bucket; a call may be several steps.

    Calls that trace a function are left out: they are told alone (see FunctionTrace).
    """

    source: str = ""  # of StepSource
    at: Line | None = None
    steps: Count = 0
    calls: Count = 0
    ms: Amount = 0.0
    # Ms of each call, from its begin to the begin of the next one as far as the loop goes on; empty if too many.
    each: tuple[float, ...] = ()
    bins: Mapping[str, int] = field(default_factory=dict)  # then: bin b counts calls of 1.02**b to 1.02**(b+1) us
    traced: bool = False  # the profiler ran in some of them
    passes: Count = 0  # over the data that began, also where their first step traced a function


class RunCounters(Record):
    """What grows in a run, at the end of a bucket; None is unknown."""

    rss: Count | None = None  # bytes, this process
    data: Count | None = None  # bytes that it has reserved, written or not
    device: Count | None = None  # bytes in use on the fullest accelerator
    blocks: Count | None = None  # memory blocks of Python's allocator
    graph: Count | None = None  # operations of TensorFlow 1's default graph
    functions: Count | None = None  # concrete functions traced so far
    files: Count | None = None  # open files
    children: Count | None = None


class Bucket(Record):
    """Some time of the process, in s since it began: ms per call, number of entries, ms and samples per stack."""

    start: Amount
    end: Amount
    calls: Mapping[str, float] = field(default_factory=dict)  # number of a CallPlace: ms in it alone
    entered: Mapping[str, int] = field(default_factory=dict)  # how often it was entered
    stacks: Mapping[str, float] = field(default_factory=dict)  # number of a SeenStack: ms
    samples: Mapping[str, int] = field(default_factory=dict)  # how many samples
    steps: tuple[BucketSteps, ...] = ()
    counters: RunCounters = RunCounters()
    # Calls that samples show, of different steps, with known arguments; and those that had an earlier one's:
    given: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # Calls that samples show, with arrays of rows; and those with one row of each:
    single: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Span(Record):
    """One call told alone, from s to s: fits, epochs, evaluations, predictions, saves; `open`: not over yet."""

    call: Count
    start: Amount
    end: Amount
    steps: Count | None = None  # batches of an evaluation or prediction, where known
    examples: Count | None = None  # that predict or evaluate was given, where known
    open: bool = False
    model: Count | None = None  # of fit, evaluate, predict: the number of the model object, by its first such call


class TracedNumber(Record):
    """A Python number, text or truth value that a call gave to a parameter, and its place from the last argument.

    ``at`` is the line that assigned it, of older recordings: see `AssignedNumber`.
    """

    name: str
    value: str
    at: Line | None = None
    place: Count = 0


class FunctionTrace(Record):
    """A call that traced a tf.function anew."""

    name: str
    at: Line | None = None
    start: Amount = 0.0
    ms: Amount = 0.0
    made: Count = 0  # the number of its function object
    call: Count = 0  # the number of the CallPlace
    operations: Count = 0  # of the graph; 0 is unknown
    variables: Count = 0  # elements of the variables that it uses
    defined: Line | None = None  # where the Python function is defined
    kept: bool = False  # an earlier function object was made of the same Python function
    numbers: tuple[TracedNumber, ...] = ()
    given: Count = 0  # arguments of the call


class Census(Record):
    """Live Python objects of the most frequent types at a moment, in s."""

    at_s: Amount
    types: Mapping[str, int] = field(default_factory=dict)


class TrainingCall(Record):
    """A call that trains: the user's frames around it by file, line and function, the innermost first."""

    frames: tuple[tuple[str, int, str], ...]
    fits: bool = False  # it is Keras' fit
    direct: bool = False  # the user's line makes it, not a library


class AssignedNumber(Record):
    """The line that assigned the name that a call at a line passes to a parameter of a traced function."""

    function: str
    name: str
    call: Line
    at: Line


class LoopMakers(Record):
    """The lines of the loop around a call that trains that make its arguments: each the first and last of some."""

    at: Line
    lines: tuple[tuple[int, int], ...]


class KeptStatement(Record):
    """A statement of a loop around a call that trains which adds to a container that is made outside of the loop.

    It was read from the source, not seen to run.
    """

    at: Line
    container: str = ""  # source text, with "…" instead of strings
    value: str = ""  # same, of what is added
    what: KeptValue = KeptValue.OTHER
    fits: bool = False  # the call is Keras' fit
    each: bool = False  # no condition is around it in the innermost loop


class UnreadSource(Record):
    """A file of the user's that was not read, since it is too long."""

    path: str


class LongStep(Record):
    """A training call that took more than 1.5 times the usual one: its number, start in s and duration in ms."""

    number: Count
    start: Amount
    ms: Amount
    usual_ms: Amount
    first: bool = False  # the first one of an epoch or of a pass over the data


class ProcessEnd(Record):
    """How the process ended; `error` is the class of the exception, `at` the user's line that raised it."""

    end: Amount = 0.0
    why: str = ""  # "exit", "exception", "interrupt"
    error: str = ""
    message: str = ""  # its beginning and its end
    at: Line | None = None


class DroppedCalls(Record):
    """How many spans, traces and long steps there were beyond what the file holds one by one."""

    dropped: Count


# The record of each kind of line.
KINDS: dict[str, type] = {
    "process": RunProcess, "call": CallPlace, "stack": SeenStack, "bucket": Bucket, "span": Span,
    "trace": FunctionTrace, "long": LongStep, "census": Census, "trains": TrainingCall, "makers": LoopMakers,
    "assigned": AssignedNumber, "kept": KeptStatement, "unread": UnreadSource, "framework": RunFramework,
    "end": ProcessEnd, "dropped": DroppedCalls,
}  # fmt: skip


class RunLog(Record):
    """The file as a whole; what it lists as the file does is called there as KINDS says."""

    process: RunProcess
    calls: Mapping[int, CallPlace]
    stacks: Mapping[int, SeenStack]
    buckets: tuple[Bucket, ...]
    spans: tuple[Span, ...] = field(default=(), name="span")
    traces: tuple[FunctionTrace, ...] = field(default=(), name="trace")
    long_steps: tuple[LongStep, ...] = field(default=(), name="long")
    censuses: tuple[Census, ...] = field(default=(), name="census")
    training: tuple[TrainingCall, ...] = field(default=(), name="trains")
    assigned: tuple[AssignedNumber, ...] = ()
    makers: tuple[LoopMakers, ...] = ()
    kept: tuple[KeptStatement, ...] = ()
    unread: tuple[UnreadSource, ...] = ()
    frameworks: tuple[RunFramework, ...] = field(default=(), name="framework")
    end: ProcessEnd | None = None  # None: killed, or still running
    dropped: Count = 0  # see DroppedCalls

    @property
    def other_framework(self) -> RunFramework | None:
        """The framework that trains in place of TensorFlow; None where that may be TensorFlow, or none is known."""
        on_keras = [one for one in self.frameworks if one.keras]
        others = [] if any(one.name == TENSORFLOW for one in self.frameworks) else self.frameworks
        return next(iter([*on_keras, *others]), None)

    @property
    def steps(self) -> list[tuple[int, BucketSteps]]:
        """The steps of all loops, bucket by bucket, each with the bucket's number."""
        return [(number, one) for number, bucket in enumerate(self.buckets) for one in bucket.steps]

    @property
    def tracing_ms(self) -> float:
        """The time of the calls that traced a tf.function."""
        return sum(trace.ms for trace in self.traces)
