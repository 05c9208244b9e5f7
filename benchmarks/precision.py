"""How much faster oneDNN runs matmuls and convolutions in bfloat16 than in float32 on this CPU.

The figures behind ``facts/run/hardware.py``'s CPU entries: run it on a quiet machine with
``python -m benchmarks.precision``. Both types take turns, so that a noisy machine hits both.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from functools import partial

import keras
import tensorflow as tf

from benchmarks.turns import by_turns, typical

Call = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
Case = tuple[str, Call, tuple[int, ...], tuple[int, ...]]
"""A name, an operation, and the shapes of its two operands."""


def conv(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Convolve with stride 1."""
    return tf.nn.conv2d(x, w, 1, "SAME")


def input_gradient(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Compute the gradient of a convolution with as many channels before as after, by its input."""
    return tf.raw_ops.Conv2DBackpropInput(
        input_sizes=x.shape, filter=w, out_backprop=x, strides=[1, 1, 1, 1], padding="SAME"
    )


def filter_gradient(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Compute the gradient of the same by its filter."""
    return tf.raw_ops.Conv2DBackpropFilter(
        input=x, filter_sizes=w.shape, out_backprop=x, strides=[1, 1, 1, 1], padding="SAME"
    )


def depthwise(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Convolve each channel alone."""
    return tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")


def depthwise_gradient(g: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Compute the gradient of a depthwise convolution with stride 2 by its input."""
    size = [g.shape[0], 2 * g.shape[1], 2 * g.shape[2], g.shape[3]]
    return tf.compat.v1.nn.depthwise_conv2d_native_backprop_input(size, w, g, [1, 2, 2, 1], "SAME")


def several(call: Call) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return a graph function that runs the matmul ``TIMES`` times, each time with other numbers."""

    @tf.function
    def run(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        results = [call(x, w + tf.cast(number, w.dtype)) for number in range(TIMES)]
        return tf.add_n([tf.reshape(result, [-1])[0] for result in results])

    return run


def in_turn(call: Call) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return a graph function that runs an operation ``TIMES`` times on the same values, one after another."""

    @tf.function
    def run(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        results: list[tf.Tensor] = []
        for _ in range(TIMES):
            with tf.control_dependencies(results[-1:]):
                results.append(tf.identity(call(x, y)))
        return tf.add_n([tf.reshape(result, [-1])[0] for result in results])

    return run


def with_gradients(call: Call, *, of_input: bool = True) -> Callable[[tf.Tensor, tf.Tensor], list[tf.Tensor]]:
    """Return a graph function of the matmul and its gradients, as in a training step.

    In a model's first layer, there is none of the input.
    """

    @tf.function
    def run(x: tf.Tensor, w: tf.Tensor) -> list[tf.Tensor]:
        sources = [x, w] if of_input else [w]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = call(x, w)
        return [*tape.gradient(y, sources, output_gradients=y), tf.reduce_max(y)]

    return run


def parts(x: tuple[int, ...], w: tuple[int, ...], stride: int) -> list[Case]:
    """Return the three convolutions of a layer: forward with bias and ReLU, by its input and by its weights."""
    more = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    y = (x[0], math.ceil(x[1] / stride), math.ceil(x[2] / stride), w[3])

    def forward(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        biased = tf.nn.bias_add(tf.nn.conv2d(x, w, stride, "SAME"), tf.ones(w.shape[-1:], w.dtype))
        return tf.nn.relu(biased)

    def by_input(y: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.Conv2DBackpropInput(input_sizes=x, filter=w, out_backprop=y, **more)

    def by_weights(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=w, out_backprop=y, **more)

    name = f"part of conv {w[0]}x{w[1]} by {stride}, {w[2]} -> {w[3]}, {x[1]}x{x[2]}, batch {x[0]}"
    return [
        (f"{name}, forward", forward, x, w),
        (f"{name}, by input", by_input, y, w),
        (f"{name}, by weights", by_weights, x, y),
    ]


CASES: tuple[Case, ...] = (
    ("conv 3x3, 48 -> 48, 64x64, batch 32", conv, (32, 64, 64, 48), (3, 3, 48, 48)),
    ("conv 3x3, 96 -> 96, 32x32, batch 32", conv, (32, 32, 32, 96), (3, 3, 96, 96)),
    ("conv 3x3, 30 -> 30, 64x64, batch 32", conv, (32, 64, 64, 30), (3, 3, 30, 30)),
    ("conv 3x3, 1 -> 16, 32x32, batch 32", conv, (32, 32, 32, 1), (3, 3, 1, 16)),
    ("conv 3x3, 8 -> 16, 32x32, batch 32", conv, (32, 32, 32, 8), (3, 3, 8, 16)),
    ("conv 3x3, 32 -> 64, 16x16, batch 32", conv, (32, 16, 16, 32), (3, 3, 32, 64)),
    ("conv 3x3, 8 -> 8, 32x32, batch 32", conv, (32, 32, 32, 8), (3, 3, 8, 8)),
    ("conv 3x3, 8 -> 32, 32x32, batch 32", conv, (32, 32, 32, 8), (3, 3, 8, 32)),
    ("conv 1x7, 1 -> 16, 100, batch 64", conv, (64, 1, 100, 1), (1, 7, 1, 16)),
    ("conv 1x5, 16 -> 32, 128, batch 64", conv, (64, 1, 128, 16), (1, 5, 16, 32)),
    ("conv 1x5, 32 -> 32, 128, batch 64", conv, (64, 1, 128, 32), (1, 5, 32, 32)),
    ("conv 1x3, 64 -> 64, 256, batch 64", conv, (64, 1, 256, 64), (1, 3, 64, 64)),
    ("conv 1x1, 256 -> 256, 16x16, batch 32", conv, (32, 16, 16, 256), (1, 1, 256, 256)),
    ("conv 3x3, 3 -> 32, 64x64, batch 32", conv, (32, 64, 64, 3), (3, 3, 3, 32)),
    ("matmul 256 x 1024 x 1024", tf.matmul, (256, 1024), (1024, 1024)),
    ("matmul 64 x 512 x 512", tf.matmul, (64, 512), (512, 512)),
    ("depthwise 3x3, 96, 32x32, batch 32", depthwise, (32, 32, 32, 96), (3, 3, 96, 1)),
)

FIRST: tuple[Case, ...] = (
    ("first conv 3x3, 1 -> 8, 28x28, batch 128", conv, (128, 28, 28, 1), (3, 3, 1, 8)),
    ("first conv 3x3, 1 -> 32, 28x28, batch 128", conv, (128, 28, 28, 1), (3, 3, 1, 32)),
    ("first conv 3x3, 3 -> 16, 64x64, batch 32", conv, (32, 64, 64, 3), (3, 3, 3, 16)),
    ("first conv 3x3, 3 -> 32, 64x64, batch 32", conv, (32, 64, 64, 3), (3, 3, 3, 32)),
)
"""Convolutions of images, which need no gradient."""

PARTS: tuple[Case, ...] = tuple(
    case
    for x, w, stride in (
        ((128, 13, 13, 8), (3, 3, 8, 16), 2),
        ((64, 64, 64, 8), (3, 3, 8, 16), 2),
        ((32, 32, 32, 12), (3, 3, 12, 32), 1),
        ((32, 31, 31, 16), (3, 3, 16, 32), 2),
        ((32, 64, 64, 16), (3, 3, 16, 32), 2),
        ((32, 32, 32, 16), (3, 3, 16, 16), 1),
        ((32, 16, 16, 32), (3, 3, 32, 32), 2),
        ((32, 32, 32, 32), (3, 3, 32, 64), 2),
        ((32, 16, 16, 32), (3, 3, 32, 64), 1),
        ((16, 16, 16, 40), (3, 3, 40, 64), 1),
        ((32, 8, 8, 64), (3, 3, 64, 64), 1),
    )
    for case in parts(x, w, stride)
)
"""What of their time the type does not change (``FIXED_OF_TYPE`` of the rule ``float32_matmul``)."""

WEIGHTS: tuple[Case, ...] = (
    ("layer conv 3x3, 256 -> 256, 4x4, batch 8", conv, (8, 4, 4, 256), (3, 3, 256, 256)),
    ("layer conv 3x3, 256 -> 256, 16x16, batch 8", conv, (8, 16, 16, 256), (3, 3, 256, 256)),
    ("layer conv 3x3, 256 -> 512, 8x8, batch 8", conv, (8, 8, 8, 256), (3, 3, 256, 512)),
    ("layer conv 3x3, 512 -> 512, 2x2, batch 8", conv, (8, 2, 2, 512), (3, 3, 512, 512)),
    ("layer conv 3x3, 512 -> 512, 4x4, batch 8", conv, (8, 4, 4, 512), (3, 3, 512, 512)),
    ("layer conv 3x3, 512 -> 512, 7x7, batch 8", conv, (8, 7, 7, 512), (3, 3, 512, 512)),
    ("layer conv 1x1, 2048 -> 512, 2x2, batch 8", conv, (8, 2, 2, 2048), (1, 1, 2048, 512)),
    ("layer conv 1x1, 512 -> 2048, 2x2, batch 8", conv, (8, 2, 2, 512), (1, 1, 512, 2048)),
    ("layer dense 32 x 1024 x 1024", tf.matmul, (32, 1024), (1024, 1024)),
    ("layer dense 256 x 1024 x 1024", tf.matmul, (256, 1024), (1024, 1024)),
    ("layer dense 256 x 2048 x 2048", tf.matmul, (256, 2048), (2048, 2048)),
    ("layer dense 32 x 4096 x 4096", tf.matmul, (32, 4096), (4096, 4096)),
)
"""With the casts of float32 weights and of their gradients, as in a layer under a mixed policy."""

TIMES = 8
"""Small matmuls run several times in one graph, so that the call from Python costs little."""


def attention(q: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    """Multiply queries and keys of each head, as Keras' MultiHeadAttention does."""
    return tf.einsum("aecd,abcd->acbe", q, k)


SMALL: tuple[Case, ...] = (
    ("small matmul 32 x 16 x 16", tf.matmul, (32, 16), (16, 16)),
    ("small matmul 128 x 128 x 128", tf.matmul, (128, 128), (128, 128)),
    ("small matmul 256 x 256 x 256", tf.matmul, (256, 256), (256, 256)),
    ("small matmul 64 x 512 x 512", tf.matmul, (64, 512), (512, 512)),
    ("small matmuls, 32 of 1 x 16 x 1", tf.matmul, (32, 1, 16), (32, 16, 1)),
    ("small matmuls, 64 of 64 x 64 x 64", tf.matmul, (64, 64, 64), (64, 64, 64)),
    ("small attention, 64 heads of 64 x 24 x 64", attention, (16, 64, 4, 24), (16, 64, 4, 24)),
    ("small attention, 256 of 128 x 64 x 128", attention, (32, 128, 8, 64), (32, 128, 8, 64)),
    ("small conv 3x3, 3 -> 32, 32x32, batch 32", conv, (32, 32, 32, 3), (3, 3, 3, 32)),
    ("small conv 3x3, 8 -> 8, 16x16, batch 32", conv, (32, 16, 16, 8), (3, 3, 8, 8)),
    ("small conv 3x3, 16 -> 16, 16x16, batch 32", conv, (32, 16, 16, 16), (3, 3, 16, 16)),
    ("small conv 3x3, 32 -> 32, 16x16, batch 32", conv, (32, 16, 16, 32), (3, 3, 32, 32)),
)


ALONE: tuple[Case, ...] = tuple(
    (
        f"depthwise {k}x{k}, {channels}, {2 * size}x{2 * size} by 2, gradient",
        depthwise_gradient,
        (batch, size, size, channels),
        (k, k, channels, 1),
    )
    for k, channels, size, batch in (
        (3, 64, 28, 16), (3, 128, 14, 16), (3, 64, 16, 16), (3, 384, 7, 32), (5, 96, 56, 16),
    )
)  # fmt: skip
"""Without gradients of their own: they are ones."""

ACTIVATIONS: tuple[tuple[str, Call], ...] = (
    ("Elu", lambda x, _: tf.raw_ops.Elu(features=x)),
    ("Erf", lambda x, _: tf.raw_ops.Erf(x=x)),
    ("Erfc", lambda x, _: tf.raw_ops.Erfc(x=x)),
    ("Exp", lambda x, _: tf.raw_ops.Exp(x=x)),
    ("Log", lambda _, y: tf.raw_ops.Log(x=y)),
    ("Relu6", lambda x, _: tf.raw_ops.Relu6(features=x)),
    ("Sigmoid", lambda x, _: tf.raw_ops.Sigmoid(x=x)),
    ("SigmoidGrad", lambda x, y: tf.raw_ops.SigmoidGrad(y=x, dy=y)),
    ("Softplus", lambda x, _: tf.raw_ops.Softplus(features=x)),
    ("Tanh", lambda x, _: tf.raw_ops.Tanh(x=x)),
    ("TanhGrad", lambda x, y: tf.raw_ops.TanhGrad(y=x, dy=y)),
    ("Mul", lambda x, y: tf.raw_ops.Mul(x=x, y=y)),
    ("AddV2", lambda x, y: tf.raw_ops.AddV2(x=x, y=y)),
    ("ReluGrad", lambda x, y: tf.raw_ops.ReluGrad(gradients=x, features=y)),
)
"""What is computed value by value (``float32_matmul/reduced_precision.py``), and three that only move bytes."""

IN_CACHES: tuple[tuple[str, Call], ...] = (
    ("BiasAddGrad", lambda x, _: tf.raw_ops.BiasAddGrad(out_backprop=x)),
    ("Cast", lambda x, _: tf.cast(x, tf.bfloat16 if x.dtype == tf.float32 else tf.float32)),
    ("RealDiv", lambda x, y: tf.raw_ops.RealDiv(x=x, y=tf.reshape(y, [-1])[0])),
    ("Relu", lambda x, _: tf.raw_ops.Relu(features=x)),
    ("ReluGrad", lambda x, y: tf.raw_ops.ReluGrad(gradients=x, features=y)),
)
"""What takes longer in bfloat16 while its values fit into the processor's caches, as in small convolutions, and the
casts that a mixed policy adds: to bfloat16 in the first column, to float32 in the second."""

SIZES = ((64, 16, 16, 32), (64, 32, 32, 32), (64, 64, 64, 32))
"""0.5, 2 and 8 million values."""

VALUES = (64, 128, 768)
"""25 MB in float32: more than the call from Python counts, and than the caches hold."""


def layer(call: Call, x: tf.Tensor, w: tf.Tensor, dtype: tf.DType) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return the forward and backward pass of a layer with float32 weights that computes in another type."""
    inputs, weights = tf.cast(x, dtype), tf.Variable(w)

    @tf.function
    def run(_: tf.Tensor, __: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = call(inputs, tf.cast(weights, dtype))
            loss = tf.reduce_sum(tf.cast(y * y, tf.float32))
        of_inputs, of_weights = tape.gradient(loss, [inputs, weights])
        return loss + tf.cast(tf.reshape(of_inputs, [-1])[0], tf.float32) + tf.reshape(of_weights, [-1])[0]

    return run


def compare_layers(call: Call, x: tf.Tensor, w: tf.Tensor, rounds: int = 15) -> tuple[float, float]:
    """Return the median seconds of a layer in float32 and in bfloat16, taking turns."""
    both = [partial(layer(call, x, w, dtype), x, w) for dtype in (tf.float32, tf.bfloat16)]
    wide, thin = typical(both, rounds)
    return wide, thin


def compare(
    run: Callable[..., object],
    x: tf.Tensor,
    w: tf.Tensor,
    rounds: int = 15,
    of: Callable[[Iterable[float]], float] = statistics.median,
) -> tuple[float, float]:
    """Return the typical seconds in float32 and in bfloat16, taking turns."""
    narrow = (tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16))
    wide, thin = typical([partial(run, x, w), partial(run, *narrow)], rounds, of)
    return wide, thin


LAYERS = 24


def tiny_model(policy: str) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return the training step of many tiny layers, whose matmuls gain nothing: only casts differ."""
    keras.mixed_precision.set_global_policy(policy)
    layers = [keras.layers.Dense(16, activation="relu") for _ in range(LAYERS)]
    model = keras.Sequential([keras.Input([16]), *layers])
    optimizer = keras.optimizers.SGD(1e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(model(x, training=True), tf.float32) * w)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return step


def casts(rounds: int = 100) -> float:
    """Return the ms that each layer takes longer under a mixed policy, taking turns."""
    x, w = tf.random.normal((8, 16)), tf.ones((8, 16))
    both = [partial(tiny_model(policy), x, w) for policy in ("float32", "mixed_bfloat16")]
    longer = [thin - wide for wide, thin in by_turns(both, rounds)]
    return statistics.median(longer) / LAYERS * 1e3


def show(name: str, both: tuple[float, float], times: int = 1, more: str = "") -> None:
    """Print a row: what one of so many operations takes in both types."""
    wide, thin = (seconds / times * 1e3 for seconds in both)
    print(f"{name} {wide:8.3f} ms {thin:8.3f} ms  ratio {thin / wide:.2f}{more}")


def main() -> None:
    """Print one row per case."""
    runs = [(name, with_gradients(call), x, w) for name, call, x, w in CASES]
    runs += [(name, with_gradients(call, of_input=False), x, w) for name, call, x, w in FIRST]
    runs += [(name, tf.function(call), x, w) for name, call, x, w in ALONE]
    runs += [(name, several(call), x, w) for name, call, x, w in SMALL]
    for name, run, x, w in runs:
        times = TIMES if name.startswith("small") else 1
        show(f"{name:40}", compare(run, tf.random.normal(x), tf.random.normal(w)), times)
    for name, call, x, w in PARTS:
        wide, thin = compare(in_turn(call), tf.random.normal(x), tf.random.normal(w), 30, min)
        fixed = (thin - 0.6 * wide) / 0.4 / TIMES * 1e3
        show(f"{name:64}", (wide, thin), TIMES, f"  fixed {fixed:.2f} ms")
    for name, call, x, w in WEIGHTS:
        show(f"{name:44}", compare_layers(call, tf.random.normal(x), tf.random.normal(w)))
    for name, call in ACTIVATIONS:
        x, y = tf.random.normal(VALUES), tf.abs(tf.random.normal(VALUES)) + 0.5
        show(f"{name:40}", compare(tf.function(call), x, y))
    for name, call in IN_CACHES:
        for size in SIZES:
            label = f"{name}, {math.prod(size) / 1e6:.1f} million values"
            both = compare(in_turn(call), tf.random.normal(size), tf.random.normal(size))
            show(f"{label:40}", both, TIMES)
    print(f"casts of a mixed policy: {casts() * 1e3:.1f} us for each layer of three products")


if __name__ == "__main__":
    main()
