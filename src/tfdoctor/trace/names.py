"""TensorFlow's and XLA's event names, in one place, with the versions they were seen in."""

import re

from tfdoctor.terms.text import cut

# Emitted by tfdoctor's agent when the traced window ends, and again when calls for samples end.
END_OF_WINDOW = "tfdoctor_end"
# Around each call that is traced after the window: the stack is sampled often, and no time is measured.
SAMPLED = "tfdoctor_sampled"
# Keras' training function: Keras 3, and Keras of TensorFlow 2.3 to 2.15.
TRAINING_CALLS = ("multi_step_on_iterator", "train_function")
# The trainer waits for a batch (2.3 to 2.21; AsOptional for distributed datasets).
WAIT = re.compile(r"IteratorGetNext\w*Op::DoCompute")
# The operation that contains the wait. If it is asynchronous, it only starts the wait: on GPUs (2.3 and 2.4) it
# takes 10 to 30 microseconds, however long the wait is.
WAIT_OPERATION = re.compile(r"(?:.*[:/])?IteratorGetNext\w*:IteratorGetNext\w*")
ITERATOR = "Iterator::"  # A call of a tf.data iterator's GetNext; the rest of the name is its place in the pipeline
# A stage produces an element on its own thread: PrefetchProduce, MapAndBatchProduce, ...
PRODUCE = re.compile(r"\w+Produce")
# tf.data runs a user's function; the event has the id of the executors that run it.
CAPTURED_FUNCTION = "InstantiatedCapturedFunction::"
EXECUTOR = "ExecutorState::Process"  # A part of a graph's execution on one thread
# The callback after a function's execution: it copies a batch's element and starts the next call.
EXECUTOR_DONE = "ExecutorDoneCallback"
# An operation that Python runs eagerly; names that begin with "__" are functions.
EAGER_OPERATION = re.compile(r"EagerLocalExecute: (?!_|IteratorGetNext|MakeIterator|Optional)(\w+)")
EAGER_CALL = "EagerLocalExecute: "  # An operation or a function that Python runs, in the order of its calls
# Python enqueues an operation, and its kernel runs (2.4 to 2.21); before both, it is prepared.
EAGER_EXECUTE, EAGER_KERNEL = "EagerExecute", "EagerKernelExecute"
# Python converts a value of its own to a tensor: an argument of a tf.function, too (2.4 to 2.21).
CONVERTED = "tf.constant"
GRAPH_BUILDING = "tf.function-graph_building"  # Python runs a tf.function's body, to trace it (2.4 to 2.21)
# XLA compiles (CPU: as seen in 2.21; GPU: by the names in XLA's source).
COMPILES = re.compile(
    r"XlaCompile.*|HLO Transforms:.*|(?:Cpu|Gpu|NVPTX|AMDGPU)\w*Compiler::(?:RunBackend|RunHloPasses|Compile\w*)"
)
EAGER_NEXT = re.compile(r"EagerLocalExecute: IteratorGetNext\w*")  # Python asks an iterator for the next batch
MAKE_ITERATOR = re.compile(r"EagerLocalExecute: MakeIterator")  # Python makes the iterator of a pass (2.4 to 2.21)
# Python gives up a tensor or a resource. An iterator ends only when its threads have made the element that they
# work on: Keras 3 makes two iterators in each epoch, and gives up the first one while it fills its shuffle buffer.
RELEASE = re.compile(r"TFE_DeleteTensorHandle")

FUNCTION_RUN = "FunctionRun"
SESSION_RUN = "SessionRun"
# Python starts a graph; the event has the id of its executors. (v1: SessionRun; workers: RunGraph)
FUNCTION_RUNS = (FUNCTION_RUN, SESSION_RUN, "RunGraph")
# A call of a tf.data iterator, including one that `for x in dataset` in a graph iterates over.
PIPELINE_CALL = re.compile(r"(?:Reduce)?Iterator::")
# The end of the prefix of operations in the body and the condition of a lowered `while`.
FRAME = re.compile(r"/(body|cond)/_\d+(?=/)")
# Types of operations that change weights, used by almost nothing but optimizers.
UPDATE = re.compile(r"(?:Resource)?(?:Sparse)?Apply(?!Tensor)\w+|AssignSub(?:VariableOp)?|(?:Resource)?ScatterSub")
# Types of operations that change weights, metrics, counters and accumulated gradients.
ASSIGN = re.compile(r"Assign(?:Add)?(?:VariableOp)?|(?:Resource)?Scatter(?:Add|Update)|ResourceScatterNd\w+")
# Parts of the names or types of operations in a backward pass.
GRADIENT = re.compile(
    r"gradient_tape/|(?:^|/)gradients\w*/|(?:Grad|GradV\d|Backprop(?:(?!Backprop)\w)*|GradientArgs)$"
)
# An XLA program on the CPU; its parts are recorded only if they do not wait.
XLA_ON_CPU = re.compile(r"CpuExecutable::Execute\w*")
XLA_RUN = re.compile(r"(?:Cpu|Gpu)Executable::Execute\w*")  # The host starts an XLA program
INPUT_THREAD = "tf_data_"  # The prefix of the names of tf.data's threads
# The host's calls that launch a kernel, in CUDA and HIP, with any suffix.
DRIVER_LAUNCH = re.compile(r"(?:cu(?:da)?|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel")
STREAM_PREFIX = "Stream"  # The prefix of the names of a GPU's streams; other lines are derived from them
TPU_OPS = "XLA Ops"  # The line of a TPU's operations
# Copies on a GPU's streams (CUPTI; ROCm records them as kernels).
COPY = re.compile(r"Memcpy|Memset|CopyDevice|CopyHost|__amd_rocclr_copy")
COLLECTIVE = re.compile(r"nccl|rccl|ncclDev", re.IGNORECASE)  # Kernels of NCCL and RCCL
# Types of operations in which hosts wait for each other (TensorFlow 2.9 to 2.21); on CPUs they take as long as the
# exchange over the network.
COLLECTIVE_OPERATION = re.compile(r"Collective(?:Reduce|Gather|Bcast|AllToAll|Permute|InitializeCommunicator)\w*")
# The source and the target: MemcpyH2D (CUPTI), hipMemcpyHtoDAsync (ROCm: the call, not the copy, has it).
COPY_DIRECTION = re.compile(r"mem ?cpy([HDP])(?:2|to)([HDP])", re.IGNORECASE)

