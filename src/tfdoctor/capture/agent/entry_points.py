"""The entry points of TensorFlow and Keras that the agent watches, by what a call of one shows."""

from __future__ import annotations

# Modules by the version that has them: from 2.9 on, and in the newest one.
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
OF_FUNCTIONS = (FUNCTIONS, "tensorflow.python.eager.def_function")
CONCRETE = (
    "tensorflow.python.eager.polymorphic_function.concrete_function",
    "tensorflow.python.eager.polymorphic_function.monomorphic_function",
    "tensorflow.python.eager.function",
)
EAGER = "tensorflow.python.eager.polymorphic_function.eager_function_run"
GRAPHS = "tensorflow.python.framework.func_graph"
DATASETS = "tensorflow.python.data.ops.dataset_ops"
SUMMARIES = "tensorflow.python.ops.summary_ops_v2"
PROFILER = "tensorflow.python.profiler.profiler_v2"
SESSIONS = "tensorflow.python.client.session"

# The packages of tf_keras, of Keras from 2.13 on, and before.
OLD = ("tf_keras.src", "keras.src", "keras")
KERAS_3 = "keras.src.backend.tensorflow.trainer"
KERAS_2 = tuple(f"{package}.engine.training" for package in OLD)
METRICS_2 = tuple(f"{package}.engine.compile_utils" for package in OLD)
# Backends of Keras whose steps are not recorded, and the classes of their models.
OTHERS = {"jax": "JAXTrainer", "torch": "TorchTrainer", "numpy": "NumpyTrainer", "openvino": "OpenVINOTrainer"}
OTHER_MODELS = tuple(((f"keras.src.backend.{name}.trainer",), kind) for name, kind in OTHERS.items())
MODELS = (((KERAS_3,), "TensorFlowTrainer"), (KERAS_2, "Model"))
CALLBACKS = ("keras.src.callbacks.callback_list", *(f"{package}.callbacks" for package in OLD))
SAVING = ("keras.src.saving.saving_api",)
CHECKPOINT = ("tensorflow.python.checkpoint.checkpoint",)
SAVER = ("tensorflow.python.training.saver",)
PACKAGES = ("keras.src", "tf_keras.src")
ADAPTED = {
    "normalization": "Normalization",
    "discretization": "Discretization",
    "text_vectorization": "TextVectorization",
    "string_lookup": "StringLookup",
    "integer_lookup": "IntegerLookup",
}

LAYERS = ("keras.src.layers.layer", *(f"{package}.engine.base_layer" for package in OLD))
METRICS = ("keras.src.metrics.metric", *(f"{package}.metrics.base_metric" for package in OLD))
OPTIMIZERS = "keras.src.optimizers.base_optimizer"
CONFIG = ("tensorflow.python.framework.config",)
NUMERICS = ("tensorflow.python.debug.lib.check_numerics_callback",)

# Classes that are patched only in the module that has made them.
OWN = ("Function", "ConcreteFunction", "CallbackList")

