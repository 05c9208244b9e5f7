"""Names that facts, rules and reports share: devices, step sources, inputs, levels of trust."""

from enum import StrEnum


class DeviceKind(StrEnum):
    """What the training steps compute on."""

    CPU = "CPU"
    GPU = "GPU"
    TPU = "TPU"


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
