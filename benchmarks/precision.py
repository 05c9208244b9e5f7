"""How much faster oneDNN runs matmuls and convolutions in bfloat16 than in float32 on this CPU.

The figures behind ``facts/hardware.py``'s CPU entries: run it on a quiet machine with
``python benchmarks/precision.py``. Both types take turns, so that a noisy machine hits both.
"""

import statistics
import time
from collections.abc import Callable

import tensorflow as tf

Call = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def conv(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Convolve with stride 1."""
    return tf.nn.conv2d(x, w, 1, "SAME")


def depthwise(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Convolve each channel alone."""
    return tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")


def depthwise_gradient(g: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Compute the gradient of a depthwise convolution with stride 2 by its input."""
    size = [g.shape[0], 2 * g.shape[1], 2 * g.shape[2], g.shape[3]]
    return tf.compat.v1.nn.depthwise_conv2d_native_backprop_input(size, w, g, [1, 2, 2, 1], "SAME")


def with_gradients(call: Call) -> Callable[[tf.Tensor, tf.Tensor], list[tf.Tensor]]:
    """Return a graph function of the product and both of its gradients: a training step's share."""

    @tf.function
    def run(x: tf.Tensor, w: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch((x, w))
            y = call(x, w)
        return [*tape.gradient(y, (x, w), output_gradients=y), tf.reduce_max(y)]

    return run


CASES: tuple[tuple[str, Call, tuple[int, ...], tuple[int, ...]], ...] = (
    ("conv 3x3, 48 -> 48, 64x64, batch 32", conv, (32, 64, 64, 48), (3, 3, 48, 48)),
    ("conv 3x3, 96 -> 96, 32x32, batch 32", conv, (32, 32, 32, 96), (3, 3, 96, 96)),
    ("conv 3x3, 30 -> 30, 64x64, batch 32", conv, (32, 64, 64, 30), (3, 3, 30, 30)),
    ("conv 1x1, 256 -> 256, 16x16, batch 32", conv, (32, 16, 16, 256), (1, 1, 256, 256)),
    ("conv 3x3, 3 -> 32, 64x64, batch 32", conv, (32, 64, 64, 3), (3, 3, 3, 32)),
    ("matmul 256 x 1024 x 1024", tf.matmul, (256, 1024), (1024, 1024)),
    ("matmul 64 x 512 x 512", tf.matmul, (64, 512), (512, 512)),
    ("depthwise 3x3, 96, 32x32, batch 32", depthwise, (32, 32, 32, 96), (3, 3, 96, 1)),
)


ALONE: tuple[tuple[str, Call, tuple[int, ...], tuple[int, ...]], ...] = (
    (
        "depthwise 3x3, 64, 56x56 by 2, gradient",
        depthwise_gradient,
        (16, 28, 28, 64),
        (3, 3, 64, 1),
    ),
    (
        "depthwise 3x3, 128, 28x28 by 2, gradient",
        depthwise_gradient,
        (16, 14, 14, 128),
        (3, 3, 128, 1),
    ),
)
"""Without gradients of their own: they are ones."""


def seconds(run: Callable[..., object], x: tf.Tensor, w: tf.Tensor) -> float:
    """Time one call."""
    start = time.perf_counter()
    run(x, w)
    return time.perf_counter() - start


def compare(
    run: Callable[..., object], x: tf.Tensor, w: tf.Tensor, rounds: int = 15
) -> tuple[float, float]:
    """Return the median seconds in float32 and in bfloat16, taking turns."""
    narrow = (tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16))
    run(x, w), run(*narrow)
    pairs = [(seconds(run, x, w), seconds(run, *narrow)) for _ in range(rounds)]
    wide, thin = zip(*pairs, strict=True)
    return statistics.median(wide), statistics.median(thin)


def main() -> None:
    """Print one row per case."""
    runs = [(name, with_gradients(call), x, w) for name, call, x, w in CASES]
    runs += [(name, tf.function(call), x, w) for name, call, x, w in ALONE]
    for name, run, x, w in runs:
        wide, thin = compare(run, tf.random.normal(x), tf.random.normal(w))
        print(f"{name:40} {wide * 1e3:8.2f} ms {thin * 1e3:8.2f} ms  ratio {thin / wide:.2f}")


if __name__ == "__main__":
    main()