# What a call shows, the modules, the class that has the functions, "" a module, and the functions.
ROWS: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    ("function", OF_FUNCTIONS, "Function", ("__call__",)),
    ("graph run", CONCRETE, "ConcreteFunction", ("_call_flat",)),
    ("gradient", ("tensorflow.python.eager.backprop",), "GradientTape", ("gradient",)),
    ("next", ("tensorflow.python.data.ops.iterator_ops",), "OwnedIterator", ("__next__",)),
    ("next", ("tensorflow.python.distribute.input_lib",), "DistributedIteratorBase", ("__next__",)),
    ("trace", (GRAPHS,), "", ("func_graph_from_py_func",)),
    ("session run", (SESSIONS,), "BaseSession", ("run",)),
    ("session callable", (SESSIONS,), "BaseSession", ("_make_callable_from_options",)),
    ("profiler start", (PROFILER,), "", ("start",)),
    ("profiler stop", (PROFILER,), "", ("stop",)),
    ("profiled call", (PROFILER,), "_pywrap_profiler.ProfilerSession", ("start",)),
    ("profiled call", ("tensorflow.python.profiler.profiler_client",), "", ("trace",)),
    *(("fit", *model, ("fit",)) for model in MODELS),
    *(("train function", *model, ("make_train_function",)) for model in MODELS),
    *(("train", *model, ("fit", "train_on_batch")) for model in OTHER_MODELS),
    *(("evaluate", *model, ("evaluate", "test_on_batch")) for model in (*MODELS, *OTHER_MODELS)),
    *(("predict", *model, ("predict", "predict_on_batch")) for model in (*MODELS, *OTHER_MODELS)),
    # What is made:
    ("graph made", (GRAPHS,), "FuncGraph", ("__init__",)),
    ("dataset made", (DATASETS,), "DatasetV2", ("__init__",)),
    ("layer made", LAYERS, "Layer", ("__new__",)),
    ("metric made", METRICS, "Metric", ("__init__",)),
    ("optimizer made", (OPTIMIZERS,), "BaseOptimizer", ("__init__",)),
    ("strategy made", ("tensorflow.python.distribute.distribute_lib",), "StrategyBase", ("__init__",)),
    ("name scope", ("keras.src.backend.tensorflow.core",), "name_scope", ("__enter__",)),
    # What is chosen:
    ("threads set", CONFIG, "", ("set_intra_op_parallelism_threads",)),
    ("determinism on", CONFIG, "", ("enable_op_determinism",)),
    ("determinism off", CONFIG, "", ("disable_op_determinism",)),
    ("checks on", NUMERICS, "", ("enable_check_numerics",)),
    ("checks off", NUMERICS, "", ("disable_check_numerics",)),
    ("check", NUMERICS, "CheckNumericsCallback", ("callback",)),
    ("eager functions", (EAGER,), "", ("run_functions_eagerly",)),
    ("debug mode", ("tensorflow.python.data.ops.debug_mode",), "", ("enable_debug_mode",)),
    # What trials change:
    ("function made", OF_FUNCTIONS, "Function", ("__init__",)),
    ("dataset options", (DATASETS,), "DatasetV2", ("_apply_debug_options",)),
    ("iteration", (DATASETS,), "DatasetV2", ("__iter__",)),
    ("callbacks", CALLBACKS, "CallbackList", ("__init__",)),
    ("metrics", ("keras.src.trainers.compile_utils",), "CompileMetrics", ("update_state",)),
    ("metrics", METRICS_2, "MetricsContainer", ("update_state",)),
    ("summary", (SUMMARIES,), "", ("write",)),
    ("summary", (SUMMARIES,), "_ResourceSummaryWriter", ("flush",)),
    ("summary", (SUMMARIES,), "_LegacyResourceSummaryWriter", ("flush",)),
    ("summary", ("tensorflow.python.summary.writer.writer",), "SummaryToEventTransformer", ("add_summary",)),
    # What is one phase of the run:
    ("compile", ("keras.src.trainers.trainer",), "Trainer", ("compile",)),
    ("compile", KERAS_2, "Model", ("compile",)),
    ("clear", ("keras.src.backend.common.global_state",), "", ("clear_session",)),
    ("epoch begins", CALLBACKS, "CallbackList", ("on_epoch_begin",)),
    ("epoch ends", CALLBACKS, "CallbackList", ("on_epoch_end",)),
    ("save", SAVING, "", ("save_model", "save_weights")),
    ("save", CHECKPOINT, "Checkpoint", ("save", "write")),
    ("save", ("tensorflow.python.checkpoint.checkpoint_management",), "CheckpointManager", ("save",)),
    ("save", ("tensorflow.python.saved_model.save",), "", ("save",)),
    ("save", SAVER, "Saver", ("save",)),
    ("save", KERAS_2, "Model", ("save", "save_weights")),
    ("load", SAVING, "", ("load_model", "load_weights")),
    ("load", CHECKPOINT, "Checkpoint", ("restore", "read")),
    ("load", SAVER, "Saver", ("restore",)),
    ("load", KERAS_2, "Model", ("load_weights",)),
    *(
        ("adapt", tuple(f"{package}.layers.preprocessing.{module}" for package in PACKAGES), kind, ("adapt",))
        for module, kind in ADAPTED.items()
    ),
)
