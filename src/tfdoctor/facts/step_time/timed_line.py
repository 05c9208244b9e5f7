"""A line of the user's with its time, by stack samples, and what it does, by the functions below it."""

from operator import attrgetter

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.program import SeenPlace, SourceLine


class LineWork(StrEnum):
    """What kind of thing a line does."""

    READING = "reading"  # copies a tensor to NumPy
    CONVERTING = "converting"  # makes tensors of arrays and Python values
    ENTERING = "entering"  # starts a compiled function of TensorFlow, and returns from it
    DISPATCHING = "dispatching"  # waits in one between two of its operations: not the line's own work
    LOOPING = "looping"  # the framework's own work for each step: Keras' iterator and metrics, checks of arguments
    OPERATIONS = "operations"  # runs TensorFlow operations one by one, or Python code of TensorFlow and Keras
    PYTHON = "python"  # Python's own work and that of other packages


# What TensorFlow and Keras do for a compiled function: apart from the work of the line that calls it.
WITHIN = (LineWork.ENTERING, LineWork.DISPATCHING, LineWork.LOOPING)
# Functions of Keras that train: what they do besides is not the choice of the line that calls them.
LOOPS = ("fit", "train_on_batch")
# The end of the name of TensorFlow's way into a compiled function, which checks the arguments.
CALL = "polymorphic_function.Function.__call__"
# Methods of tensors and variables that copy the value to the host.
READS = frozenset(("numpy", "_numpy", "__array__", "__float__", "__int__", "__bool__", "item"))
# Functions of TensorFlow that make a tensor of another value.
CONVERTS = frozenset(
    ("convert_to_eager_tensor", "convert_to_tensor", "constant", "_constant_impl",
     "_constant_eager_impl", "tensor_conversion_function")
)  # fmt: skip
ENTERS = "quick_execute"  # The function of TensorFlow that runs a compiled function, in every version since 2.0
KERAS = ("keras", "tf_keras")
LIBRARIES = ("tensorflow", *KERAS)  # Packages whose functions run TensorFlow operations


def work_of(place: SeenPlace) -> LineWork:
    """Return what kind of thing a sampled line does."""
    calls, runs = place.calls.rpartition(".")[2], place.runs.rpartition(".")[2]
    if not _in_library(place.calls):
        return LineWork.PYTHON
    if calls in READS:
        return LineWork.READING
    if calls in CONVERTS or (place.inside and runs in CONVERTS):  # of the compiled function's arguments
        return LineWork.CONVERTING
    if place.inside and runs == ENTERS:
        return LineWork.ENTERING
    of_keras = place.calls.partition(".")[0] in KERAS and calls in LOOPS
    of_call = place.inside and place.calls.endswith(CALL)
    return LineWork.LOOPING if (of_keras or of_call) and not place.callback else LineWork.OPERATIONS


def shown(place: SeenPlace) -> str:
    """Return the function to name: what the line calls, or what TensorFlow does inside its own calls."""
    return place.runs if place.inside and _in_library(place.calls) else place.calls


def _in_library(name: str) -> bool:
    return name.partition(".")[0] in LIBRARIES


class SlowCall(StrEnum):
    """A kind of call that is made for a whole run or epoch, and takes much longer than a step needs it to."""

    FIT = "fit"
    PREDICT = "predict"
    EVALUATE = "evaluate"
    WEIGHTS = "get_weights and set_weights"
    CLONE = "clone_model"
    SAVE = "save"
    CLEAR = "clear_session"
    MODEL = "a model outside of a tf.function"
    WRITE = "functions that write logs or files"  # for somebody who reads them


