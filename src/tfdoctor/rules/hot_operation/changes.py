"""What to change, by what was measured of the operations."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from tfdoctor.rules.hot_operation.called_layers import reuse
from tfdoctor.rules.hot_operation.cheaper_forms import FormKind
from tfdoctor.rules.hot_operation.hot_work import Departure, HotWork
from tfdoctor.terms.verdict import Location, Remedy

FORMS: Mapping[FormKind, tuple[str, str]] = MappingProxyType(
    {
        FormKind.LARGEST_SINGULAR_VALUE: (
            "Estimate the largest singular value by one power iteration for each step",
            """\
# u: a variable of shape (1, columns), kept from step to step; keras.layers.SpectralNormalization does the same
v = tf.math.l2_normalize(tf.matmul(u, w, transpose_b=True))
u.assign(tf.math.l2_normalize(tf.matmul(v, w)))
sigma = tf.reduce_sum(tf.matmul(tf.stop_gradient(v), w) * tf.stop_gradient(u))""",
        ),
        FormKind.FEW_OF_A_SORT: (
            "Take the few values by tf.math.top_k in place of a full sort",
            "_, smallest = tf.math.top_k(-values, k=few)  # without the minus sign: the largest",
        ),
        FormKind.PAIRS_BEFORE_PRODUCT: (
            "Multiply the single rows by their parts of the weights, then repeat and add the products",
            """\
a, b = tf.split(w, [a_width, b_width])  # instead of tf.matmul(tf.concat([rows_a, rows_b], -1), w)
pairs = tf.gather(tf.matmul(nodes, a), first) + tf.gather(tf.matmul(nodes, b), second)""",
        ),
        FormKind.CONVOLUTION_AFTER_RESIZE: (
            "Run the 1x1 convolution before the image is enlarged: both orders compute the same",
            "",
        ),
        FormKind.PRODUCT_WITH_DIAGONAL: (
            "Multiply by the diagonal elementwise: rows for a factor on the left, columns for one on the right",
            "scaled = d[:, None] * matrix * e[None, :]  # instead of diag(d) @ matrix @ diag(e)",
        ),
        FormKind.REPEATED_FOR_A_SLICE: (
            "Take the slices of the tensor itself and concatenate them, without repeating all of it",
            "wrapped = tf.concat([x[:, -border:], x, x[:, :border]], axis=1)  # along each axis",
        ),
        FormKind.LARGE_SOFTMAX: (
            "Train with sampled classes (tf.nn.sampled_softmax_loss), and compute the whole softmax in evaluation",
            "loss = tf.nn.sampled_softmax_loss(weights, biases, labels, hidden, sampled, classes)",
        ),
        FormKind.RESPONSE_NORMALIZATION: (
            "Leave out the local response normalization, or normalize batches: this trains another model",
            "",
        ),
    }
)
"""The change to a cheaper form, and its code."""


def remedies(hot: Iterable[HotWork]) -> Iterator[Remedy]:
    """Yield one change for each line, about what takes most of it."""
    told: set[Location | str] = set()
    for remedy in map(_remedy, hot):
        key = remedy.at or remedy.action
        if key not in told:
            told.add(key)
            yield remedy


def _remedy(hot: HotWork) -> Remedy:
    if hot.form is not None:
        action, code = FORMS[hot.form.kind]
        return Remedy(action, code, hot.at)
    if hot.departure is Departure.REPEATED:
        return reuse(hot)
    kind = hot.groups[0].type
    compiled = all(row.operation and row.operation.compiled for row in hot.groups[0].rows)
    fused = "" if compiled else ", or let XLA fuse them (jit_compile=True)"
    actions = {
        Departure.METRICS: "Compute these metrics on validation data once an epoch, not in every training step",
        Departure.CONSTANT: f"Compute {kind} once, before the training loop",
        Departure.PYTHON: f"{kind} runs Python in each step: compute this by TensorFlow operations",
        Departure.FAR: f"Give {kind} a smaller tensor or type{fused.replace('them', 'it with what is beside it')}",
        Departure.SHORT: f"Replace these by one operation on the whole batch or sequence{fused}",
    }
    return Remedy(actions[hot.departure], at=hot.at)
