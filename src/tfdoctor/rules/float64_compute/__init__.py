from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.rules.float64_compute.float64_work import Float64Work, Origin

__doc__, CODE = page(__file__)

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
