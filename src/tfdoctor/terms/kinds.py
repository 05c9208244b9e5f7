"""Names that facts, rules and reports share: devices, step sources, inputs, levels of trust, phases of a run."""

from enum import StrEnum


class DeviceKind(StrEnum):
    """What the training steps compute on."""

    CPU = "CPU"
    GPU = "GPU"
    TPU = "TPU"


class EnergySource(StrEnum):
    """What a counter of energy counts."""

    GPU = "GPU"  # boards that the run may use, whatever uses them
    CPU = "CPU"  # packages of the processor, with all programs


# Times the untraced step, from which on tracing slows a step: less is within the spread of steps.
TRACED_LONGER = 1.05


class StepSource(StrEnum):
    """How the training steps were found."""

    KERAS_FIT = "keras-fit"
    KERAS_TRAIN_ON_BATCH = "keras-train-on-batch"
    TF_DATA_LOOP = "tf-data-loop"
    REPEATED_CALL = "repeated-call"
    EAGER_GRADIENT = "eager-gradient"
    SESSION_RUN = "session-run"
    GRAPH_LOOP = "graph-loop"  # a loop inside a tf.function: the recorder cannot see its steps
    GRAPH_PERIOD = "graph-period"
    MARKERS = "markers"
    TPU_STEPS = "tpu-steps"
    XLA_RUNS = "module-runs"
    XLA_CALLS = "compiled-calls"
    NONE = "none"


class TrustLevel(StrEnum):
    """How far the figures of a report can be trusted."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class InputKind(StrEnum):
    """What the user gives to ``fit``, as the recording names it; classes unknown to it keep their own name."""

    TF_DATA = "tf.data"
    ARRAYS = "arrays"
    PY_DATASET = "PyDataset"
    GENERATOR = "generator"
    TORCH = "torch"
    GRAIN = "grain"


class Phase(StrEnum):
    """What a run does at a moment; every second of its wall time is in exactly one phase."""

    START = "start"  # the interpreter, until the first line of the script
    IMPORTS = "imports"
    PREPARING = "preparing data"
    CHILDREN = "child processes"  # waiting for them
    OWN = "own work"  # of a script that uses another framework: what it is for is not known
    BUILDING = "building"  # the model, its weights, the device
    TRACING = "tracing and compiling"  # calls that trace a tf.function, without a usual step
    STEPS = "steps"  # of training, and what the loop does between them
    BOUNDARIES = "epoch boundaries"  # before the first step of an epoch, and after its last
    EVALUATION = "evaluation"
    PREDICTION = "prediction"
    SAVING = "saving"
    PROFILER = "profiler"  # tfdoctor's own work: starting and stopping the profiler, writing the recording
    END = "end"  # after the last step, evaluation and prediction
    UNNAMED = "unnamed"

    @classmethod
    def _missing_(cls, value: object) -> "Phase":
        """Return the phase that had another name in reports up to 0.2.0; one of a later version is unnamed here."""
        return cls.BOUNDARIES if value == "epochs' boundaries" else cls.UNNAMED


class RunWork(StrEnum):
    """What a stack sample of the run shows, by the functions of Python, TensorFlow and Keras on the stack."""

    IMPORTING = "importing"
    BUILDING = "building"  # layers, models, weights, optimizers, devices
    TRACING = "tracing"  # a graph
    SAVING = "saving"  # models, weights, checkpoints, summaries
    INPUT = "input"  # datasets, adapters, iterators
    WEIGHTS = "weights"  # looking through sample weights, in Keras 2
    MODEL = "model"  # a call of a Keras model or layer
    OTHER = "other"


class KeptValue(StrEnum):
    """What a statement of a loop around training adds to a container, as the source shows it."""

    RESULT = "result"  # of the call that trains: tensors
    HISTORY = "history"  # what Keras' fit returns, which holds the model
    MODEL = "model"
    OTHER = "other"  # no number or string for certain


class RunCall(StrEnum):
    """The call under way on the thread that the account of the run follows; ``SCRIPT`` is none of the others."""

    SCRIPT = "script"
    FIT = "fit"  # within fit, outside of its epochs
    EPOCH = "epoch"  # within an epoch of fit, before its first step and after its last
    STEP = "step"  # a call that trains
    TRAIN = "train"  # fit or train_on_batch of a backend of Keras whose steps are not recorded
    BETWEEN = "between"  # after such a call, until the next one or another call
    TRACE = "trace"  # a call that traces a tf.function, from there to its end
    FUNCTION = "function"  # an outermost call of a tf.function that does not train
    TEST = "test"  # one of a tf.function that trains at this line in other calls, and does not in this one
    EVALUATE = "evaluate"  # evaluate, test_on_batch
    PREDICT = "predict"  # predict, predict_on_batch
    COMPILE = "compile"
    BUILD = "build"  # load_model, load_weights, build
    ADAPT = "adapt"
    PROFILER = "profiler"  # tfdoctor's own work
    SAVE = "save"  # save, save_weights, Checkpoint.save, SavedModel


class Part(StrEnum):
    """A part of a training program that the trial can take out without an edit."""

    INPUT = "input"  # it is always ready
    CALLBACK = "callback"  # of Keras, by its class
    METRICS = "metrics"  # of compile; not the loss
    SAVING = "saving"  # models, weights and checkpoints, at a line
    SUMMARIES = "summaries"
    EVALUATION = "evaluation"  # between training steps or epochs, at a line
    PREDICTION = "prediction"  # the same