# Names of functions of Keras (2 and 3) and of TensorFlow's checkpoints; nothing else there has these names.
FUNCTIONS = {
    "fit": SlowCall.FIT, "predict": SlowCall.PREDICT, "evaluate": SlowCall.EVALUATE,
    "get_weights": SlowCall.WEIGHTS, "set_weights": SlowCall.WEIGHTS, "clone_model": SlowCall.CLONE,
    "save": SlowCall.SAVE, "save_weights": SlowCall.SAVE, "save_model": SlowCall.SAVE,
    "clear_session": SlowCall.CLEAR,
}  # fmt: skip
# The end of the full name in lower case: of Layer in Keras, or of its module before Python 3.11.
LAYER_CALL = "layer.__call__"
# Functions, by their full names, that write what somebody reads: summaries, logs, tables, images.
WRITES = re.compile(
    r"(tensorflow\.(summary|python\.ops\.summary_ops_v2|print$)|tensorboardX?|mlflow|wandb|neptune|comet_ml|clearml"
    r"|aim|logging|loguru|csv|_csv|imageio)\b"
    r"|(builtins\.print|cv2\.imwrite|PIL\..*\.save|matplotlib\..*(savefig|imsave)|pandas\..*\.to_(csv|json|excel))$"
)


def slow_call(function: str) -> SlowCall | None:
    """Return what a function is, by its full name ("keras.src.models.cloning.clone_model"); None for any other."""
    if WRITES.match(function):
        return SlowCall.WRITE
    if not _in_library(function):
        return None
    return SlowCall.MODEL if function.lower().endswith(LAYER_CALL) else FUNCTIONS.get(function.rpartition(".")[2])


class TimedLine(Record):
    """A line in stack samples; ``ms`` per training step.

    ``calls`` has the functions that the line calls with the number of samples in them, most first; "" is
    the line itself, or a function written in C that the line does not call by a module's name.
    """

    at: Location | None
    seen: int
    ms: float = 0.0
    callback: str = ""  # the method of a Keras callback that it is in: "Weights.on_train_batch_end"
    calls: Mapping[str, int] = field(default_factory=dict)
    callers: Mapping[Location, int] = field(default_factory=dict)
    work: LineWork = LineWork.PYTHON
    makes: bool | None = None  # it makes the arguments of the training function; None is unknown

    @property
    def main_call(self) -> str:
        """The function that the line is in most often; "" where it is the line itself."""
        return next(iter(self.calls), "")

    @property
    def call(self) -> SlowCall | None:
        """The kind of its calls, where they cost much per call."""
        return slow_call(self.main_call)

    @property
    def caller(self) -> Location | None:
        """The user's line that called the line's function most often; None where none was seen."""
        return next(iter(self.callers), None)


Samples = tuple[SeenPlace, LineWork | None, int]  # Of a place, the kind of work if it is apart, and their number


def lines_of(
    seen: Iterable[Samples],
    locate: Places,
    part_ms: float = 0.0,
    named: Callable[[SeenPlace], str] = attrgetter("calls"),
) -> tuple[TimedLine, ...]:
    """Divide the time of a part of the step among its lines by their samples, most first.

    What a line does in a callback, and the kinds of its work that are given, are entries of their own.
    """
    groups: dict[tuple[SourceLine | None, str, LineWork | None], dict[SeenPlace, int]] = defaultdict(dict)
    for place, work, number in seen:
        if number:
            groups[place.at, place.callback, work][place] = int(number)
    each_ms = part_ms / max(1, sum(sum(group.values()) for group in groups.values()))
    lines = []
    for (at, callback, kind), group in groups.items():
        rows, own = group.items(), sum(group.values())
        calls = summed((named(place), number) for place, number in rows)
        callers = summed((locate(place.caller), number) for place, number in rows)
        known = {caller: number for caller, number in callers.items() if caller}
        work = kind or next(iter(summed((work_of(place), number) for place, number in rows)))
        lines.append(TimedLine(locate(at), own, own * each_ms, callback, calls, known, work))
    return tuple(sorted(lines, key=lambda line: -line.seen))


def by_caller(lines: Iterable[TimedLine]) -> tuple[TimedLine, ...]:
    """Merge the lines of functions of the user's by the line that calls the function, most first."""
    groups = by_key((line.caller, line) for line in lines if line.caller and not line.callback)
    merged = []
    for caller, group in groups.items():
        calls = summed((name, number) for line in group for name, number in line.calls.items())
        work = next(iter(summed((line.work, line.seen) for line in group)))
        seen, time_ms = sum(line.seen for line in group), sum(line.ms for line in group)
        merged.append(TimedLine(caller, seen, time_ms, calls=calls, work=work))
    return tuple(sorted(merged, key=lambda line: -line.seen))