# The host waits until the device is done (driver calls; JAX's waits).
SYNC = re.compile(
    r"(?:cu|cuda|hip)(?:Ctx|Device|Stream|Event)Synchronize\w*"
    r"|(?:cu|hip)Memcpy(?:HtoD|DtoH|DtoD)?(?:_v2)?"
    r"|.*\bblock_until_ready|.*\btry_to_block|BlockHostUntilDone\w*"
)

# The host launches a compiled program; between launches it prepares the next.
LAUNCH = re.compile(r"(?:PJRT_LoadedExecutable|PjRt\w+|GpuExecutable|CommonPjRt\w*)(?:::|_)Execute\w*")
JITTED = re.compile(r"PjitFunction\(.*\)")  # JAX's call of a compiled function
PYTHON_CALL = re.compile(rf"\$.*|{JITTED.pattern}")  # Frames of Python: those of the Python tracer, and JAX's calls

TPU_INFEEDS = ("infeed",)
TPU_TRANSFERS = (
    "outfeed", "host send", "host recv", "host send-done", "host recv-done", "send", "recv",
    "copy-start", "copy-done", "async-start", "async-done",
)  # fmt: skip
# HLO categories of a TPU's operations (v6e, 2025).
TPU_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute")
# In a warning of the profiler that its buffers were full ("Detected GPU events dropped on ...").
EVENTS_DROPPED = "dropped"
NOISE = "ThreadpoolListener::"  # Events without a duration, half of all events in a host trace

# The stats that facts use, by purpose.
_STATS_BY_PURPOSE = {
    "which step, and how many training steps one call makes": "_r step_num steps",
    "grouping by the profiler of TensorFlow 2.3 and 2.4": "group_id step_name",
    "which function was called, and whether it was retraced": (
        "eager_op is_func tf_function_call tracing_count kernel_type"
    ),
    "links between threads: producer to consumer, call to execution": (
        "id parent_id element_id iter_num step_id _p _pt _c _ct"
    ),
    "settings and fill of tf.data's stages": (
        "name element_size parallelism buffer_limit buffered_elements buffer_size batch_size "
        "cycle_length deterministic autotune threadpool_size cpu_budget"
    ),
    "a launch on the host and what it launched": ("correlation_id device_id run_id queue_id device_ordinal"),
    "a GPU's kernels and copies, and the operation each belongs to": (
        "kernel_details memcpy_details tf_op annotation"
    ),
    "XLA's operations, FLOPs and bytes": (
        "hlo_op hlo_module program_id hlo_category flops model_flops bytes_accessed shape_with_layout source"
    ),
    "a TPU's own clock": "device_offset_ps device_duration_ps",
    "memory: use and size of each allocator": (
        "allocator_name allocation_bytes requested_bytes addr bytes_available bytes_allocated bytes_reserved "
        "peak_bytes_in_use data_type shape"
    ),
}

# The stats that are stored on events and their types; storing all of them triples the memory. ("level 0" is the
# operation of a kernel in traces of TensorFlow 2.3 and 2.4.)
WANTED = frozenset(name for names in _STATS_BY_PURPOSE.values() for name in names.split()) | {
    "level 0",
    "Hlo Proto",
}

# Stats that TensorFlow writes sometimes signed, sometimes unsigned; they are equal modulo 2**64.
IDS = frozenset(["id", "parent_id", "element_id", "_p", "_c", "step_id", "correlation_id"])

# Stats that facts compute with; values that are not numbers are damage and are dropped.
NUMERIC = IDS | {
    "_r", "step_num", "steps", "iter_num", "run_id", "queue_id", "device_id", "tracing_count",
    "device_ordinal", "flops", "model_flops", "bytes_accessed", "device_offset_ps", "device_duration_ps",
    "profile_start_time", "clock_rate", "core_count", "memory_bandwidth", "memory_size",
    "compute_cap_major", "compute_cap_minor", "peak_teraflops_per_second",
    "peak_hbm_bw_gigabytes_per_second", "program_id", "data_type", "allocation_bytes", "requested_bytes",
    "bytes_available", "bytes_allocated", "bytes_reserved", "peak_bytes_in_use",
}  # fmt: skip

# Characters to remove from names: control characters (TensorFlow 2.4 wrote names that begin with NUL), and those
# that change the direction of text on a terminal.
HIDDEN = dict.fromkeys([*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def clean(text: str) -> str:
    """Return a text without characters that a reader cannot see, and without the middle of an endless one."""
    return cut(text if text.isprintable() else text.translate(HIDDEN))
