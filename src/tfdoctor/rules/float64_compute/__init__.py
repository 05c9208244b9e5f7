"""The step computes in float64 although float32 would do.

## What it checks

The time of operations whose operands are float64, and of casts between float64 and other floating-point types,
by the types of the recorded graph; the type that Keras' layers compute in; and the first operation that makes
a value float64.

## Why it matters

A float64 value has twice the bytes of a float32 value, and half as many fit into a vector register. On a CPU,
TensorFlow's fast matmuls and convolutions (oneDNN) exist for float32 and 16-bit types only; most GPUs have few
float64 units, and TPUs have none. Training rarely needs more than float32.

NumPy's default is float64: `np.random.rand`, `np.array([0.5])` and `np.linspace` make it, and a custom training
step keeps the type of the arrays that it is given. A cast does as well. After `keras.backend.set_floatx("float64")`
Keras' layers compute in float64 and cast whatever arrays they are given, so only the setting matters.

## How to fix

Make the values float32 where they are created: `array.astype("float32")`, `dtype=tf.float32` for variables and
constants, `set_floatx("float32")`. Keep float64 where the method needs it, such as for a sum of many small
terms, and convert its result.

## Holds for

TensorFlow 2 on all hardware, with the graph recorded by tfdoctor. On a CPU with AVX-512 the remaining time was
measured; on other hardware the saving is an upper bound. A scalar metric in float64 and whole numbers (int64)
cost next to nothing and are not reported.

## Sources

- [NumPy data types](https://numpy.org/doc/stable/user/basics.types.html)
- [oneDNN data types](https://uxlfoundation.github.io/oneDNN/dev_guide_data_types.html)
- [CUDA C++ Programming Guide: arithmetic throughput](https://docs.nvidia.com/cuda/cuda-c-programming-guide/)
- CPU figures: benchmarks/dtypes.py of this project
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.matrix_units import FLOAT32_ON_AVX512
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules.float64_compute.float64_work import Float64Work, Origin
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Finding, Healthy, Location, Remedy, Verdict

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
PRECONDITIONS = (found(Float64Work, lambda work: work.rows),)
BY_HAND = "the recording does not show which line makes the values float64"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the compute time from which float64 is reported."""

    share: float = share_limit(
        0.03,
        "Smallest share of the compute time in float64 that is reported: sums and metrics that need it take less",
    )


def check(work: Float64Work, operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price float64 operations at the time of float32 ones."""
    part = operations.part(work.ms)
    measures = part.measures("in float64 operations", limits.share)
    summary = f"Operations in float64 take {part}"
    if not work.rows or part.share < limits.share:
        unused = "The step computes nothing in float64"
        return Healthy(summary=summary if work.rows else unused, evidence=measures)
    single = hardware.float32
    return Finding(
        summary=summary,
        evidence=(*measures, layer_table((*work.rows, *work.casts), most=10)),
        remedies=(Remedy(*REMEDIES[work.origin], work.at, "floatx"),),
        effects=(
            *(
                row.scaled(single.matmuls if row.is_matrix else single.others, single.bound)
                for row in work.rows
                if row.ms
            ),
            *(row.scaled(0.0) for row in work.casts if row.ms),
        ),
    )


REMEDIES = {
    Origin.ARGUMENT: (
        "Convert the arrays to float32 before they are given to the step",
        'features = features.astype("float32")  # NumPy makes float64 by default',
    ),
    Origin.VARIABLE: (
        "Create the variables in float32",
        'keras.backend.set_floatx("float32")  # for layers\nweights = tf.Variable(initial, dtype=tf.float32)',
    ),
    Origin.FLOATX: (
        'Let Keras compute in float32: remove set_floatx("float64") before the first layer, or the float64 policy',
        'keras.backend.set_floatx("float32")  # the default; layers cast the arrays that they are given',
    ),
    Origin.LAYER: (
        "Create the layers in float32",
        'outputs = keras.layers.Dense(units, dtype="float32")(x)  # the layer casts what it is given',
    ),
    Origin.CAST: ("Cast to float32 instead of float64", "x = tf.cast(x, tf.float32)"),
    Origin.OTHER: ("Create constants and random numbers in float32", "scale = tf.constant(0.5, tf.float32)"),
    None: (
        "Create arrays, variables and constants in float32",
        'features = features.astype("float32")  # NumPy makes float64 by default',
    ),
}


def example(dtype: str = "float64") -> Verdict:
    """A matmul of float64 arrays takes 20 of 30 ms."""
    tensor = (dtype, (256, 1024))
    inputs = (tensor, (dtype, (1024, 1024)))
    graph = Operation(name="model/MatMul", type="MatMul", inputs=inputs, outputs=(tensor,))
    row = OperationTime(name=graph.name, type="MatMul", ms=20.0, at=Location("train.py", 12), operation=graph)
    wide = (row,) if dtype == "float64" else ()
    work = Float64Work(wide, (), Origin.ARGUMENT, Location("train.py", 5))
    cpu = Hardware(DeviceKind.CPU, "example", float32=FLOAT32_ON_AVX512)
    return check(work, Operations.training(30.0, row), cpu)


sick = example


def healthy() -> Verdict:
    """The arrays are float32."""
    return example("float32")
